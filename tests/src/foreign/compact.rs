//! Files are rewritten into one.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow_schema::{DataType, Schema as ArrowSchema};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use async_trait::async_trait;
use iceberg::spec::{DataContentType, FormatVersion, Operation};
use iceberg::table::Table;
use rand::seq::IndexedRandom;

use super::engine::{Deed, Engine};
use super::entries::{Entry, FileKey};
use super::files::{LAST_UPDATED, Partition, ROW_ID, field};
use super::reader::LiveRow;
use super::rows::is_vector;
use super::snapshot::{Added, Change, Draft};

/// Rewrites the files of one partition, chosen at random, into one with their live rows. Their vectors go with them;
/// other deletes stay, though they may have nothing to delete any more.
#[derive(Debug, Clone)]
pub struct Compact {
    /// Files at least.
    pub min_files: usize,
}

#[async_trait]
impl Deed for Compact {
    async fn decide(&self, engine: &mut Engine, base: &Table) -> Result<Option<Change>> {
        let Some(head) = base.metadata().current_snapshot() else { return Ok(None) };
        let entries = engine.reader.entries(base, head.snapshot_id()).await?;
        let mut parts: BTreeMap<String, Vec<&Entry>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.is_data()) {
            let name = format!("{} {:?}", entry.spec_id, entry.file.partition());
            parts.entry(name).or_default().push(entry);
        }
        let parts: Vec<Vec<&Entry>> =
            parts.into_values().filter(|p| p.len() >= self.min_files.max(1)).collect();
        let Some(inputs) = parts.choose(&mut engine.random) else { return Ok(None) };
        let partition = Partition { spec_id: inputs[0].spec_id, tuple: inputs[0].file.partition().clone() };
        let paths: Vec<&str> = inputs.iter().map(|entry| entry.file.file_path()).collect();
        let live = engine.reader.live(base, head.snapshot_id()).await?;
        let rows = engine.batch(base, &live, &paths).await?;
        let mut added = Vec::new();
        if rows.num_rows() > 0 {
            let file = engine.data_file(base, &rows, &partition).await?;
            let number = Some(head.sequence_number());
            added.push(Added { file, spec_id: partition.spec_id, sequence_number: number });
        }
        let vectors = entries.iter().filter(|entry| {
            entry.file.content_type() == DataContentType::PositionDeletes
                && is_vector(&entry.file)
                && entry.file.referenced_data_file().is_some_and(|path| paths.contains(&path.as_str()))
        });
        let removed: Vec<FileKey> =
            inputs.iter().map(|entry| entry.key()).chain(vectors.map(Entry::key)).collect();
        let removed = removed.into_iter().collect();
        Ok(Some(Draft { operation: Operation::Replace, added, removed }.into()))
    }
}

impl Engine {
    /// The live rows of some files as one batch of the current schema, with lineage where the format has it.
    async fn batch(&mut self, base: &Table, live: &[LiveRow], paths: &[&str]) -> Result<RecordBatch> {
        let schema = base.metadata().current_schema();
        let with_lineage = base.metadata().format_version() >= FormatVersion::V3;
        let mut parts = Vec::new();
        for path in paths {
            let columns = self.reader.columns(path).await?;
            let rows: Vec<&LiveRow> = live.iter().filter(|row| row.path.as_ref() == *path).collect();
            let mut kept = vec![false; columns.rows];
            for row in &rows {
                kept[usize::try_from(row.position)?] = true;
            }
            let part = filter_record_batch(&columns.by_schema(schema)?, &BooleanArray::from(kept))?;
            parts.push(if with_lineage { lineage(&part, &rows)? } else { part });
        }
        Ok(concat_batches(&parts[0].schema(), &parts)?)
    }
}

/// The batch with its rows' ids and the sequence numbers of their last updates.
fn lineage(batch: &RecordBatch, rows: &[&LiveRow]) -> Result<RecordBatch> {
    let mut fields: Vec<_> = batch.schema_ref().fields().iter().map(|f| f.as_ref().clone()).collect();
    fields.push(field("_row_id", DataType::Int64, ROW_ID));
    fields.push(field("_last_updated_sequence_number", DataType::Int64, LAST_UPDATED));
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    columns.push(Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.row_id))));
    columns.push(Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.last_updated))));
    Ok(RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns)?)
}
