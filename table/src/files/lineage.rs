//! Row lineage of format version 3: the two columns in which rewritten rows keep what they would otherwise inherit
//! anew (specification, "Row lineage").

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use iceberg::spec::{FormatVersion, NestedField, PrimitiveType, Schema, SchemaRef, TableMetadata, Type};

use crate::layout::LiveFile;
use crate::{Error, ErrorKind, Result};

/// The field ids of `_row_id` and `_last_updated_sequence_number`.
const ROW_ID: i32 = i32::MAX - 107;
const LAST_UPDATED: i32 = i32::MAX - 108;
const NAMES: [&str; 2] = ["_row_id", "_last_updated_sequence_number"];

/// The schema in which files of a table are rewritten: the current one and, in format version 3, the two columns of
/// lineage behind it.
pub fn rewrite_schema(metadata: &TableMetadata) -> Result<SchemaRef> {
    let current = metadata.current_schema();
    if metadata.format_version() < FormatVersion::V3 {
        return Ok(Arc::clone(current));
    }
    let long = || Type::Primitive(PrimitiveType::Long);
    let lineage = [
        NestedField::optional(ROW_ID, NAMES[0], long()).into(),
        NestedField::optional(LAST_UPDATED, NAMES[1], long()).into(),
    ];
    let schema = Schema::builder()
        .with_schema_id(current.schema_id())
        .with_fields(current.as_struct().fields().iter().cloned().chain(lineage))
        .with_identifier_field_ids(current.identifier_field_ids())
        .build()?;
    Ok(Arc::new(schema))
}

/// Makes the lineage of rows explicit in a batch of [`rewrite_schema`] that was read from `file`; a batch without these
/// columns stays as it is. `position` is that of its first row. Rows keep what the file has stored of them; others
/// have the file's first row id and their position, and its sequence number. Null where the file has no first row id.
pub fn with_lineage(batch: RecordBatch, file: &LiveFile, position: u64) -> Result<RecordBatch> {
    let schema = batch.schema();
    let names = schema.fields().iter().rev().take(NAMES.len()).rev().map(|field| field.name().as_str());
    let Some(first_row_id) = file.file.first_row_id().filter(|_| names.eq(NAMES)) else { return Ok(batch) };
    let beyond = || Error::new(ErrorKind::Data, "row ids of a file exceed 64 bits");
    let first =
        i64::try_from(position).ok().and_then(|at| first_row_id.checked_add(at)).ok_or_else(beyond)?;
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    let at = columns.len() - NAMES.len();
    let row_ids = columns[at].as_primitive::<Int64Type>();
    let row_ids: Int64Array =
        row_ids.iter().zip(first..).map(|(stored, inherited)| Some(stored.unwrap_or(inherited))).collect();
    let updated = columns[at + 1].as_primitive::<Int64Type>();
    let updated: Int64Array =
        updated.iter().map(|stored| Some(stored.unwrap_or(file.sequence_number))).collect();
    columns[at] = Arc::new(row_ids);
    columns[at + 1] = Arc::new(updated);
    RecordBatch::try_new(schema, columns).map_err(|cause| {
        Error::new(ErrorKind::Internal, "a batch with lineage does not fit its schema").with_source(cause)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use iceberg::arrow::schema_to_arrow_schema;
    use iceberg::spec::{
        DataContentType, DataFileBuilder, DataFileFormat, PartitionSpec, SortOrder, TableMetadataBuilder,
    };

    use super::*;

    fn metadata(version: FormatVersion) -> TableMetadata {
        let id = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into();
        let schema = Schema::builder().with_fields([id]).build().unwrap();
        let spec = PartitionSpec::unpartition_spec().into_unbound();
        let location = "memory:///t".to_owned();
        let unsorted = SortOrder::unsorted_order();
        let builder = TableMetadataBuilder::new(schema, spec, unsorted, location, version, HashMap::new());
        builder.unwrap().build().unwrap().metadata
    }

    fn file(first_row_id: Option<i64>) -> LiveFile {
        let file = DataFileBuilder::default()
            .content(DataContentType::Data)
            .file_path("f".to_owned())
            .file_format(DataFileFormat::Parquet)
            .record_count(10)
            .file_size_in_bytes(10)
            .first_row_id(first_row_id)
            .build()
            .unwrap();
        LiveFile {
            file: Arc::new(file),
            spec_id: 0,
            partition_path: String::new(),
            sequence_number: 4,
            file_sequence_number: 5,
            snapshot_id: 1,
            added_at_ms: None,
            manifest_path: "m".into(),
        }
    }

    fn lineage(
        stored: [Vec<Option<i64>>; 2],
        first_row_id: Option<i64>,
        position: u64,
    ) -> [Vec<Option<i64>>; 2] {
        let schema = rewrite_schema(&metadata(FormatVersion::V3)).unwrap();
        let schema = Arc::new(schema_to_arrow_schema(&schema).unwrap());
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((0..).take(stored[0].len())));
        let [row_ids, updated] = stored.map(|column| -> ArrayRef { Arc::new(Int64Array::from(column)) });
        let batch = RecordBatch::try_new(schema, vec![ids, row_ids, updated]).unwrap();
        let batch = with_lineage(batch, &file(first_row_id), position).unwrap();
        [1, 2].map(|at| batch.column(at).as_primitive::<Int64Type>().iter().collect())
    }

    #[test]
    fn rows_keep_what_is_stored_and_inherit_the_rest() {
        let stored = [vec![None, Some(7), None], vec![None, Some(2), Some(3)]];
        let expected = [vec![Some(120), Some(7), Some(122)], vec![Some(4), Some(2), Some(3)]];
        assert_eq!(lineage(stored, Some(100), 20), expected);
    }

    #[test]
    fn rows_of_a_file_without_a_first_row_id_have_no_lineage() {
        let none = [vec![None, None], vec![None, None]];
        assert_eq!(lineage(none.clone(), None, 20), none);
    }

    #[test]
    fn only_format_version_3_has_the_columns() {
        let columns = |version| rewrite_schema(&metadata(version)).unwrap().as_struct().fields().len();
        assert_eq!((columns(FormatVersion::V2), columns(FormatVersion::V3)), (1, 3));
    }
}
