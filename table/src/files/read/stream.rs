//! The stream of a file's batches: row groups are fetched by a task and decoded on blocking threads.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, stream};
use iceberg::spec::DataFile;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStream};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

use super::plan::FilePlan;
use crate::{Error, ErrorKind, Result, threads};

/// Batches that may wait for the consumer.
const BATCHES_AHEAD: usize = 2;

type Source = ParquetRecordBatchStream<Box<dyn AsyncFileReader>>;
type Sender = mpsc::Sender<Result<RecordBatch>>;

/// A file that was fetched whole.
#[derive(Debug)]
pub(super) struct InMemory {
    bytes: Bytes,
}

impl InMemory {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { bytes }
    }

    fn slice(&self, range: &Range<u64>) -> Result<Bytes, ParquetError> {
        let end = || ParquetError::EOF(format!("bytes {range:?} of a file of {}", self.bytes.len()));
        let start = usize::try_from(range.start).map_err(|_| end())?;
        let stop = usize::try_from(range.end).map_err(|_| end())?;
        if start > stop || stop > self.bytes.len() {
            return Err(end());
        }
        Ok(self.bytes.slice(start..stop))
    }
}

impl AsyncFileReader for InMemory {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        let slice = self.slice(&range);
        async move { slice }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&self.bytes).map(Arc::new);
        async move { metadata }.boxed()
    }
}

/// The task that fetches; it ends with the stream.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Streams the batches of a file.
pub(super) fn batches(
    source: Source,
    plan: FilePlan,
    file: &DataFile,
) -> BoxStream<'static, Result<RecordBatch>> {
    let location: Arc<str> = file.file_path().into();
    let expected = file.record_count();
    let batches = if threads::is_inline() {
        decoded_here(source, plan, expected)
    } else {
        decoded_ahead(source, plan, expected)
    };
    batches.map(move |batch| batch.map_err(|error| error.context(format!("data file `{location}`")))).boxed()
}

/// Fetches and decodes in a task and on blocking threads, ahead of the consumer.
fn decoded_ahead(source: Source, plan: FilePlan, expected: u64) -> BoxStream<'static, Result<RecordBatch>> {
    let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
    let task = Task(tokio::spawn(async move {
        if let Err(error) = pump(source, Arc::new(plan), &sender, expected).await {
            // Without a receiver nobody wants to know.
            let _ = sender.send(Err(error)).await;
        }
    }));
    stream::unfold(Some((receiver, task)), |state| async move {
        let (mut receiver, mut task) = state?;
        match receiver.recv().await {
            Some(Ok(batch)) => Some((Ok(batch), Some((receiver, task)))),
            Some(Err(error)) => Some((Err(error), None)),
            None => match (&mut task.0).await {
                Ok(()) => None,
                Err(cause) => Some((Err(died(cause)), None)),
            },
        }
    })
    .boxed()
}

/// Fetches and decodes when the consumer asks, where it asks.
fn decoded_here(source: Source, plan: FilePlan, expected: u64) -> BoxStream<'static, Result<RecordBatch>> {
    let start = Here { source, plan, reader: None, rows: 0, expected };
    stream::try_unfold(start, |mut here| async move { Ok(here.next().await?.map(|batch| (batch, here))) })
        .boxed()
}

/// A file that is decoded where its batches are asked for.
struct Here {
    source: Source,
    plan: FilePlan,
    /// The open row group.
    reader: Option<ParquetRecordBatchReader>,
    rows: u64,
    expected: u64,
}

impl Here {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.reader.as_mut().and_then(Iterator::next) {
                let batch = batch.and_then(|batch| self.plan.apply(&batch)).map_err(invalid)?;
                self.rows += batch.num_rows() as u64;
                return Ok(Some(batch));
            }
            self.reader = self.source.next_row_group().await.map_err(read_error)?;
            if self.reader.is_none() {
                check_rows(self.rows, self.expected)?;
                return Ok(None);
            }
        }
    }
}

/// Fetches a row group while the one before it is decoded.
async fn pump(mut source: Source, plan: Arc<FilePlan>, sender: &Sender, expected: u64) -> Result<()> {
    let mut rows = 0;
    let mut next = source.next_row_group().await;
    while let Some(reader) = next.map_err(read_error)? {
        let (plan, batches) = (Arc::clone(&plan), sender.clone());
        let decoding = tokio::task::spawn_blocking(move || decode(reader, &plan, &batches));
        let (decoded, fetched) = tokio::join!(decoding, source.next_row_group());
        match decoded.map_err(died)?? {
            Some(decoded) => rows += decoded,
            None => return Ok(()),
        }
        next = fetched;
    }
    check_rows(rows, expected)
}

fn check_rows(rows: u64, expected: u64) -> Result<()> {
    if rows == expected {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::Data, format!("it has {rows} rows where its entry says {expected}")))
    }
}

fn invalid(cause: ArrowError) -> Error {
    Error::new(ErrorKind::Data, "its rows cannot be decoded").with_source(cause)
}

/// Decodes a row group; `None` where the consumer went away.
fn decode(reader: ParquetRecordBatchReader, plan: &FilePlan, batches: &Sender) -> Result<Option<u64>> {
    let mut rows = 0;
    for batch in reader {
        let batch = batch.and_then(|batch| plan.apply(&batch)).map_err(invalid)?;
        rows += batch.num_rows() as u64;
        if batches.blocking_send(Ok(batch)).is_err() {
            return Ok(None);
        }
    }
    Ok(Some(rows))
}

fn died(cause: JoinError) -> Error {
    Error::new(ErrorKind::Data, "decoding it ended in a panic or was cancelled").with_source(cause)
}

/// The error of the Parquet reader, which may be that of the store below it.
pub(super) fn read_error(cause: ParquetError) -> Error {
    match cause {
        ParquetError::External(inner) => match inner.downcast::<object_store::Error>() {
            Ok(store) => Error::from(*store),
            Err(other) => Error::new(ErrorKind::Data, "it is no readable Parquet file").with_source(other),
        },
        other => Error::new(ErrorKind::Data, "it is no readable Parquet file").with_source(other),
    }
}
