//! Field ids for files that have none, from the table's name mapping (specification, "name mapping
//! serialization").

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};
use iceberg::spec::{DEFAULT_SCHEMA_NAME_MAPPING, MappedField, NameMapping};
use iceberg::table::Table;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::files::project::field_id;
use crate::{Error, ErrorKind, Result};

/// The table's name mapping; `Configuration` where it is not valid JSON of that form.
pub(super) fn of_table(table: &Table) -> Result<Option<NameMapping>> {
    let Some(text) = table.metadata().properties().get(DEFAULT_SCHEMA_NAME_MAPPING) else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(|cause| {
        Error::new(
            ErrorKind::Configuration,
            format!("table property `{DEFAULT_SCHEMA_NAME_MAPPING}` is no name mapping"),
        )
        .with_source(cause)
    })
}

/// Whether any field, at any depth, has an id.
pub(super) fn has_ids(fields: &Fields) -> bool {
    fields.iter().any(|field| {
        field_id(field).is_some()
            || match field.data_type() {
                DataType::Struct(inner) => has_ids(inner),
                DataType::List(inner) | DataType::Map(inner, _) => {
                    has_ids(&Fields::from(vec![Arc::clone(inner)]))
                }
                _ => false,
            }
    })
}

/// The fields with the ids that the mapping gives their names. What it does not name gets none.
pub(super) fn with_ids(fields: &Fields, mapping: &NameMapping) -> Fields {
    let mapped: Vec<&MappedField> = mapping.fields().iter().collect();
    fields.iter().map(|field| with_id(field, field.name(), &mapped)).collect()
}

fn with_id(field: &FieldRef, name: &str, mapped: &[&MappedField]) -> FieldRef {
    let found = mapped.iter().find(|candidate| candidate.names().iter().any(|known| known == name));
    let inner: Vec<&MappedField> =
        found.map(|found| found.fields().iter().map(Arc::as_ref).collect()).unwrap_or_default();
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|child| with_id(child, child.name(), &inner)).collect())
        }
        DataType::List(element) => DataType::List(with_id(element, "element", &inner)),
        DataType::Map(entries, sorted) => DataType::Map(with_entry_ids(entries, &inner), *sorted),
        other => other.clone(),
    };
    let metadata = found
        .and_then(|found| found.field_id())
        .map(|id| HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]))
        .unwrap_or_default();
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata))
}

fn with_entry_ids(entries: &FieldRef, mapped: &[&MappedField]) -> FieldRef {
    let DataType::Struct(fields) = entries.data_type() else { return Arc::clone(entries) };
    let named =
        fields.iter().zip(["key", "value"]).map(|(field, name)| with_id(field, name, mapped)).collect();
    Arc::new(Field::new(entries.name(), DataType::Struct(named), entries.is_nullable()))
}
