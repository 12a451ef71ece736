//! The partitions of live files as a batch.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::LiveFile;
use super::columns::{Column, Value, batch_of, column, long, schema_of};
use crate::Result;

struct Row<'a> {
    partition: &'a str,
    spec_id: i32,
    files: u64,
    records: u64,
    bytes: u64,
    min_bytes: u64,
    max_bytes: u64,
    min_sequence: i64,
    max_sequence: i64,
    first_added_ms: Option<i64>,
    last_added_ms: Option<i64>,
}

impl<'a> Row<'a> {
    fn of(live: &'a LiveFile) -> Self {
        let bytes = live.file.file_size_in_bytes();
        Self {
            partition: &live.partition_path,
            spec_id: live.spec_id,
            files: 0,
            records: 0,
            bytes: 0,
            min_bytes: bytes,
            max_bytes: bytes,
            min_sequence: live.sequence_number,
            max_sequence: live.sequence_number,
            first_added_ms: live.added_at_ms,
            last_added_ms: live.added_at_ms,
        }
    }

    fn add(&mut self, live: &LiveFile) {
        let bytes = live.file.file_size_in_bytes();
        self.files += 1;
        self.records += live.file.record_count();
        self.bytes += bytes;
        self.min_bytes = self.min_bytes.min(bytes);
        self.max_bytes = self.max_bytes.max(bytes);
        self.min_sequence = self.min_sequence.min(live.sequence_number);
        self.max_sequence = self.max_sequence.max(live.sequence_number);
        if let Some(added) = live.added_at_ms {
            self.first_added_ms = Some(self.first_added_ms.map_or(added, |first| first.min(added)));
            self.last_added_ms = Some(self.last_added_ms.map_or(added, |last| last.max(added)));
        }
    }
}

/// The schema of [`partitions_batch`]: see the module's documentation.
#[must_use]
pub fn partitions_schema() -> SchemaRef {
    schema_of(&columns())
}

/// The partitions of live files, one row per partition and spec in their order, as one Arrow batch of
/// [`partitions_schema`].
pub fn partitions_batch(files: &[LiveFile]) -> Result<RecordBatch> {
    let mut partitions: BTreeMap<(&str, i32), Row<'_>> = BTreeMap::new();
    for live in files {
        let key = (live.partition_path.as_str(), live.spec_id);
        partitions.entry(key).or_insert_with(|| Row::of(live)).add(live);
    }
    let rows: Vec<Row<'_>> = partitions.into_values().collect();
    batch_of(&columns(), &rows)
}

fn columns<'a>() -> Vec<Column<Row<'a>>> {
    vec![
        column("partition", Value::Text(|row| row.partition)),
        column("spec_id", Value::Int(|row| row.spec_id)),
        column("file_count", Value::Long(|row| long(row.files))),
        column("record_count", Value::Long(|row| long(row.records))),
        column("total_bytes", Value::Long(|row| long(row.bytes))),
        column("mean_file_bytes", Value::Double(|row| row.bytes as f64 / row.files as f64)),
        column("min_file_bytes", Value::Long(|row| long(row.min_bytes))),
        column("max_file_bytes", Value::Long(|row| long(row.max_bytes))),
        column("min_sequence_number", Value::Long(|row| row.min_sequence)),
        column("max_sequence_number", Value::Long(|row| row.max_sequence)),
        column("first_added_at", Value::OptionalTime(|row| row.first_added_ms)),
        column("last_added_at", Value::OptionalTime(|row| row.last_added_ms)),
    ]
}
