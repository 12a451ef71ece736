//! Schemas and partition specs from what people have: Iceberg JSON, Avro JSON, a sample of messages, `day(ts)`.

use std::collections::BTreeMap;

use iceberg::spec::{Schema, UnboundPartitionSpec};

use crate::decode::{ColumnOptions, Message};

/// A schema, spec or expression that cannot be used, or a sample that has no one schema.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text is no schema.
    #[error("{what} is not valid: {reason}")]
    Invalid {
        /// What was read: `the Iceberg schema`, `the partition field `day(`` …
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
    #[error("the sample has no one type for {} field(s): {}", .0.len(), list(.0))]
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

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` holds ", self.path)?;
        for (index, (kind, example)) in self.kinds.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{kind} (first at {example})")?;
        }
        Ok(())
    }
}

/// Reads a schema in Iceberg's JSON form or an Avro record schema, whichever the text is.
pub fn parse_schema(text: &str) -> Result<Schema, SchemaError> {
    let _ = text;
    unimplemented!()
}

/// Parses partition field expressions against a schema: `ts`, `identity(ts)`, `bucket(16, id)`, `truncate(4, s)`,
/// `year(ts)`, `month(ts)`, `day(ts)`, `hour(ts)`, `void(x)`, each with `as NAME` where Iceberg's default name does not suit.
pub fn parse_partition_spec<S: AsRef<str>>(
    expressions: &[S],
    schema: &Schema,
) -> Result<UnboundPartitionSpec, SchemaError> {
    let _ = (expressions, schema);
    unimplemented!()
}

/// The struct column `_kafka` (topic, partition, offset, timestamp, key, headers) added to a schema that is yet to be created.
pub fn with_kafka_columns(schema: &Schema) -> Result<Schema, SchemaError> {
    let _ = schema;
    unimplemented!()
}

/// What inference does with a field that has values of kinds without a common type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Refuse the sample.
    #[default]
    Fail,
    /// Make it a string column that holds the JSON text ([`StringValues::JsonText`](crate::decode::StringValues)).
    String,
}

/// Collects the shape of sample messages. The result does not depend on their order.
#[derive(Debug, Default)]
pub struct Inference {
    _private: (),
}

/// A schema inferred from a sample.
#[derive(Debug, Clone)]
pub struct Inferred {
    /// The schema, with fresh ids; every column is optional.
    pub schema: Schema,
    /// Options that the decoder needs for it, by column path, for [`DecodeOptions::columns`](crate::decode::DecodeOptions).
    pub columns: BTreeMap<String, ColumnOptions>,
    /// Fields that were left out, with the reason.
    pub omitted: Vec<(String, String)>,
    /// Messages that shaped the schema.
    pub messages: u64,
    /// Messages that could not be used (not a JSON object), with the first one's place and reason.
    pub unusable: u64,
    /// The first unusable message: `topic/partition@offset: reason`.
    pub first_unusable: Option<String>,
}

impl Inference {
    /// Takes one message into account. Tombstones tell nothing.
    pub fn observe(&mut self, message: &Message<'_>) {
        let _ = message;
    }

    /// The schema of all messages seen.
    pub fn finish(&self, on_conflict: OnConflict) -> Result<Inferred, SchemaError> {
        let _ = on_conflict;
        unimplemented!()
    }
}
