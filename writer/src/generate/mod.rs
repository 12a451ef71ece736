//! Messages from a template: the same seed and index give the same message, whoever asks and whenever.

use iceberg::spec::Schema;

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
#[derive(Debug, Clone, PartialEq)]
pub struct Template {}

/// One generated message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The key, where the template names a key field.
    pub key: Option<Vec<u8>>,
    /// The JSON text.
    pub payload: Vec<u8>,
    /// The partition, `0..partitions`.
    pub partition: i32,
}

/// Makes the messages of one seed.
#[derive(Debug, Clone)]
pub struct Generator {
    _template: Template,
}

impl Template {
    /// Events of about 1 KiB with 12 fields: id, ts, user_id, kind, country, url, amount, duration_ms, ok, tags, session, text.
    #[must_use]
    pub fn default_events() -> Self {
        Self {}
    }

    /// Reads a template from TOML.
    pub fn from_toml(text: &str) -> Result<Self, TemplateError> {
        let _ = text;
        unimplemented!()
    }

    /// The template as TOML.
    #[must_use]
    pub fn to_toml(&self) -> String {
        unimplemented!()
    }

    /// The Iceberg schema that fits the messages, with fresh ids.
    #[must_use]
    pub fn schema(&self) -> Schema {
        unimplemented!()
    }

    /// A generator for a topic with `partitions` partitions.
    pub fn generator(&self, seed: u64, partitions: i32) -> Result<Generator, TemplateError> {
        let _ = (seed, partitions);
        unimplemented!()
    }
}

impl Generator {
    /// The `index`-th message. Timestamps are near `now_ms` (milliseconds since the epoch), which the caller gives:
    /// the same index and `now_ms` give the same message.
    #[must_use]
    pub fn message(&self, index: u64, now_ms: i64) -> Generated {
        let _ = (index, now_ms);
        unimplemented!()
    }
}
