//! What a deployment declares about its messages.
//!
//! The defaults read only what can be read in one way. Everything else is declared, for all columns or for one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::DecodeError;

/// The deepest nesting that may be allowed: reading is recursive.
const MAX_DEPTH: usize = 512;

/// How messages become rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DecodeOptions {
    /// What the bytes of a message's value are.
    pub format: Format,
    /// Fields that the schema does not know.
    pub unknown_fields: UnknownFields,
    /// Messages without a value.
    pub tombstones: Tombstones,
    /// Whether the columns `_kafka` and `_kafka_*` are filled with where a message came from.
    pub kafka_columns: KafkaColumns,
    /// How deep arrays and objects may be nested; the message itself is the first level.
    pub max_depth: usize,
    /// How many values the lists and maps of one message may stand for, absent fields of their elements included.
    pub max_values: usize,
    /// What holds for columns that `columns` does not name.
    pub defaults: ColumnOptions,
    /// What holds for single columns, by dotted path: `o.a`, `tags.element`, `m.value`. Complete: it replaces `defaults`.
    pub columns: BTreeMap<String, ColumnOptions>,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self {
            format: Format::default(),
            unknown_fields: UnknownFields::default(),
            tombstones: Tombstones::default(),
            kafka_columns: KafkaColumns::default(),
            max_depth: 128,
            max_values: 1 << 20,
            defaults: ColumnOptions::default(),
            columns: BTreeMap::new(),
        }
    }
}

impl DecodeOptions {
    /// Refuses a depth that would exhaust the stack.
    pub(super) fn check_depth(&self) -> Result<(), DecodeError> {
        if self.max_depth > MAX_DEPTH {
            let reason = format!("{} is more than {MAX_DEPTH}", self.max_depth);
            return Err(DecodeError::Option { path: "max-depth".to_owned(), reason });
        }
        Ok(())
    }
}

/// What the bytes of a message's value are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A JSON object ([`super::json`]).
    #[default]
    Json,
    /// One Avro datum in binary form, without header or schema id ([`super::avro`]).
    Avro {
        /// The writer's schema, a record, as JSON text.
        schema: String,
    },
    /// Any bytes, kept as they are together with the key's ([`super::raw`]).
    Raw,
}

/// What is declared about the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ColumnOptions {
    /// Numbers in timestamp columns.
    pub timestamp_numbers: TimestampNumbers,
    /// Digits of a timestamp or time beyond the column's unit.
    pub timestamp_precision: TimestampPrecision,
    /// Text in binary and fixed columns.
    pub binary: BinaryText,
    /// Text in number columns.
    pub numbers: NumberText,
    /// Values other than text in string columns.
    pub strings: StringValues,
}

/// Fields that the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownFields {
    /// Passed over and counted; they must be well-formed all the same.
    #[default]
    Ignore,
    /// The message is rejected.
    Reject,
}

/// Messages without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tombstones {
    /// Rejected with the code `tombstone`.
    #[default]
    Reject,
    /// Passed over.
    Skip,
    /// A row without values: columns filled from the message's value are null, those of its key and metadata are not.
    Row,
}

/// Columns that hold where a message came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KafkaColumns {
    /// Columns of that name are filled from the message's own fields like any other.
    #[default]
    Off,
    /// A struct column `_kafka` and columns `_kafka_topic`, `_kafka_partition`, `_kafka_offset`, `_kafka_timestamp`,
    /// `_kafka_key`, `_kafka_headers`, as far as the table has them, are filled from the message's metadata.
    On,
}

/// Numbers in timestamp columns: the unit of time since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimestampNumbers {
    /// Rejected: the unit is not known.
    #[default]
    Reject,
    /// Seconds, with a fraction where there is one.
    Seconds,
    /// Milliseconds, with a fraction where there is one.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

/// Digits of a timestamp or time beyond the column's unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimestampPrecision {
    /// Rejected, unless they are zeros.
    #[default]
    Exact,
    /// A declared loss: cut off, towards the past.
    Truncate,
}

/// Text in binary and fixed columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BinaryText {
    /// Rejected: the encoding is not known.
    #[default]
    Reject,
    /// Base64 of RFC 4648 section 4, padded.
    Base64,
    /// Two hexadecimal digits a byte.
    Hex,
    /// The text's own UTF-8 bytes.
    Utf8,
}

/// Text in number columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NumberText {
    /// Rejected.
    #[default]
    Reject,
    /// Read by JSON's grammar for numbers: `"12"`, `"-1.5e3"`.
    Parse,
}

/// Values other than text in string columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StringValues {
    /// Rejected.
    #[default]
    Strict,
    /// A declared loss: numbers, booleans, arrays and objects become their JSON text as it stands in the message;
    /// text stays as it is, so `1` and `"1"` become the same.
    JsonText,
}
