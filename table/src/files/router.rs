//! Splitting of batches by partition value.
//!
//! Each partition column is transformed and its values are numbered in order of appearance; the numbers of
//! several columns are combined and numbered again. A batch of one partition is passed on as it is; otherwise
//! its rows are gathered once, partition by partition, and each partition is a slice of the result.

mod number;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::take::take_record_batch;
use iceberg::spec::{NestedFieldRef, PartitionSpec, Schema, SchemaRef, Struct, Transform, Type};

use self::number::{Numbering, literal_at};
use super::columns::column_at;
use super::transform;
use crate::{Error, ErrorKind, Result};

/// Splits batches by partition value: transforms the source columns and returns, for each partition in a
/// batch, its tuple and rows.
#[derive(Debug)]
pub struct PartitionRouter {
    columns: Vec<PartitionColumn>,
}

#[derive(Debug)]
struct PartitionColumn {
    name: String,
    transform: Transform,
    source: Type,
    /// The indices that lead to the source column through structs.
    path: Vec<usize>,
}

impl PartitionRouter {
    /// A router for one spec of the table. `Unsupported` for unknown transforms and for source columns inside
    /// lists and maps, `Configuration` where the schema does not have a source column.
    pub fn new(spec: Arc<PartitionSpec>, schema: SchemaRef) -> Result<Self> {
        let columns = spec
            .fields()
            .iter()
            .map(|field| {
                let refused = |kind, why: &str| {
                    let name = &field.name;
                    Error::new(kind, format!("partition field `{name}`: {why}, so no rows can be written"))
                };
                match field.transform {
                    Transform::Unknown => {
                        return Err(refused(ErrorKind::Unsupported, "its transform is not known"));
                    }
                    Transform::Bucket(0) | Transform::Truncate(0) => {
                        return Err(refused(ErrorKind::Configuration, "its transform has a width of 0"));
                    }
                    _ => {}
                }
                let lacking = || refused(ErrorKind::Configuration, "the schema lacks its source column");
                let source = schema.field_by_id(field.source_id).ok_or_else(lacking)?;
                Ok(PartitionColumn {
                    name: field.name.clone(),
                    transform: field.transform,
                    source: source.field_type.as_ref().clone(),
                    path: struct_path(&schema, field.source_id).ok_or_else(|| {
                        refused(ErrorKind::Unsupported, "its source column is inside a list or map")
                    })?,
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self { columns })
    }

    /// The partitions of a batch of the schema's Arrow form, in order of first appearance. The rows of a
    /// partition keep their order. The returned batches share memory with each other or with the batch.
    pub fn split(&self, batch: &RecordBatch) -> Result<Vec<(Struct, RecordBatch)>> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let values = self.columns.iter().map(|column| column.values(batch)).collect::<Result<Vec<_>>>()?;
        let mut numbering = Numbering::single(batch.num_rows());
        for values in &values {
            numbering = numbering.combine(&Numbering::of(values)?);
        }
        let tuple = |row: usize| -> Result<Struct> {
            self.columns
                .iter()
                .zip(&values)
                .map(|(column, values)| literal_at(values, &column.source, row))
                .collect()
        };
        if numbering.first_rows.len() == 1 {
            return Ok(vec![(tuple(0)?, batch.clone())]);
        }
        let (rows, ends) = numbering.grouped();
        let gathered = take_record_batch(batch, &UInt32Array::from(rows)).map_err(internal)?;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        numbering
            .first_rows
            .iter()
            .zip(starts.zip(&ends))
            .map(|(first, (start, end))| Ok((tuple(*first)?, gathered.slice(start, end - start))))
            .collect()
    }
}

impl PartitionColumn {
    fn values(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let source = column_at(batch, &self.path).map_err(internal)?;
        transform::apply(self.transform, &source)
            .map_err(|error| error.context(format!("partition field `{}`", self.name)))
    }
}

fn internal(cause: ArrowError) -> Error {
    Error::new(ErrorKind::Internal, "a batch could not be split by partition").with_source(cause)
}

/// The indices that lead to a field through structs.
fn struct_path(schema: &Schema, id: i32) -> Option<Vec<usize>> {
    fn search(fields: &[NestedFieldRef], id: i32) -> Option<Vec<usize>> {
        fields.iter().enumerate().find_map(|(index, field)| {
            if field.id == id {
                return Some(vec![index]);
            }
            let Type::Struct(inner) = field.field_type.as_ref() else { return None };
            let rest = search(inner.fields(), id)?;
            Some([&[index], rest.as_slice()].concat())
        })
    }
    search(schema.as_struct().fields(), id)
}

#[cfg(test)]
mod tests;
