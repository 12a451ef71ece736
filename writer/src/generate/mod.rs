//! Messages from a template: the same seed, index and clock give the same message, whoever asks and whenever.
//!
//! A [`Template`] says what the fields of a JSON object, or of an Avro record, look like; it is read from TOML and has a table schema that
//! fits. A [`Generator`] makes its messages one by one, each from its index alone, so that tests can recount them.
//! Nothing here touches Kafka or reads the clock.
//!
//! ```
//! use firn_writer::generate::Template;
//!
//! let template = Template::from_toml(
//!     r#"
//!     key = "user"
//!     message_bytes = 200
//!     fields = [
//!         { name = "id", kind = "sequence" },
//!         { name = "user", kind = "zipf", keys = 1000, exponent = 1.2, prefix = "u-" },
//!         { name = "price", kind = "decimal", min = 1, max = 500, scale = 2, nulls = 0.1 },
//!         { name = "note", kind = "text" },
//!     ]
//!     "#,
//! )?;
//! let generator = template.generator(7, 4)?;
//! assert_eq!(generator.message(41, 0), generator.message(41, 0));
//! # Ok::<(), firn_writer::generate::TemplateError>(())
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod avro;
mod bad;
mod generator;
mod json;
pub(crate) mod random;
mod template;
#[cfg(test)]
mod tests;
mod words;

pub use bad::Bad;
pub use generator::{Generated, Generator};

/// A template that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("template: {path}: {reason}")]
pub struct TemplateError {
    /// Where in the template.
    pub path: String,
    /// What is wrong, and what to do.
    pub reason: String,
}

/// What messages look like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The field whose value is the message's key; without it messages have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How messages are spread over partitions.
    #[serde(default)]
    pub partitioning: Partitioning,
    /// About how long messages are: the field of kind `text` is as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<usize>,
    /// How messages are encoded.
    #[serde(default)]
    pub format: Format,
    /// The share of messages that no decoder takes: cut off, no UTF-8, with something behind, or no object, all alike.
    #[serde(default)]
    pub bad_share: f64,
    /// The share of messages that are bad in one way, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bad: BTreeMap<Bad, f64>,
    /// The fields, in the order of the message and of the table's columns.
    pub fields: Vec<FieldTemplate>,
}

/// How messages are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// As a JSON object.
    #[default]
    Json,
    /// As a bare record in Avro's binary encoding, with the values that the JSON message of the same seed has. Absent
    /// fields are null.
    Avro,
}

/// How messages are spread over partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partitioning {
    /// One after the other.
    #[default]
    RoundRobin,
    /// By the key, as Kafka's Java producer does it (murmur2); messages without a key one after the other.
    Key,
}

/// One field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldTemplate {
    /// Its name.
    pub name: String,
    /// The share of messages in which it is null. A field that never is null or absent is required in the schema.
    #[serde(default)]
    pub nulls: f64,
    /// The share of messages in which it is absent.
    #[serde(default)]
    pub absent: f64,
    /// Its values.
    #[serde(flatten)]
    pub kind: FieldKind,
}

/// The values of a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FieldKind {
    /// `start + index` (long).
    Sequence {
        /// The value in the first message.
        #[serde(default)]
        start: i64,
    },
    /// Integers, all alike (int where the bounds are, else long).
    Int {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// Keys from 1 on of which the `k`-th comes with a weight of `k^-exponent` (long; string with a prefix).
    Zipf {
        /// How many.
        keys: u32,
        /// How skewed: 0 is uniform.
        exponent: f64,
        /// Text before the number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<String>,
    },
    /// Numbers with a fraction, all alike (double).
    Float {
        /// The least.
        min: f64,
        /// The bound that is not reached.
        max: f64,
    },
    /// Numbers of a fixed number of decimals, all alike (decimal of precision 18).
    Decimal {
        /// The least, whole.
        min: i64,
        /// The greatest, whole.
        max: i64,
        /// Decimals.
        scale: u32,
    },
    /// True with this share (boolean).
    Boolean {
        /// The share.
        share: f64,
    },
    /// Letters and digits (string).
    String {
        /// How many.
        length: usize,
    },
    /// Characters of many scripts, of one to four bytes each (string).
    Unicode {
        /// How many.
        length: usize,
    },
    /// One of these (string), the first ones more often where `weights` say so.
    Choice {
        /// The values.
        values: Vec<String>,
        /// Their weights; all alike without.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        weights: Vec<f64>,
    },
    /// Some of these, in their order (list of string).
    Tags {
        /// The values.
        values: Vec<String>,
        /// The most that one message has.
        max: usize,
    },
    /// Addresses of pages (string).
    Url {
        /// How many pages there are.
        pages: u32,
    },
    /// UUIDs (uuid).
    Uuid {},
    /// The clock less a random delay, in RFC 3339 with microseconds (timestamptz).
    Timestamp {
        /// The longest delay.
        #[serde(default)]
        max_delay_ms: u32,
        /// The share of messages that are later than that.
        #[serde(default)]
        late_share: f64,
        /// The longest delay of these.
        #[serde(default)]
        max_late_ms: u32,
    },
    /// English words until the message is as long as it should be (string). One field of a template at most.
    Text {},
}
