//! The rewrite of one group, from its live files to verified outputs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use firn_policies::Sizes;
use firn_table::files::{DataFileReader, DeletedRows, FileFormat, NewFile};
use firn_table::layout::{DeleteIndex, LiveDelete, LiveFile};
use firn_table::storage::Stores;
use futures::StreamExt;
use iceberg::table::Table;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::observe::{Event, Observer};
use crate::plan::output_partition;
use crate::rewrite::Verify;
use crate::rewrite::estimate::Volume;
use crate::rewrite::output::{GroupWriter, OutputPlace, remove_files};
use crate::rewrite::source::{GroupSource, from_datafusion};
use crate::rewrite::summary::Summary;
use crate::{Error, ErrorKind, Result};

/// Rows of a batch that is read back.
const VERIFY_BATCH_ROWS: usize = 1024;

/// What all groups of a run share.
pub(crate) struct RewriterContext {
    /// The table as planned on.
    pub(crate) table: Table,
    pub(crate) stores: Stores,
    /// Holds the memory pool.
    pub(crate) session: SessionContext,
    pub(crate) sizes: Sizes,
    pub(crate) verify: Verify,
    /// Memory that the batches of one group may take between its reader and its writer.
    pub(crate) batch_memory_bytes: usize,
    /// Part of the names of outputs.
    pub(crate) run_id: Uuid,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) stop: CancellationToken,
}

/// Rewrites groups. Shared by the tasks of a run.
pub(crate) struct Rewriter {
    context: RewriterContext,
    format: FileFormat,
    /// Reads by the schema of `format`.
    reader: DataFileReader,
}

impl fmt::Debug for Rewriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rewriter").field("run_id", &self.context.run_id).finish_non_exhaustive()
    }
}

/// A group to rewrite.
#[derive(Debug)]
pub(crate) struct GroupTask {
    /// The plan's number of the group.
    pub(crate) id: usize,
    pub(crate) spec_id: i32,
    /// At least one.
    pub(crate) files: Vec<LiveFile>,
    /// All deletes that apply to one of the files.
    pub(crate) deletes: Vec<LiveDelete>,
}

/// A group that is rewritten and verified. Its files are in no table yet.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) task: GroupTask,
    pub(crate) outputs: Vec<NewFile>,
    /// Rows of the inputs that the deletes took away.
    pub(crate) deleted_rows: u64,
}

impl GroupTask {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.file.file_size_in_bytes()).sum()
    }

    pub(crate) fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.file.record_count()).sum()
    }

    /// What the files hold without so many rows.
    fn volume_without(&self, deleted_rows: u64) -> Volume {
        let (bytes, rows) = (self.bytes(), self.rows());
        let left = rows.saturating_sub(deleted_rows);
        let share = u128::from(bytes) * u128::from(left) / u128::from(rows.max(1));
        Volume { bytes: u64::try_from(share).unwrap_or(bytes), rows: left }
    }
}

impl Rewritten {
    /// Removes the outputs; right only while no catalog was told of them.
    pub(crate) async fn remove_outputs(&self, stores: &Stores) {
        let locations: Vec<String> =
            self.outputs.iter().map(|file| file.file.file_path().to_owned()).collect();
        remove_files(stores, &locations).await;
    }
}

impl Rewriter {
    pub(crate) fn new(context: RewriterContext) -> Result<Self> {
        let format = FileFormat::of_rewrite(&context.table)?;
        let reader = DataFileReader::new(&context.stores, &context.table, format.schema())?;
        Ok(Self { context, format, reader })
    }

    /// Rewrites a group and verifies what came out; `None` where the run was stopped. CPU work runs where it is
    /// called. On any other end than `Some`, no output is left.
    pub(crate) async fn rewrite(&self, task: GroupTask) -> Result<Option<Rewritten>> {
        let files = task.files.iter().map(|file| file.file.file_path().to_owned()).collect();
        self.context.observer.observe(&Event::GroupStarted { group: task.id, files });
        let summary = Arc::new(Mutex::new(Summary::new(self.context.verify)));
        let deletes = DeleteIndex::new(self.context.table.metadata(), task.deletes.clone());
        let deleted = DeletedRows::read(&self.context.stores, &task.files, &deletes).await?;
        let deleted_rows = deleted.count();
        let mut writer = self.writer(&task, deleted_rows)?;
        let written = async {
            if !self.copy_rows(&task, deleted, &summary, &mut writer).await? {
                return Ok(None);
            }
            let outputs = writer.finish().await?;
            let read = summary.lock().unwrap_or_else(PoisonError::into_inner).clone();
            self.verify(task.rows().saturating_sub(deleted_rows), &read, &outputs).await?;
            Ok(Some(outputs))
        };
        match written.await {
            Ok(Some(outputs)) => Ok(Some(Rewritten { task, outputs, deleted_rows })),
            ended => {
                writer.abort().await;
                ended.map(|_| None)
            }
        }
    }

    fn writer(&self, task: &GroupTask, deleted_rows: u64) -> Result<GroupWriter> {
        let context = &self.context;
        let missing = || {
            Error::new(ErrorKind::Internal, format!("the table lost its partition spec `{}`", task.spec_id))
        };
        let metadata = context.table.metadata();
        let spec = metadata.partition_spec_by_id(task.spec_id).ok_or_else(missing)?.clone();
        let first =
            task.files.first().ok_or_else(|| Error::new(ErrorKind::Internal, "a group without files"))?;
        let place = OutputPlace {
            table: context.table.clone(),
            stores: context.stores.clone(),
            format: self.format.clone(),
            partition: output_partition(&spec, metadata.current_schema(), first.file.partition()),
            spec,
            name_prefix: format!("compact-{}-{}", context.run_id, task.id),
        };
        let inputs = task.volume_without(deleted_rows);
        let pool = context.session.runtime_env().memory_pool.clone();
        let memory = MemoryConsumer::new("group writer").register(&pool);
        Ok(GroupWriter::new(place, context.sizes, inputs, memory))
    }

    /// Copies all rows; `false` where the run was stopped.
    async fn copy_rows(
        &self,
        task: &GroupTask,
        deleted: DeletedRows,
        summary: &Arc<Mutex<Summary>>,
        writer: &mut GroupWriter,
    ) -> Result<bool> {
        let mut rows = self.rows(task, deleted, summary).await?;
        let mut progress = Progress::new(task);
        while let Some(batch) = rows.next().await {
            if self.context.stop.is_cancelled() {
                return Ok(false);
            }
            let batch = batch.map_err(from_datafusion)?;
            let count = batch.num_rows() as u64;
            writer.write(&batch).await?;
            self.context.observer.observe(&progress.advance(count, writer.written_bytes()));
        }
        Ok(true)
    }

    /// The rows of the group, through a DataFusion plan.
    async fn rows(
        &self,
        task: &GroupTask,
        deleted: DeletedRows,
        summary: &Arc<Mutex<Summary>>,
    ) -> Result<SendableRecordBatchStream> {
        let source = GroupSource {
            reader: self.reader.clone(),
            files: task.files.clone(),
            deleted: Arc::new(deleted),
            memory_bytes: self.context.batch_memory_bytes,
            summary: summary.clone(),
        };
        let rows =
            self.context.session.read_table(Arc::new(source.into_table()?)).map_err(from_datafusion)?;
        rows.execute_stream().await.map_err(from_datafusion)
    }

    async fn verify(&self, rows: u64, read: &Summary, outputs: &[NewFile]) -> Result<()> {
        if read.rows() != rows {
            return Err(Error::new(
                ErrorKind::Data,
                format!("the manifests and deletes promise {rows} rows, but the files hold {}", read.rows()),
            ));
        }
        read.check_metadata(outputs)?;
        if self.context.verify == Verify::Metadata {
            return Ok(());
        }
        let mut read_back = Summary::new(Verify::Full);
        for output in outputs {
            let mut batches = self.reader.read(&output.file, output.spec_id, VERIFY_BATCH_ROWS).await?;
            while let Some(batch) = batches.next().await {
                read_back.update(&batch?)?;
            }
        }
        read.check_rows(&read_back)
    }
}

/// Turns totals into the steps that observers are told.
#[derive(Debug)]
struct Progress {
    group: usize,
    input_bytes: u64,
    input_rows: u64,
    rows: u64,
    bytes_read: u64,
    bytes_written: u64,
}

impl Progress {
    fn new(task: &GroupTask) -> Self {
        let (input_bytes, input_rows) = (task.bytes(), task.rows());
        Self { group: task.id, input_bytes, input_rows, rows: 0, bytes_read: 0, bytes_written: 0 }
    }

    fn advance(&mut self, rows: u64, bytes_written: u64) -> Event {
        self.rows += rows;
        let read = u128::from(self.input_bytes) * u128::from(self.rows) / u128::from(self.input_rows.max(1));
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        let event = Event::Progress {
            group: self.group,
            bytes_read: read.saturating_sub(self.bytes_read),
            bytes_written: bytes_written.saturating_sub(self.bytes_written),
            rows,
        };
        self.bytes_read = self.bytes_read.max(read);
        self.bytes_written = self.bytes_written.max(bytes_written);
        event
    }
}
