//! Rows are appended.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Result, bail};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray, new_null_array,
};
use arrow_schema::Schema as ArrowSchema;
use async_trait::async_trait;
use iceberg::arrow::{RecordBatchPartitionSplitter, schema_to_arrow_schema};
use iceberg::spec::{NestedField, Operation, PrimitiveType, Struct, Type};
use iceberg::table::Table;

use super::engine::{Deed, Engine};
use super::files::Partition;
use super::snapshot::{Added, Change, Draft};

/// Appends a row for each id: the column `id` holds it, all others follow from it.
#[derive(Debug, Clone)]
pub struct Append {
    /// The ids.
    pub ids: Range<i64>,
}

#[async_trait]
impl Deed for Append {
    async fn decide(&self, engine: &mut Engine, base: &Table) -> Result<Option<Change>> {
        let rows = rows(base, self.ids.clone())?;
        let mut added = Vec::new();
        for (partition, rows) in split(base, rows)? {
            let file = engine.data_file(base, &rows, &partition).await?;
            added.push(Added { file, spec_id: partition.spec_id, sequence_number: None });
        }
        Ok((!added.is_empty()).then(|| Draft::adding(Operation::Append, added).into()))
    }
}

/// Rows with these ids, by the table's current schema.
fn rows(table: &Table, ids: Range<i64>) -> Result<RecordBatch> {
    let schema = table.metadata().current_schema();
    let arrow = schema_to_arrow_schema(schema)?;
    let ids: Vec<i64> = ids.collect();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, typed) in schema.as_struct().fields().iter().zip(arrow.fields()) {
        columns.push(match column(field, &ids) {
            Some(column) => arrow_cast::cast(&column, typed.data_type())?,
            None if field.required => bail!("no values are made up for `{}`", field.name),
            None => new_null_array(typed.data_type(), ids.len()),
        });
    }
    Ok(RecordBatch::try_new(Arc::new(ArrowSchema::new(arrow.fields().clone())), columns)?)
}

/// What a row with this id holds in a column of text.
#[must_use]
pub fn value_text(id: i64) -> String {
    format!("row {id}")
}

fn column(field: &NestedField, ids: &[i64]) -> Option<ArrayRef> {
    let Type::Primitive(kind) = field.field_type.as_ref() else { return None };
    let numbers = ids.iter().map(|id| if field.name == "id" { *id } else { id % 3 });
    Some(match kind {
        PrimitiveType::Long => Arc::new(Int64Array::from_iter_values(numbers)),
        PrimitiveType::Int => {
            Arc::new(Int32Array::from_iter_values(numbers.map(|n| i32::try_from(n).unwrap_or(i32::MAX))))
        }
        PrimitiveType::String => {
            Arc::new(StringArray::from_iter_values(ids.iter().map(|id| value_text(*id))))
        }
        PrimitiveType::Boolean => Arc::new(BooleanArray::from_iter(ids.iter().map(|id| Some(id % 2 == 0)))),
        PrimitiveType::Float => {
            Arc::new(Float32Array::from_iter_values(ids.iter().map(|id| (id % 7) as f32)))
        }
        PrimitiveType::Double => {
            Arc::new(Float64Array::from_iter_values(ids.iter().map(|id| (id % 7) as f64)))
        }
        PrimitiveType::Date => {
            Arc::new(Date32Array::from_iter_values(ids.iter().map(|id| i32::try_from(id % 3).unwrap_or(0))))
        }
        PrimitiveType::Timestamp | PrimitiveType::Timestamptz => {
            Arc::new(TimestampMicrosecondArray::from_iter_values(ids.iter().map(|id| id * 3_600_000_000)))
        }
        _ => return None,
    })
}

/// Rows by partition of the table's default spec.
pub(super) fn split(table: &Table, rows: RecordBatch) -> Result<Vec<(Partition, RecordBatch)>> {
    let metadata = table.metadata();
    let spec = metadata.default_partition_spec();
    let whole = |rows| (Partition { spec_id: spec.spec_id(), tuple: Struct::empty() }, rows);
    if rows.num_rows() == 0 {
        return Ok(Vec::new());
    }
    if spec.is_unpartitioned() {
        return Ok(vec![whole(rows)]);
    }
    let splitter = RecordBatchPartitionSplitter::try_new_with_computed_values(
        metadata.current_schema().clone(),
        spec.clone(),
    )?;
    let parts = splitter.split(&rows)?.into_iter();
    let mut parts: Vec<_> = parts
        .map(|(key, rows)| (Partition { spec_id: spec.spec_id(), tuple: key.data().clone() }, rows))
        .collect();
    parts.sort_by_key(|(partition, _)| format!("{:?}", partition.tuple));
    Ok(parts)
}
