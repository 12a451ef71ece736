//! Names: where manifests go, and which partition field names a manifest can hold.

use std::sync::{Mutex, PoisonError};

use iceberg::spec::{PartitionSpec, PrimitiveType, Schema, SchemaRef, TableMetadata, Transform, Type};
use uuid::Uuid;

use crate::{Error, ErrorKind, Result};

/// Names for the manifests and manifest lists of one commit. None is ever given twice, also not to a later call
/// that tries the same commit again.
#[derive(Debug)]
pub(crate) struct MetadataNames {
    directory: String,
    unique: Uuid,
    given: Mutex<Vec<String>>,
}

impl MetadataNames {
    /// Names in the table's metadata folder (`write.metadata.path`, or `metadata` in its location).
    /// `unique` is a UUID that no other commit has.
    pub(crate) fn of_table(metadata: &TableMetadata, unique: Uuid) -> Self {
        let directory = match metadata.properties().get("write.metadata.path") {
            Some(path) => path.trim_end_matches('/').to_owned(),
            None => format!("{}/metadata", metadata.location().trim_end_matches('/')),
        };
        Self { directory, unique, given: Mutex::default() }
    }

    /// The location of the next manifest.
    pub(crate) fn manifest(&self) -> String {
        self.give(|number| format!("{}/{}-m{number}.avro", self.directory, self.unique))
    }

    /// The location of the next manifest list of a snapshot: one for each attempt.
    pub(crate) fn list(&self, snapshot_id: i64) -> String {
        self.give(|number| format!("{}/snap-{snapshot_id}-{number}-{}.avro", self.directory, self.unique))
    }

    /// All locations so far, whether they were written or not.
    pub(crate) fn given(&self) -> Vec<String> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn give(&self, name: impl FnOnce(usize) -> String) -> String {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let name = name(given.len());
        given.push(name.clone());
        name
    }
}

/// Refuses a spec that a manifest cannot hold so that every engine reads it back: a partition field name that Avro
/// forbids (manifests with it are refused by `iceberg` 0.10.1 itself, and those of Java have other names in it), a
/// transform that is not known, or a UUID as a partition value, which `iceberg` 0.10.1 cannot write.
pub(crate) fn check_spec(spec: &PartitionSpec, schema: &Schema) -> Result<()> {
    let refused = |field: &str, why: &str| {
        let message =
            format!("partition field `{field}` of spec {} {why}: nothing was written", spec.spec_id());
        Err(Error::new(ErrorKind::Unsupported, message))
    };
    for field in spec.fields() {
        if !is_avro_name(&field.name) {
            return refused(
                &field.name,
                "has a name that Avro forbids (letters, digits and `_` are allowed)",
            );
        }
        if field.transform == Transform::Unknown {
            return refused(&field.name, "has a transform that firn does not know");
        }
    }
    let types = spec.partition_type(schema)?;
    let uuid = Type::Primitive(PrimitiveType::Uuid);
    match types.fields().iter().find(|field| *field.field_type == uuid) {
        Some(field) => refused(&field.name, "holds UUIDs, which firn cannot write into a manifest yet"),
        None => Ok(()),
    }
}

/// Avro's rule for names: a letter or `_`, then letters, digits and `_`.
pub(crate) fn is_avro_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The schema for the header of a manifest of `spec`: the table's current one, or, where that lacks a dropped
/// source column, the newest one that has all of them.
pub(crate) fn schema_of_spec(metadata: &TableMetadata, spec: &PartitionSpec) -> Result<SchemaRef> {
    let current = metadata.current_schema();
    if spec.partition_type(current).is_ok() {
        return Ok(current.clone());
    }
    metadata
        .schemas_iter()
        .filter(|schema| spec.partition_type(schema).is_ok())
        .max_by_key(|schema| schema.schema_id())
        .cloned()
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                format!(
                    "no schema of the table has all source columns of partition spec {}: its files cannot be \
                     committed",
                    spec.spec_id()
                ),
            )
        })
}
