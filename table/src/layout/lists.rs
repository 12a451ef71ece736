//! Manifests and snapshots as batches.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use iceberg::spec::{ManifestContentType, ManifestFile, SnapshotRef};
use iceberg::table::Table;

use super::columns::{Column, Value, batch_of, column, long, schema_of};
use crate::{Error, ErrorKind, Result};

/// The schema of [`manifests_batch`]: see the module's documentation.
#[must_use]
pub fn manifests_schema() -> SchemaRef {
    schema_of(&manifest_columns())
}

/// Manifests as one Arrow batch of [`manifests_schema`].
pub fn manifests_batch(manifests: &[ManifestFile]) -> Result<RecordBatch> {
    batch_of(&manifest_columns(), manifests)
}

fn manifest_columns() -> Vec<Column<ManifestFile>> {
    vec![
        column("manifest_path", Value::Text(|row| &row.manifest_path)),
        column("manifest_bytes", Value::Long(|row| row.manifest_length)),
        column(
            "content",
            Value::Text(|row| match row.content {
                ManifestContentType::Data => "data",
                ManifestContentType::Deletes => "deletes",
            }),
        ),
        column("spec_id", Value::Int(|row| row.partition_spec_id)),
        column("sequence_number", Value::Long(|row| row.sequence_number)),
        column("min_sequence_number", Value::Long(|row| row.min_sequence_number)),
        column("added_snapshot_id", Value::Long(|row| row.added_snapshot_id)),
        column("added_files", Value::OptionalLong(|row| row.added_files_count.map(i64::from))),
        column("existing_files", Value::OptionalLong(|row| row.existing_files_count.map(i64::from))),
        column("deleted_files", Value::OptionalLong(|row| row.deleted_files_count.map(i64::from))),
        column("added_rows", Value::OptionalLong(|row| row.added_rows_count.map(long))),
        column("existing_rows", Value::OptionalLong(|row| row.existing_rows_count.map(long))),
        column("deleted_rows", Value::OptionalLong(|row| row.deleted_rows_count.map(long))),
    ]
}

struct SnapshotRow {
    snapshot: SnapshotRef,
    is_current: bool,
    refs: Option<String>,
    summary: String,
}

impl SnapshotRow {
    fn new(table: &Table, snapshot: &SnapshotRef, refs: &BTreeMap<String, i64>) -> Self {
        let id = snapshot.snapshot_id();
        let names: Vec<&str> =
            refs.iter().filter(|(_, to)| **to == id).map(|(name, _)| name.as_str()).collect();
        let sorted: BTreeMap<_, _> = snapshot.summary().additional_properties.iter().collect();
        Self {
            snapshot: SnapshotRef::clone(snapshot),
            is_current: table.metadata().current_snapshot_id() == Some(id),
            refs: (!names.is_empty()).then(|| names.join(",")),
            summary: serde_json::json!(sorted).to_string(),
        }
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.snapshot.summary().additional_properties.get(key)?.parse().ok()
    }
}

/// The snapshot of each branch and tag. The crate tells only that of a name, so they are read from the
/// metadata's JSON.
fn refs(table: &Table) -> Result<BTreeMap<String, i64>> {
    #[derive(serde::Deserialize)]
    struct Target {
        #[serde(rename = "snapshot-id")]
        snapshot_id: i64,
    }
    #[derive(serde::Deserialize)]
    struct Refs {
        #[serde(default)]
        refs: BTreeMap<String, Target>,
    }
    let read =
        || -> serde_json::Result<Refs> { serde_json::from_value(serde_json::to_value(table.metadata())?) };
    let found = read().map_err(|cause| {
        Error::new(ErrorKind::Internal, "the table's metadata cannot be written as JSON").with_source(cause)
    })?;
    Ok(found.refs.into_iter().map(|(name, target)| (name, target.snapshot_id)).collect())
}

/// The schema of [`snapshots_batch`]: see the module's documentation.
#[must_use]
pub fn snapshots_schema() -> SchemaRef {
    schema_of(&snapshot_columns())
}

/// The table's snapshots, oldest first, as one Arrow batch of [`snapshots_schema`].
pub fn snapshots_batch(table: &Table) -> Result<RecordBatch> {
    let mut snapshots: Vec<&SnapshotRef> = table.metadata().snapshots().collect();
    snapshots.sort_by_key(|snapshot| (snapshot.sequence_number(), snapshot.timestamp_ms()));
    let refs = refs(table)?;
    let rows: Vec<_> =
        snapshots.into_iter().map(|snapshot| SnapshotRow::new(table, snapshot, &refs)).collect();
    batch_of(&snapshot_columns(), &rows)
}

fn snapshot_columns() -> Vec<Column<SnapshotRow>> {
    vec![
        column("snapshot_id", Value::Long(|row| row.snapshot.snapshot_id())),
        column("parent_id", Value::OptionalLong(|row| row.snapshot.parent_snapshot_id())),
        column("sequence_number", Value::Long(|row| row.snapshot.sequence_number())),
        column("committed_at", Value::Time(|row| row.snapshot.timestamp_ms())),
        column("operation", Value::Text(|row| row.snapshot.summary().operation.as_str())),
        column("schema_id", Value::OptionalInt(|row| row.snapshot.schema_id())),
        column("manifest_list", Value::Text(|row| row.snapshot.manifest_list())),
        column("is_current", Value::Flag(|row| row.is_current)),
        column("refs", Value::OptionalText(|row| row.refs.as_deref())),
        column("added_files", Value::OptionalLong(|row| row.number("added-data-files"))),
        column("deleted_files", Value::OptionalLong(|row| row.number("deleted-data-files"))),
        column("added_records", Value::OptionalLong(|row| row.number("added-records"))),
        column("deleted_records", Value::OptionalLong(|row| row.number("deleted-records"))),
        column("added_bytes", Value::OptionalLong(|row| row.number("added-files-size"))),
        column("removed_bytes", Value::OptionalLong(|row| row.number("removed-files-size"))),
        column("total_files", Value::OptionalLong(|row| row.number("total-data-files"))),
        column("total_records", Value::OptionalLong(|row| row.number("total-records"))),
        column("total_bytes", Value::OptionalLong(|row| row.number("total-files-size"))),
        column("summary", Value::Text(|row| &row.summary)),
    ]
}
