//! Avro messages.
//!
//! A message is one datum in binary form of the writer's schema, a record, with nothing before or after it. The datum is
//! read once, in the order of the writer's schema, into the columns of the table's; what a reject has already appended is
//! cut off again. If a message is both malformed and wrong for the table, it counts as malformed.
//!
//! Fields and columns are matched by exact names. Every value is judged by itself: a writer's schema whose types differ
//! from the table's is no error as long as the values fit. The decoder keeps what it knows of a writer's schema apart
//! from the columns, so that messages of several writer schemas can fill the same batch.
//!
//! # What an Avro value becomes
//!
//! | Avro | column | else |
//! | --- | --- | --- |
//! | `null`, or a field that the writer's schema does not have | any optional one: null | `null-in-required`, `missing-field` |
//! | `boolean` | `boolean` | `wrong-type` |
//! | `int`, `long` | `int`, `long`, `float`, `double`, `decimal(p, s)` as far as they hold it exactly; timestamps where the unit of numbers is declared ([`TimestampNumbers`](super::TimestampNumbers)) | `out-of-range`, `precision-lost`, `undeclared-unit`, `wrong-type` |
//! | `float`, `double` | `float`, `double`, not a number and infinities among them; `int`, `long` where the value is an integer | `precision-lost`, `not-an-integer`, `out-of-range`, `wrong-type` (decimals: a binary fraction is none) |
//! | `string` | as text in JSON: `string`, and what the column's options declare for text | as in [`json`](super::json) |
//! | `enum` | `string` | `wrong-type` |
//! | `bytes`, `fixed` | `binary`; `fixed(n)` of the same length | `wrong-length`, `wrong-type` |
//! | `decimal` on `bytes`, `fixed` | `decimal(p, s)` that holds the value exactly | `out-of-range`, `precision-lost`, `invalid-number` (no bytes), `wrong-type` |
//! | `date` | `date` | `wrong-type` |
//! | `time-millis`, `time-micros` | `time` | `out-of-range` (not within a day), `wrong-type` |
//! | `timestamp-millis`, `-micros`, `-nanos` | `timestamptz`, `timestamptz_ns` | `zone-forbidden` (`timestamp`), `precision-lost`, `out-of-range`, `wrong-type` |
//! | `local-timestamp-…`, or `"adjust-to-utc": false` | `timestamp`, `timestamp_ns` | `zone-missing` (`timestamptz`), as above |
//! | `uuid` on `string` | `uuid`, `string` | `invalid-uuid`, `wrong-type` |
//! | `uuid` on `fixed(16)` | `uuid`, `fixed(16)`, `binary` | `wrong-type` |
//! | `record` | `struct` | `wrong-type` |
//! | `array` | `list` | `wrong-type` |
//! | `map` | `map<string, V>` | `duplicate-field`, `wrong-type` |
//! | a union | what the branch of the value becomes | as that |
//!
//! Logical types that are unknown or stand on another type than theirs are passed over, as Avro's specification demands.
//! Fields that the table does not have are passed over and counted, once in each record, or reject the message
//! ([`UnknownFields`](super::UnknownFields)).
//!
//! # What is malformed
//!
//! `malformed-avro`: the datum ends early; an integer of more bits than its type; a length below zero; a branch or
//! symbol that does not exist; a boolean other than 0 and 1. `invalid-utf8`: text that is not UTF-8, also where it is
//! passed over. `trailing-data`, `too-deep`, and `too-many-values`: more elements without bytes than the message's
//! size allows. The byte sizes that blocks may announce are not looked at. `empty-value`: no bytes where there should be some.

use arrow_schema::SchemaRef;
use iceberg::spec::Schema;

use super::fault::{Fault, Parsed};
use super::frame::{Frame, RowReader};
use super::plan::Children;
use super::{DecodeError, DecodeOptions, Decoded, Decoder, Message, RejectCode, UnknownFields};
use cursor::Cursor;
use fill::Filler;
use program::Program;
use types::WriterSchema;

mod cursor;
mod fill;
mod program;
mod types;
mod value;
mod walk;

/// An element costs its column a few bytes, and eight of them may stand for one byte of the message ([`Cursor`]).
const EXPANSION: usize = 8;

/// Decodes Avro datums into the columns of a table's schema. The rules are those of this module.
#[derive(Debug)]
pub struct AvroDecoder {
    frame: Frame,
    reader: Reader,
}

#[derive(Debug)]
struct Reader {
    program: Program,
    limits: Limits,
    unknown_fields: UnknownFields,
}

/// What one message may have.
#[derive(Debug, Clone, Copy)]
struct Limits {
    max_depth: usize,
    max_values: usize,
}

impl AvroDecoder {
    /// A decoder for a table and messages of one writer schema, given as JSON text. `arrow_schema` is the Arrow form of
    /// `schema` with field ids, as data files are written.
    pub fn new(
        schema: &Schema,
        arrow_schema: SchemaRef,
        options: &DecodeOptions,
        writer_schema: &str,
    ) -> Result<Self, DecodeError> {
        options.check_depth()?;
        let writer = WriterSchema::parse(writer_schema)?;
        let expansion = EXPANSION.max(writer.longest_symbol());
        let frame = Frame::new(schema, arrow_schema, options)?.expanding(expansion);
        let program = Program::new(writer, frame.children())?;
        let limits = Limits { max_depth: options.max_depth, max_values: options.max_values };
        Ok(Self { frame, reader: Reader { program, limits, unknown_fields: options.unknown_fields } })
    }
}

impl Decoder for AvroDecoder {
    fn arrow_schema(&self) -> &SchemaRef {
        self.frame.arrow_schema()
    }

    fn decode(&mut self, messages: &[Message<'_>]) -> Result<Decoded, DecodeError> {
        self.frame.decode(&mut self.reader, messages)
    }
}

impl Reader {
    fn fill(&self, payload: &[u8], columns: &mut Children, row: usize) -> Parsed<u64> {
        let cursor = Cursor::new(payload, self.limits.max_depth);
        let mut filler = Filler::new(cursor, &self.program, self.limits.max_values, self.unknown_fields);
        filler.record(&self.program.root, columns, row)?;
        filler.cursor.end()?;
        Ok(filler.unknown)
    }
}

impl RowReader for Reader {
    fn read(
        &mut self,
        _message: &Message<'_>,
        payload: Option<&[u8]>,
        columns: &mut Children,
        row: usize,
    ) -> Parsed<u64> {
        match payload {
            None => columns.fill_absent(row).map(|()| 0),
            Some([]) if !self.program.writer.may_be_empty(self.program.writer.root) => {
                Err(Fault::new(RejectCode::EmptyValue, "the value has no bytes"))
            }
            Some(payload) => self.fill(payload, columns, row),
        }
    }

    fn weightiest(&self, fault: Box<Fault>, payload: &[u8]) -> Box<Fault> {
        if payload.is_empty() {
            return fault;
        }
        match self.program.writer.check(payload, self.limits.max_depth) {
            Err(malformed) => malformed,
            Ok(()) => fault,
        }
    }
}
