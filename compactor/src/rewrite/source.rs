//! The rows of a group's files as a DataFusion table.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef as ArrowSchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;
use firn_table::files::{DataFileReader, DeletedRows, with_lineage};
use firn_table::layout::LiveFile;
use firn_table::threads;
use futures::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;

use crate::rewrite::summary::Summary;
use crate::{Error, ErrorKind, Result};

/// Batches that wait between reader and writer.
const QUEUED_BATCHES: usize = 2;
/// Batches in memory: the one in hand, those in the queue, and the one that is written.
const HELD_BATCHES: usize = QUEUED_BATCHES + 2;
/// Rows of a batch before the width of a row is known, and at most.
const FIRST_BATCH_ROWS: usize = 1024;
const MOST_BATCH_ROWS: usize = 8192;

/// What is read, and how.
#[derive(Clone)]
pub(super) struct GroupSource {
    pub(super) reader: DataFileReader,
    pub(super) files: Vec<LiveFile>,
    /// The rows that are not read.
    pub(super) deleted: Arc<DeletedRows>,
    /// Memory that the batches of the group may take.
    pub(super) memory_bytes: usize,
    /// Filled while rows are read; complete at the end of the stream.
    pub(super) summary: Arc<Mutex<Summary>>,
}

impl fmt::Debug for GroupSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupSource").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

impl PartitionStream for GroupSource {
    fn schema(&self) -> &ArrowSchemaRef {
        self.reader.arrow_schema()
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStream::builder(self.schema().clone(), QUEUED_BATCHES);
        let rows = stream.tx();
        let memory = MemoryConsumer::new("group reader").register(context.memory_pool());
        let source = self.clone();
        let read = async move {
            let read = source.read(&memory, &rows).await;
            read.map_err(|error| DataFusionError::External(error.into()))
        };
        if threads::is_inline() {
            stream.spawn(read);
        } else {
            let runtime = Handle::current();
            // Summing up is CPU work: it has a thread of its own.
            stream.spawn_blocking(move || runtime.block_on(read));
        }
        stream.build()
    }
}

impl GroupSource {
    /// The group as a table of one partition.
    pub(super) fn into_table(self) -> Result<StreamingTable> {
        let schema = self.schema().clone();
        StreamingTable::try_new(schema, vec![Arc::new(self)]).map_err(from_datafusion)
    }

    async fn read(
        &self,
        memory: &MemoryReservation,
        rows: &Sender<Result<RecordBatch, DataFusionError>>,
    ) -> Result<()> {
        let mut batch_rows = FIRST_BATCH_ROWS;
        for input in &self.files {
            let mut batches = self.reader.read(&input.file, input.spec_id, batch_rows).await?;
            let mut position = 0;
            while let Some(batch) = batches.next().await {
                let batch = batch?;
                let first = position;
                position += batch.num_rows() as u64;
                let batch = with_lineage(batch, input, first)?;
                let batch = self.deleted.filter(input.file.file_path(), first, batch)?;
                if batch.num_rows() == 0 {
                    continue;
                }
                let batch_bytes = batch.get_array_memory_size();
                memory.try_resize(batch_bytes * HELD_BATCHES).map_err(from_datafusion)?;
                batch_rows = next_batch_rows(&batch, self.memory_bytes / HELD_BATCHES);
                self.summary.lock().unwrap_or_else(PoisonError::into_inner).update(&batch)?;
                if rows.send(Ok(batch)).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Rows that fit so many bytes, if they are as wide as those of a batch.
pub(super) fn next_batch_rows(batch: &RecordBatch, bytes: usize) -> usize {
    let row_bytes = batch.get_array_memory_size() / batch.num_rows().max(1);
    (bytes / row_bytes.max(1)).clamp(1, MOST_BATCH_ROWS)
}

/// Keeps the kind of an error of ours that passed through DataFusion.
pub(super) fn from_datafusion(error: DataFusionError) -> Error {
    match error {
        DataFusionError::External(cause) => match cause.downcast::<Error>() {
            Ok(error) => *error,
            Err(cause) => Error::new(ErrorKind::Internal, cause.to_string()).with_source(cause),
        },
        DataFusionError::Context(_, cause) => from_datafusion(*cause),
        DataFusionError::ResourcesExhausted(message) => Error::new(
            ErrorKind::Configuration,
            format!("the memory of the run is too small for this group; give it more: {message}"),
        ),
        error => Error::new(ErrorKind::Internal, error.strip_backtrace()).with_source(error),
    }
}
