//! Schemas and partition specs from what people have: Iceberg JSON, Avro JSON, a sample of messages, `day(ts)`.
//!
//! Everything here is pure. Ids of a schema in Iceberg's JSON form are as given; all others are assigned anew from 1 on.
//! A catalog may renumber them on create, so a writer goes by the schema that the catalog returned.

use std::fmt;

use iceberg::spec::Schema;
use serde_json::Value;

mod avro;
mod ids;
mod infer;
mod kafka;
mod partition;
mod raw;
mod shape;
#[cfg(test)]
mod tests;

pub use infer::{Inference, Inferred, OnConflict};
pub use kafka::with_kafka_columns;
pub use partition::parse_partition_spec;
pub use raw::raw_schema;

/// A schema, spec or expression that cannot be used, or a sample that has no one schema.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text is no schema.
    #[error("{what} is not valid: {reason}")]
    Invalid {
        /// What was read.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// The schema has something that has no counterpart in Iceberg.
    #[error("`{path}` {reason}")]
    Unsupported {
        /// The field, dotted.
        path: String,
        /// What it is, and what to do.
        reason: String,
    },
    /// Messages of the sample contradict each other.
    #[error("the sample has no one type for {}: give a schema, or keep such fields as JSON text", list(.0))]
    Conflicts(Vec<Conflict>),
    /// The sample shows no column.
    #[error("no column can be inferred from the sample: {reason}")]
    NoColumns {
        /// Why.
        reason: String,
    },
}

fn list(conflicts: &[Conflict]) -> String {
    conflicts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A field whose values in the sample have no common type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The field, dotted.
    pub path: String,
    /// The kinds seen, each with a message that shows it, `topic/partition@offset`.
    pub kinds: Vec<(&'static str, String)>,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`, which holds ", self.path)?;
        for (index, (kind, example)) in self.kinds.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{kind} (at {example})")?;
        }
        Ok(())
    }
}

/// Reads a schema in Iceberg's JSON form (`"type": "struct"`) or an Avro record schema, whichever the text is.
///
/// An Iceberg schema keeps its ids. Of an Avro schema, logical types become Iceberg's types, a union with null becomes an
/// optional field, and what Iceberg cannot hold is refused with its path.
pub fn parse_schema(text: &str) -> Result<Schema, SchemaError> {
    let invalid = |what: &str, reason: String| SchemaError::Invalid { what: what.to_owned(), reason };
    let value: Value =
        serde_json::from_str(text).map_err(|error| invalid("the schema", error.to_string()))?;
    match value.get("type").and_then(Value::as_str) {
        Some("struct") => {
            let schema: Schema = serde_json::from_value(value)
                .map_err(|error| invalid("the Iceberg schema", error.to_string()))?;
            if schema.as_struct().fields().is_empty() {
                return Err(invalid("the Iceberg schema", "it has no fields".to_owned()));
            }
            Ok(schema)
        }
        Some("record") => avro::convert(&value),
        _ => {
            let reason = "it is neither an Iceberg schema (\"type\": \"struct\") nor an Avro record (\"type\": \"record\")";
            Err(invalid("the schema", reason.to_owned()))
        }
    }
}
