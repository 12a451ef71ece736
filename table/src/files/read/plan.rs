//! How the batches of one file become batches of the wanted schema.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use iceberg::spec::Literal;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema};
use parquet::basic::Type as Physical;
use parquet::schema::types::SchemaDescriptor;

use super::{DataFileReader, defaults, mapping};
use crate::files::project::{Child, apply_all, plan_fields};
use crate::{Error, ErrorKind, Result};

/// The plan for one file.
#[derive(Debug)]
pub(super) struct FilePlan {
    schema: SchemaRef,
    children: Vec<Child>,
    mask: ProjectionMask,
}

impl FilePlan {
    /// Matches the file's columns with those of the reader's schema.
    pub(super) fn new(
        reader: &DataFileReader,
        metadata: &ArrowReaderMetadata,
        constants: &HashMap<i32, Option<Literal>>,
    ) -> Result<Self> {
        let mut fields = metadata.schema().fields().clone();
        if !mapping::has_ids(&fields) {
            let mapping = reader.mapping.as_ref().ok_or_else(|| {
                Error::new(
                    ErrorKind::Unsupported,
                    "it has no field ids and the table has no name mapping: set `schema.name-mapping.default`",
                )
            })?;
            fields = mapping::with_ids(&fields, mapping);
        }
        let missing = |field: &Field| defaults::missing(&reader.schema, field, constants);
        let mut children = plan_fields(&fields, reader.arrow_schema.fields(), &missing)?;
        let mask = project_roots(&mut children, metadata.parquet_schema());
        Ok(Self { schema: Arc::clone(&reader.arrow_schema), children, mask })
    }

    /// The columns that are read.
    pub(super) fn mask(&self) -> &ProjectionMask {
        &self.mask
    }

    /// A batch of the file as one of the schema.
    pub(super) fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = apply_all(&self.children, batch.columns(), batch.num_rows())?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

/// Restricts reading to the columns that are used and renumbers them accordingly.
fn project_roots(children: &mut [Child], schema: &SchemaDescriptor) -> ProjectionMask {
    let mut roots: Vec<usize> = children
        .iter()
        .filter_map(|child| match child {
            Child::From(index, _) => Some(*index),
            Child::Constant(_) => None,
        })
        .collect();
    roots.sort_unstable();
    roots.dedup();
    for child in children {
        if let Child::From(index, _) = child {
            *index = roots.partition_point(|root| root < index);
        }
    }
    ProjectionMask::roots(schema, roots)
}

/// Options for a file of that Parquet schema: the Arrow types follow from it alone, whatever Arrow schema
/// another writer left in the metadata, and INT96 is read as microseconds, which hold all its dates.
pub(super) fn reader_options(schema: &SchemaDescriptor) -> Result<ArrowReaderOptions> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    if schema.columns().iter().all(|column| column.physical_type() != Physical::INT96) {
        return Ok(options);
    }
    let arrow = parquet_to_arrow_schema(schema, None).map_err(super::stream::read_error)?;
    let mut leaf = 0;
    let fields = with_micros(arrow.fields(), schema, &mut leaf);
    Ok(options.with_schema(Arc::new(Schema::new(fields))))
}

fn with_micros(fields: &Fields, schema: &SchemaDescriptor, leaf: &mut usize) -> Fields {
    fields.iter().map(|field| field_with_micros(field, schema, leaf)).collect()
}

fn field_with_micros(field: &FieldRef, schema: &SchemaDescriptor, leaf: &mut usize) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(inner) => DataType::Struct(with_micros(inner, schema, leaf)),
        DataType::List(element) => DataType::List(field_with_micros(element, schema, leaf)),
        DataType::Map(entries, sorted) => DataType::Map(field_with_micros(entries, schema, leaf), *sorted),
        other => {
            let int96 = schema.column(*leaf).physical_type() == Physical::INT96;
            *leaf += 1;
            if int96 { DataType::Timestamp(TimeUnit::Microsecond, None) } else { other.clone() }
        }
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}
