//! A writer process without a broker: offsets are made up, rows tell them, everything after that is real.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use firn_table::catalog::{CommitCatalog, NewTable, create_table, parse_table_ident};
use firn_table::commit::{Flush, FlushOutcome, Guarantee, SourceIdentity, TableHandle};
use firn_table::files::{DataFileWriter, FileFormat, FileTarget, NewFile, data_file_location};
use firn_table::ledger::{CommitId, OffsetRange, TopicPartition, WriterName};
use iceberg::spec::{NestedField, PrimitiveType, Schema, Struct, Type};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use uuid::Uuid;

/// Ids of rows are `partition * STRIDE + offset`.
pub const STRIDE: i64 = 1_000_000;

/// A process that writes: its own handle of the table, its own commit ids.
#[derive(Debug)]
pub struct Appender {
    /// The table, as this process knows it.
    pub handle: TableHandle,
    writer: WriterName,
    instance: Uuid,
    commits: AtomicU64,
}

/// Creates the table that appenders write to: `(id long, text string)`, with firn's default properties.
pub async fn create(catalog: &dyn CommitCatalog, name: &str) -> Result<()> {
    let id = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into();
    let text = NestedField::optional(2, "text", Type::Primitive(PrimitiveType::String)).into();
    let schema = Schema::builder().with_fields([id, text]).build()?;
    create_table(catalog, NewTable::new(parse_table_ident(name)?, schema)).await?;
    Ok(())
}

/// The id of the row that stands for an offset.
#[must_use]
pub fn id(partition: i32, offset: i64) -> i64 {
    i64::from(partition) * STRIDE + offset
}

/// A partition of the topic that the offsets pretend to come from.
#[must_use]
pub fn topic_partition(partition: i32) -> TopicPartition {
    TopicPartition { topic: "topic".to_owned(), partition }
}

/// Text of a row that compresses as badly as real text does: files grow with their rows.
fn text(id: i64) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(id.unsigned_abs());
    (0..200).map(|_| char::from(random.random_range(b' '..b'\x7f'))).collect()
}

impl Appender {
    /// A process that has just started.
    pub fn new(handle: TableHandle, writer: &str) -> Result<Self> {
        let commits = AtomicU64::new(0);
        Ok(Self { handle, writer: WriterName::new(writer)?, instance: Uuid::now_v7(), commits })
    }

    /// A sealed flush of these offsets of partition 0, its file uploaded.
    pub async fn flush(&self, offsets: Range<i64>) -> Result<Flush> {
        self.flush_of(0, offsets).await
    }

    /// A sealed flush of these offsets of a partition, its file uploaded.
    pub async fn flush_of(&self, partition: i32, offsets: Range<i64>) -> Result<Flush> {
        let commit_id =
            CommitId { instance: self.instance, counter: self.commits.fetch_add(1, Ordering::Relaxed) };
        let file = self.file(&format!("{commit_id}"), partition, offsets.clone()).await?;
        let range = OffsetRange {
            partition: topic_partition(partition),
            start: offsets.start,
            next: offsets.end,
            rows: u64::try_from(offsets.end - offsets.start)?,
            rejected: 0,
            holes: 0,
        };
        Ok(Flush {
            commit_id,
            writer: self.writer.clone(),
            ranges: vec![range],
            files: vec![file],
            source: SourceIdentity::default(),
            guarantee: Guarantee::ExactlyOnce,
        })
    }

    async fn file(&self, name: &str, partition: i32, offsets: Range<i64>) -> Result<NewFile> {
        let table = self.handle.table();
        let format = FileFormat::of_table(&table)?;
        let ids: Vec<i64> = offsets.map(|offset| id(partition, offset)).collect();
        let texts: Vec<String> = ids.iter().map(|id| text(*id)).collect();
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from(ids)), Arc::new(StringArray::from(texts))];
        let spec = table.metadata().default_partition_spec().clone();
        let location = data_file_location(&table, &spec, &Struct::empty(), &format!("{name}.parquet"))?;
        let target = FileTarget { spec, partition: Struct::empty(), location };
        let mut writer = DataFileWriter::new(&format, self.handle.stores(), target)?;
        writer.write(&RecordBatch::try_new(format.arrow_schema().clone(), columns)?).await?;
        writer.close().await?.context("a file with rows")
    }

    /// Commits a flush that must land.
    pub async fn append(&self, offsets: Range<i64>) -> Result<()> {
        self.append_of(0, offsets).await
    }

    /// Commits a flush of a partition that must land.
    pub async fn append_of(&self, partition: i32, offsets: Range<i64>) -> Result<()> {
        match self.handle.append(self.flush_of(partition, offsets.clone()).await?).await? {
            FlushOutcome::Committed(_) => Ok(()),
            other => bail!("{offsets:?} of partition {partition}: {other:?}"),
        }
    }

    /// Commits a flush of partition 0 that must be overtaken; the result is the table's cursor.
    pub async fn overtaken(&self, flush: Flush) -> Result<Option<i64>> {
        match self.handle.append(flush).await? {
            FlushOutcome::Overtaken { cursors, .. } => Ok(cursors.get(&topic_partition(0)).map(|c| c.next)),
            FlushOutcome::Committed(committed) => bail!("it landed in snapshot {}", committed.snapshot_id),
        }
    }

    /// Begins to commit a flush, and dies while it waits for the answer.
    pub async fn die_while_committing(self, flush: Flush) -> Result<()> {
        let committing = self.handle.append(flush);
        match tokio::time::timeout(Duration::from_millis(500), committing).await {
            Err(_) => Ok(()),
            Ok(outcome) => bail!("it had its answer: {outcome:?}"),
        }
    }
}
