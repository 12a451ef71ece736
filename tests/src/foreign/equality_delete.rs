//! Rows are deleted by equality.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::Schema as ArrowSchema;
use async_trait::async_trait;
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::Operation;
use iceberg::table::Table;

use super::engine::{Deed, Engine};
use super::files::{Partition, field};
use super::reader::LiveRow;
use super::snapshot::{Added, Change, Draft};
use super::victims::Victims;

/// Deletes by the column `id`: one delete file for each partition that has such a row now.
#[derive(Debug, Clone)]
pub struct EqualityDelete {
    /// The rows.
    pub victims: Victims,
}

#[async_trait]
impl Deed for EqualityDelete {
    async fn decide(&self, engine: &mut Engine, base: &Table) -> Result<Option<Change>> {
        let victims = engine.victims(base, &self.victims).await?;
        let mut parts: Vec<(Partition, BTreeSet<i64>)> = Vec::new();
        for row in victims {
            let LiveRow { spec_id, partition: tuple, id, .. } = row;
            let Some(id) = id else { continue };
            let partition = Partition { spec_id, tuple };
            match parts.iter_mut().find(|(known, _)| *known == partition) {
                Some((_, ids)) => drop(ids.insert(id)),
                None => parts.push((partition, BTreeSet::from([id]))),
            }
        }
        let mut added = Vec::new();
        for (partition, ids) in parts {
            let file = engine.equality_delete_file(base, &keys(base, ids)?, &partition).await?;
            added.push(Added { file, spec_id: partition.spec_id, sequence_number: None });
        }
        Ok((!added.is_empty()).then(|| Draft::adding(Operation::Delete, added).into()))
    }
}

/// The column `id` of a delete file.
fn keys(table: &Table, ids: BTreeSet<i64>) -> Result<RecordBatch> {
    let schema = table.metadata().current_schema();
    let id = schema.field_by_name("id").context("a column `id`")?;
    let arrow = schema_to_arrow_schema(schema)?;
    let kind = arrow.field_with_name("id")?.data_type().clone();
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    let values = cast(&values, &kind)?;
    Ok(RecordBatch::try_new(Arc::new(ArrowSchema::new(vec![field("id", kind, id.id)])), vec![values])?)
}
