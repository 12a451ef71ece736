//! JSON messages.
//!
//! A message is one JSON object (RFC 8259), with white space around it at most. The text is read once, by a strict reader
//! that drives the columns of the table's schema; what a reject has already appended is cut off again. If a message
//! is both malformed and wrong for the schema, it counts as malformed.
//!
//! # What a JSON value becomes
//!
//! | column | from | else |
//! | --- | --- | --- |
//! | any | `null` or absent, where optional | `null-in-required`, `missing-field` |
//! | `boolean` | `true`, `false` | `wrong-type` (also `"yes"`, `"1"`, `1`) |
//! | `int`, `long` | a number whose value is an integer: `7`, `-0`, `1e3`, `2.0`, `9007199254740993` | `not-an-integer` (`2.9`), `out-of-range`, `wrong-type` |
//! | `float`, `double` | the nearest value to a decimal number; an integer that is held exactly | `precision-lost` (`16777217` into `float`), `out-of-range` (`1e300` into `float`; too small and not zero) |
//! | `decimal(p, s)` | a number whose value fits, read from its text: `1.50` fits a scale of 1 | `out-of-range`, `precision-lost` |
//! | number types | text of JSON's grammar for numbers, where declared ([`NumberText`](super::NumberText)) | `wrong-type`, `invalid-number` |
//! | `string` | text; other values as JSON text where declared ([`StringValues`](super::StringValues)) | `wrong-type`, `lone-surrogate` |
//! | `binary`, `fixed(n)` | text of a declared encoding ([`BinaryText`](super::BinaryText)) | `undeclared-encoding`, `invalid-encoding`, `wrong-length` |
//! | `uuid` | `"f79c3e09-677c-4bbd-a479-3f349cb785e7"`, any case | `invalid-uuid` |
//! | `date` | `"2026-01-02"` | `invalid-date` |
//! | `time` | `"03:04:05.123456"`, fraction optional | `invalid-time`, `precision-lost` |
//! | `timestamptz` | `"2026-01-02T03:04:05.123456+00:00"`, `Z`, any offset with colon; `t` or a space for `T` | `zone-missing`, `invalid-timestamp` (`+0000`, `+05`, `23:59:60`), `precision-lost` |
//! | `timestamp` | the same without zone | `zone-forbidden`, as above |
//! | timestamps | numbers of a declared unit ([`TimestampNumbers`](super::TimestampNumbers)), exactly | `undeclared-unit`, `precision-lost`, `out-of-range` |
//! | `struct` | an object; names are matched exactly, case included | `duplicate-field` |
//! | `list` | an array | `wrong-type` |
//! | `map<string, V>` | an object | `duplicate-field` |
//!
//! A field that the schema does not know is passed over and counted, or rejects the message
//! ([`UnknownFields`](super::UnknownFields)). What is passed over must be JSON; names may repeat in it.
//!
//! # What RFC 8259 leaves open
//!
//! | case | outcome |
//! | --- | --- |
//! | a name twice | `duplicate-field`; passed over in fields that the schema does not know |
//! | a byte order mark | `byte-order-mark` |
//! | nesting deeper than [`DecodeOptions::max_depth`] | `too-deep` |
//! | `\uD800` without its other half, anywhere | `lone-surrogate` |
//! | numbers of any size and precision | by the column's type; any in fields that are passed over |
//! | NUL and other characters as escapes | text like any other |

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use iceberg::spec::Schema;

use super::column::Structs;
use super::fault::{Fault, Parsed, Problem};
use super::kafka::{KafkaColumn, is_kafka_column};
use super::plan::{Children, Planner, counterpart};
use super::{
    DecodeError, DecodeOptions, Decoded, Decoder, KafkaColumns, Message, Outcome, RejectCode, Tombstones,
};
use fill::Filler;

pub(crate) mod cursor;
mod fill;
mod scan;
mod text;

/// The deepest nesting that may be allowed: reading is recursive.
const MAX_DEPTH: usize = 512;

/// Bytes of messages in one batch. Arrow counts the bytes of a string column in 31 bits.
const MAX_BATCH_BYTES: usize = i32::MAX as usize;

const NOT_AN_OBJECT: Problem =
    Problem::new(RejectCode::NotAnObject, "the JSON value is not an object, so it has no fields");

/// Decodes JSON objects into the columns of a table's schema. The rules are those of this module.
#[derive(Debug)]
pub struct JsonDecoder {
    arrow_schema: SchemaRef,
    options: DecodeOptions,
    columns: Structs,
    kafka: Vec<KafkaColumn>,
    /// Where each column of the Arrow schema is.
    places: Vec<Place>,
    rows: usize,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Message(usize),
    Kafka(usize),
}

impl JsonDecoder {
    /// A decoder for a table. `arrow_schema` is the Arrow form of `schema` with field ids, as data files are written.
    pub fn new(
        schema: &Schema,
        arrow_schema: SchemaRef,
        options: &DecodeOptions,
    ) -> Result<Self, DecodeError> {
        if options.max_depth > MAX_DEPTH {
            let reason = format!("{} is more than {MAX_DEPTH}", options.max_depth);
            return Err(DecodeError::Option { path: "max-depth".to_owned(), reason });
        }
        let planner = Planner::new(options, schema)?;
        planner.check_complete(schema.as_struct(), arrow_schema.fields(), "")?;
        let (mut fields, mut kafka, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for arrow in arrow_schema.fields() {
            let field = counterpart(schema.as_struct(), arrow)?;
            if options.kafka_columns == KafkaColumns::On && is_kafka_column(&field.name) {
                places.push(Place::Kafka(kafka.len()));
                kafka.push(KafkaColumn::new(&planner, field, arrow)?);
            } else {
                places.push(Place::Message(fields.len()));
                fields.push(planner.field(field, arrow, "")?);
            }
        }
        let columns = Structs { children: Children::new(fields), validity: Default::default() };
        Ok(Self { arrow_schema, options: options.clone(), columns, kafka, places, rows: 0 })
    }

    fn message(&mut self, message: &Message<'_>, unknown_fields: &mut u64) -> Outcome {
        let Some(payload) = message.payload else {
            return match self.options.tombstones {
                Tombstones::Skip => Outcome::Skipped,
                Tombstones::Reject => reject(&Fault::new(RejectCode::Tombstone, "the message has no value")),
            };
        };
        match self.row(payload, message) {
            Ok(unknown) => {
                self.rows += 1;
                *unknown_fields += unknown;
                Outcome::Row
            }
            Err(fault) => {
                self.cut_off();
                reject(&self.weightiest(fault, payload))
            }
        }
    }

    /// Appends a row, or part of one and a fault. Returns the number of unknown fields.
    fn row(&mut self, payload: &[u8], message: &Message<'_>) -> Parsed<u64> {
        let text = as_text(payload)?;
        let mut filler = Filler::new(text, &self.options);
        if filler.cursor.peek()? != b'{' {
            return Err(Fault::value(NOT_AN_OBJECT, "object", filler.cursor.next_value()));
        }
        filler.object(&mut self.columns.children, self.rows)?;
        filler.cursor.end()?;
        for column in &mut self.kafka {
            column.push(message)?;
        }
        Ok(filler.unknown)
    }

    /// What is malformed counts as that, whatever was found before.
    fn weightiest(&self, fault: Box<Fault>, payload: &[u8]) -> Box<Fault> {
        if fault.concerns_syntax() {
            return fault;
        }
        match as_text(payload).and_then(|text| cursor::check(text, self.options.max_depth)) {
            Err(malformed) => malformed,
            Ok(()) => fault,
        }
    }

    /// Takes all columns back to the last complete row.
    fn cut_off(&mut self) {
        self.columns.truncate(self.rows);
        for column in &mut self.kafka {
            column.field.column.truncate(self.rows);
        }
    }

    fn finish(&mut self) -> Result<RecordBatch, DecodeError> {
        let rows = std::mem::take(&mut self.rows);
        let mut arrays = Vec::with_capacity(self.places.len());
        for (place, field) in self.places.iter().zip(self.arrow_schema.fields()) {
            let column = match *place {
                Place::Message(index) => &mut self.columns.children.fields[index].column,
                Place::Kafka(index) => &mut self.kafka[index].field.column,
            };
            let array: ArrayRef = column.finish(field.data_type())?;
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.arrow_schema), arrays, &options)?)
    }
}

impl Decoder for JsonDecoder {
    fn arrow_schema(&self) -> &SchemaRef {
        &self.arrow_schema
    }

    fn decode(&mut self, messages: &[Message<'_>]) -> Result<Decoded, DecodeError> {
        let bytes = messages.iter().map(size).sum();
        if bytes > MAX_BATCH_BYTES {
            return Err(DecodeError::BatchTooLarge { bytes, limit: MAX_BATCH_BYTES });
        }
        let mut unknown_fields = 0;
        let outcomes = messages.iter().map(|message| self.message(message, &mut unknown_fields)).collect();
        let finished = self.finish();
        if finished.is_err() {
            self.cut_off();
        }
        Ok(Decoded { batch: finished?, outcomes, unknown_fields })
    }
}

/// An upper bound of what a message adds to any one column.
fn size(message: &Message<'_>) -> usize {
    let headers =
        message.headers.iter().map(|header| header.key.len() + header.value.map_or(0, <[u8]>::len) + 1);
    message.payload.map_or(0, <[u8]>::len)
        + message.key.map_or(0, <[u8]>::len)
        + message.topic.len()
        + headers.sum::<usize>()
}

fn reject(fault: &Fault) -> Outcome {
    Outcome::Rejected(Box::new(fault.clone().into_reject()))
}

fn as_text(payload: &[u8]) -> Parsed<&str> {
    if payload.is_empty() {
        return Err(Fault::new(RejectCode::EmptyValue, "the value has no bytes"));
    }
    let text = std::str::from_utf8(payload).map_err(|error| {
        let reason = format!("the value is not UTF-8 from byte {} on", error.valid_up_to());
        Fault::new(RejectCode::InvalidUtf8, reason)
    })?;
    if text.starts_with('\u{feff}') {
        return Err(Fault::new(RejectCode::ByteOrderMark, "the value begins with a byte order mark"));
    }
    Ok(text)
}
