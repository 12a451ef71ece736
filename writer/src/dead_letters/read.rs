//! Letters read back.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use firn_table::commit::SourceIdentity;
use firn_table::files::read_data_file;
use firn_table::layout::{LiveFile, live_files};
use firn_table::ledger::TopicPartition;
use firn_table::storage::Stores;
use futures::TryStreamExt;
use iceberg::spec::{Datum, PrimitiveLiteral};
use iceberg::table::Table;

use super::DeadLetter;
use super::schema::other_table;
use crate::Result;

/// Rows of one batch when letters are read.
const BATCH_ROWS: usize = 1_000;

/// A letter as it stands in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The letter.
    pub letter: DeadLetter,
    /// The writer that found it.
    pub writer: String,
    /// The table and branch that its message was meant for, as `table@branch`.
    pub table: String,
    /// The id of the topic, where the broker told it.
    pub topic_id: Option<String>,
    /// When it was kept, milliseconds since the epoch.
    pub dead_at_ms: i64,
}

/// Offsets that stand in the dead letters, at or after the rows' cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeadOffsets(BTreeMap<TopicPartition, BTreeSet<i64>>);

impl DeadOffsets {
    /// Those of these partitions, at or after these offsets, in the head of a table of dead letters. Letters of a
    /// topic with another id mean other messages.
    pub(crate) async fn read(
        stores: &Stores,
        table: &Table,
        from: &BTreeMap<TopicPartition, i64>,
        identity: &SourceIdentity,
    ) -> Result<Self> {
        let mut dead: BTreeMap<_, BTreeSet<i64>> =
            from.keys().map(|at| (at.clone(), BTreeSet::new())).collect();
        let Some(first) = from.values().min() else { return Ok(Self::default()) };
        for stored in read_letters(stores, table, *first).await? {
            let DeadLetter { partition, offset, .. } = stored.letter;
            let now = identity.topic_ids.get(&partition.topic);
            let other_topic = matches!((now, &stored.topic_id), (Some(now), Some(then)) if now != then);
            let wanted = from.get(&partition).is_some_and(|from| offset >= *from) && !other_topic;
            if wanted && let Some(offsets) = dead.get_mut(&partition) {
                offsets.insert(offset);
            }
        }
        Ok(Self(dead))
    }

    /// Replaces those of the partitions that `newer` names.
    pub(crate) fn replace(&mut self, newer: Self) {
        self.0.extend(newer.0);
    }

    /// Those of a partition; `None` where there are none.
    pub(crate) fn of(&self, partition: &TopicPartition) -> Option<&BTreeSet<i64>> {
        self.0.get(partition).filter(|offsets| !offsets.is_empty())
    }
}

/// Reads the letters at the head of a table of dead letters whose files may hold offsets from `first` on: the others
/// are not opened. In no order.
pub async fn read_letters(stores: &Stores, table: &Table, first: i64) -> Result<Vec<Stored>> {
    let metadata = table.metadata();
    let Some(head) = metadata.current_snapshot_id() else { return Ok(Vec::new()) };
    let offset_id = metadata.current_schema().field_by_name("offset").map(|field| field.id);
    let reaches = |file: &LiveFile| {
        let bound = offset_id.and_then(|id| file.file.upper_bounds().get(&id));
        bound.map(Datum::literal).is_none_or(|literal| match literal {
            PrimitiveLiteral::Long(last) => *last >= first,
            _ => true,
        })
    };
    let mut letters = Vec::new();
    for file in live_files(table, head).await?.iter().filter(|file| reaches(file)) {
        let schema = metadata.current_schema();
        let mut batches = read_data_file(stores, table, schema, &file.file, BATCH_ROWS).await?;
        while let Some(batch) = batches.try_next().await? {
            let rows = Columns::of(&batch)?;
            let of_batch = (0..batch.num_rows()).map(|row| rows.letter(row));
            letters.extend(of_batch.filter(|stored| stored.letter.offset >= first));
        }
    }
    Ok(letters)
}

/// The columns of a batch.
struct Columns<'a> {
    batch: &'a RecordBatch,
    offsets: &'a arrow_array::Int64Array,
    partitions: &'a arrow_array::Int32Array,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self> {
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| other_table(name));
        let offsets =
            column("offset")?.as_primitive_opt::<Int64Type>().ok_or_else(|| other_table("offset"))?;
        let partitions =
            column("partition")?.as_primitive_opt::<Int32Type>().ok_or_else(|| other_table("partition"))?;
        column("topic")?.as_string_opt::<i32>().ok_or_else(|| other_table("topic"))?;
        Ok(Self { batch, offsets, partitions })
    }

    fn text(&self, name: &str, row: usize) -> Option<String> {
        let column = self.batch.column_by_name(name)?.as_string_opt::<i32>()?;
        column.is_valid(row).then(|| column.value(row).to_owned())
    }

    fn bytes(&self, name: &str, row: usize) -> Option<Vec<u8>> {
        let column = self.batch.column_by_name(name)?.as_binary_opt::<i64>()?;
        column.is_valid(row).then(|| column.value(row).to_vec())
    }

    fn millis(&self, name: &str, row: usize) -> Option<i64> {
        let column = self.batch.column_by_name(name)?.as_primitive_opt::<TimestampMicrosecondType>()?;
        column.is_valid(row).then(|| column.value(row).div_euclid(1_000))
    }

    fn headers(&self, row: usize) -> Option<Vec<(String, Option<Vec<u8>>)>> {
        let column = self.batch.column_by_name("headers")?.as_list_opt::<i32>()?;
        let entries = column.is_valid(row).then(|| column.value(row))?;
        let entries = entries.as_struct_opt()?;
        let keys = entries.column_by_name("key")?.as_string_opt::<i32>()?;
        let values = entries.column_by_name("value")?.as_binary_opt::<i64>()?;
        let entry = |at| (keys.value(at).to_owned(), values.is_valid(at).then(|| values.value(at).to_vec()));
        Some((0..entries.len()).map(entry).collect())
    }

    fn schema_id(&self, row: usize) -> Option<i32> {
        let column = self.batch.column_by_name("schema_id")?.as_primitive_opt::<Int32Type>()?;
        column.is_valid(row).then(|| column.value(row))
    }

    fn letter(&self, row: usize) -> Stored {
        let text = |name: &str| self.text(name, row).unwrap_or_default();
        let letter = DeadLetter {
            partition: TopicPartition { topic: text("topic"), partition: self.partitions.value(row) },
            offset: self.offsets.value(row),
            timestamp_ms: self.millis("timestamp", row),
            key: self.bytes("key", row),
            value: self.bytes("value", row),
            headers: self.headers(row).unwrap_or_default(),
            schema_id: self.schema_id(row),
            code: text("code"),
            path: text("path"),
            expected: text("expected"),
            found: text("found"),
            reason: text("reason"),
        };
        Stored {
            letter,
            writer: text("writer"),
            table: text("table"),
            topic_id: self.text("topic_id", row),
            dead_at_ms: self.millis("dead_at", row).unwrap_or(0),
        }
    }
}
