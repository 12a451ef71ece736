//! Live files as a batch.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use iceberg::table::Table;

use super::LiveFile;
use super::columns::{Column, Value, batch_of, column, long, schema_of};
use crate::Result;

struct Row<'a> {
    live: &'a LiveFile,
    current_spec: i32,
    format: String,
}

/// The schema of [`files_batch`]: see the module's table of columns.
#[must_use]
pub fn files_schema() -> SchemaRef {
    schema_of(&columns())
}

/// Live files as one Arrow batch of [`files_schema`].
pub fn files_batch(table: &Table, files: &[LiveFile]) -> Result<RecordBatch> {
    let current_spec = table.metadata().default_partition_spec_id();
    let rows: Vec<Row<'_>> = files
        .iter()
        .map(|live| Row { live, current_spec, format: live.file.file_format().to_string() })
        .collect();
    batch_of(&columns(), &rows)
}

fn columns<'a>() -> Vec<Column<Row<'a>>> {
    vec![
        column("file_path", Value::Text(|row| row.live.file.file_path())),
        column("file_name", Value::Text(|row| file_name(row.live.file.file_path()))),
        column("partition", Value::Text(|row| &row.live.partition_path)),
        column("spec_id", Value::Int(|row| row.live.spec_id)),
        column("is_current_spec", Value::Flag(|row| row.live.spec_id == row.current_spec)),
        column("format", Value::Text(|row| &row.format)),
        column("record_count", Value::Long(|row| long(row.live.file.record_count()))),
        column("file_size_bytes", Value::Long(|row| long(row.live.file.file_size_in_bytes()))),
        column(
            "split_count",
            Value::OptionalInt(|row| {
                row.live.file.split_offsets().map(|splits| i32::try_from(splits.len()).unwrap_or(i32::MAX))
            }),
        ),
        column("sort_order_id", Value::OptionalInt(|row| row.live.file.sort_order_id())),
        column("has_bounds", Value::Flag(|row| !row.live.file.lower_bounds().is_empty())),
        column("sequence_number", Value::Long(|row| row.live.sequence_number)),
        column("file_sequence_number", Value::Long(|row| row.live.file_sequence_number)),
        column("snapshot_id", Value::Long(|row| row.live.snapshot_id)),
        column("added_at", Value::OptionalTime(|row| row.live.added_at_ms)),
        column("first_row_id", Value::OptionalLong(|row| row.live.file.first_row_id())),
        column("manifest_path", Value::Text(|row| &row.live.manifest_path)),
    ]
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
