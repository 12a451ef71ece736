//! From Kafka messages to Arrow record batches, exactly.
//!
//! A [`Decoder`] takes a batch of messages and returns one [`RecordBatch`] in the Arrow form of the table's schema,
//! with an [`Outcome`] for each message. A value that does not fit rejects its message and leaves no trace of it in
//! the batch; the other messages are unharmed. Nothing wraps, is truncated, is rounded or becomes null in silence.
//!
//! Columns are found by the names and field ids of the table's schema, never by position.
//!
//! The [`Format`] of messages is a closed choice: [`json`], [`avro`], [`raw`], each with its rules in its module; the codes of
//! rejects are in [`RejectCode`]. [`decoder()`] makes the decoder that the options ask for.

use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use iceberg::spec::Schema;

pub mod avro;
mod bytes;
mod column;
pub mod fate;
pub(crate) mod fault;
mod frame;
pub mod json;
mod kafka;
pub(crate) mod number;
mod options;
mod plan;
mod push;
pub mod raw;
mod reject;
#[cfg(test)]
mod tests;
mod time;

pub use avro::AvroDecoder;
pub use json::JsonDecoder;
pub(crate) use kafka::KAFKA_COLUMN;
pub use options::{
    BinaryText, ColumnOptions, DecodeOptions, Format, KafkaColumns, NumberText, StringValues,
    TimestampNumbers, TimestampPrecision, Tombstones, UnknownFields,
};
pub use raw::RawDecoder;
pub use reject::{Reject, RejectCode};

/// One Kafka message, borrowed from whoever fetched it.
#[derive(Debug, Clone, Default)]
pub struct Message<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition's number.
    pub partition: i32,
    /// The offset in the partition.
    pub offset: i64,
    /// Kafka's timestamp in milliseconds since the epoch, whichever kind the topic has.
    pub timestamp_ms: Option<i64>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value; `None` for a tombstone.
    pub payload: Option<&'a [u8]>,
    /// The headers in order. An empty vector does not allocate.
    pub headers: Vec<Header<'a>>,
}

/// A header of a Kafka message. Names may repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The name.
    pub key: &'a str,
    /// The value.
    pub value: Option<&'a [u8]>,
}

/// Turns messages into record batches of one schema.
pub trait Decoder: fmt::Debug + Send {
    /// The schema of the batches.
    fn arrow_schema(&self) -> &SchemaRef;

    /// Decodes messages into one batch. Row `i` is the `i`-th message whose outcome is [`Outcome::Row`].
    ///
    /// An error concerns the whole call, and nothing of it stays in the decoder: the same messages may be given again.
    fn decode(&mut self, messages: &[Message<'_>]) -> Result<Decoded, DecodeError>;
}

/// The decoder of the format that the options name. `arrow_schema` is the Arrow form of `schema` with field ids, as data
/// files are written.
pub fn decoder(
    schema: &Schema,
    arrow_schema: SchemaRef,
    options: &DecodeOptions,
) -> Result<Box<dyn Decoder>, DecodeError> {
    Ok(match &options.format {
        Format::Json => Box::new(JsonDecoder::new(schema, arrow_schema, options)?),
        Format::Avro { schema: writer } => Box::new(AvroDecoder::new(schema, arrow_schema, options, writer)?),
        Format::Raw => Box::new(RawDecoder::new(schema, arrow_schema, options)?),
    })
}

/// A batch of rows with the outcome of each message.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The rows, in message order.
    pub batch: RecordBatch,
    /// One for each message, in message order.
    pub outcomes: Vec<Outcome>,
    /// Fields that the schema does not know and that were passed over, in messages that became rows.
    pub unknown_fields: u64,
}

impl Decoded {
    /// The messages that were rejected, each with its index.
    pub fn rejects(&self) -> impl Iterator<Item = (usize, &Reject)> {
        self.outcomes.iter().enumerate().filter_map(|(index, outcome)| match outcome {
            Outcome::Rejected(reject) => Some((index, reject.as_ref())),
            Outcome::Row | Outcome::Skipped => None,
        })
    }
}

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is the next row of the batch.
    Row,
    /// It was passed over by configuration ([`Tombstones::Skip`]). The ledger counts it as rejected.
    Skipped,
    /// It is no row of this table.
    Rejected(Box<Reject>),
}

/// Why a decoder could not be made, or a whole call failed. Never about a single message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The table has a column that cannot be filled from messages.
    #[error("column `{path}` {reason}")]
    UnsupportedColumn {
        /// The column, dotted.
        path: String,
        /// What it has, and what to do.
        reason: String,
    },
    /// An option that contradicts the schema.
    #[error("option for column `{path}`: {reason}")]
    Option {
        /// The column, dotted.
        path: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The writer's schema cannot be used.
    #[error("the Avro schema of the messages {reason}")]
    WriterSchema {
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The messages of one call hold more bytes than one batch can.
    #[error("{bytes} bytes of messages in one batch, the limit is {limit}: decode fewer messages at a time")]
    BatchTooLarge {
        /// The bytes given.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Arrow refused the columns: a defect of the decoder.
    #[error("the decoded columns do not form a batch")]
    Arrow(#[from] ArrowError),
}
