//! The ledger's cursors as a batch.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use iceberg::table::Table;

use super::columns::{Column, Value, batch_of, column, long, schema_of};
use crate::Result;
use crate::ledger::{Cursor, Ledger, TopicPartition, WriterName};

struct Row {
    writer: WriterName,
    branch: String,
    partition: TopicPartition,
    cursor: Cursor,
    commit_id: String,
    snapshot_id: i64,
}

/// The schema of [`offsets_batch`]: see the module's documentation.
#[must_use]
pub fn offsets_schema() -> SchemaRef {
    schema_of(&columns())
}

/// The ledger's cursors as one Arrow batch of [`offsets_schema`].
pub fn offsets_batch(table: &Table) -> Result<RecordBatch> {
    let mut rows = Vec::new();
    for (branch, writer, ledger) in Ledger::read_all(table.metadata().properties())? {
        let commit_id = ledger.commit_id.to_string();
        rows.extend(ledger.cursors.into_iter().map(|(partition, cursor)| Row {
            writer: writer.clone(),
            branch: branch.clone(),
            partition,
            cursor,
            commit_id: commit_id.clone(),
            snapshot_id: ledger.snapshot_id,
        }));
    }
    batch_of(&columns(), &rows)
}

fn columns() -> Vec<Column<Row>> {
    vec![
        column("writer", Value::Text(|row| row.writer.as_str())),
        column("branch", Value::Text(|row| &row.branch)),
        column("topic", Value::Text(|row| &row.partition.topic)),
        column("partition", Value::Int(|row| row.partition.partition)),
        column("start", Value::Long(|row| row.cursor.start)),
        column("next", Value::Long(|row| row.cursor.next)),
        column("rows", Value::Long(|row| long(row.cursor.rows))),
        column("rejected", Value::Long(|row| long(row.cursor.rejected))),
        column("holes", Value::Long(|row| long(row.cursor.holes))),
        column("gaps", Value::Long(|row| long(row.cursor.gaps))),
        column("commit_id", Value::Text(|row| &row.commit_id)),
        column("snapshot_id", Value::Long(|row| row.snapshot_id)),
    ]
}
