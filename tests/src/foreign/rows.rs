//! Columns of a Parquet file by field id.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::Schema as ArrowSchema;
use arrow_select::concat::concat;
use bytes::Bytes;
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{DataFile, Schema};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The columns at the top level of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct FileColumns {
    pub(super) rows: usize,
    pub(super) columns: BTreeMap<i32, ArrayRef>,
}

impl FileColumns {
    /// Reads a whole file.
    pub(super) fn of_parquet(bytes: Bytes) -> Result<Self> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)?.build()?;
        let mut parts: BTreeMap<i32, Vec<ArrayRef>> = BTreeMap::new();
        let mut rows = 0;
        for batch in reader {
            let batch = batch?;
            rows += batch.num_rows();
            for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
                let id =
                    field.metadata().get(PARQUET_FIELD_ID_META_KEY).context("a column with a field id")?;
                parts.entry(id.parse()?).or_default().push(column.clone());
            }
        }
        let whole = |arrays: Vec<ArrayRef>| -> Result<ArrayRef> {
            Ok(concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?)
        };
        let columns =
            parts.into_iter().map(|(id, arrays)| Ok((id, whole(arrays)?))).collect::<Result<_>>()?;
        Ok(Self { rows, columns })
    }

    /// The rows as the schema has them: columns that the file lacks are null.
    pub(super) fn by_schema(&self, schema: &Schema) -> Result<RecordBatch> {
        let arrow = schema_to_arrow_schema(schema)?;
        let mut columns = Vec::new();
        for (field, typed) in schema.as_struct().fields().iter().zip(arrow.fields()) {
            columns.push(match self.columns.get(&field.id) {
                Some(column) => cast(column, typed.data_type())?,
                None => new_null_array(typed.data_type(), self.rows),
            });
        }
        let fields: Vec<_> =
            arrow.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        Ok(RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), columns, &options)?)
    }

    /// A text for each row: its values by the names of the schema.
    pub(super) fn texts(&self, schema: &Schema) -> Result<Vec<String>> {
        let batch = self.by_schema(schema)?;
        let mut texts = vec![String::new(); self.rows];
        for (field, column) in schema.as_struct().fields().iter().zip(batch.columns()) {
            for (text, value) in texts.iter_mut().zip(values(column)?) {
                if !text.is_empty() {
                    text.push_str(", ");
                }
                text.push_str(&field.name);
                text.push('=');
                text.push_str(value.as_deref().unwrap_or("null"));
            }
        }
        Ok(texts)
    }

    /// A column's values as text; all null where the file lacks it.
    pub(super) fn values(&self, field_id: i32) -> Result<Vec<Option<String>>> {
        self.columns.get(&field_id).map_or_else(|| Ok(vec![None; self.rows]), values)
    }

    /// A column of numbers; all null where the file lacks it.
    pub(super) fn numbers(&self, field_id: i32) -> Result<Vec<Option<i64>>> {
        let Some(column) = self.columns.get(&field_id) else { return Ok(vec![None; self.rows]) };
        let column = cast(column, &arrow_schema::DataType::Int64)?;
        let numbers = column.as_any().downcast_ref::<Int64Array>().context("a column of numbers")?;
        Ok(numbers.iter().collect())
    }
}

fn values(column: &ArrayRef) -> Result<Vec<Option<String>>> {
    // An int and the long it was promoted to have one text; of a float and its double the double's counts.
    let column = match column.data_type() {
        arrow_schema::DataType::Float32 => cast(column, &arrow_schema::DataType::Float64)?,
        _ => column.clone(),
    };
    let options = FormatOptions::new();
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options)?;
    let value = |row| column.is_valid(row).then(|| formatter.value(row).to_string());
    Ok((0..column.len()).map(value).collect())
}

/// Whether a delete file is a deletion vector.
pub(super) fn is_vector(file: &DataFile) -> bool {
    file.file_format() == iceberg::spec::DataFileFormat::Puffin
}
