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

use arrow_schema::SchemaRef;
use iceberg::spec::Schema;

use super::fault::{Fault, Parsed, Problem};
use super::frame::{Frame, RowReader};
use super::plan::Children;
use super::{DecodeError, DecodeOptions, Decoded, Decoder, Message, RejectCode};
use fill::Filler;

pub(crate) mod cursor;
mod fill;
mod scan;
mod text;

const NOT_AN_OBJECT: Problem =
    Problem::new(RejectCode::NotAnObject, "the JSON value is not an object, so it has no fields");

/// Decodes JSON objects into the columns of a table's schema. The rules are those of this module.
#[derive(Debug)]
pub struct JsonDecoder {
    frame: Frame,
    reader: Reader,
}

#[derive(Debug)]
struct Reader {
    options: DecodeOptions,
}

impl JsonDecoder {
    /// A decoder for a table. `arrow_schema` is the Arrow form of `schema` with field ids, as data files are written.
    pub fn new(
        schema: &Schema,
        arrow_schema: SchemaRef,
        options: &DecodeOptions,
    ) -> Result<Self, DecodeError> {
        options.check_depth()?;
        let frame = Frame::new(schema, arrow_schema, options)?;
        Ok(Self { frame, reader: Reader { options: options.clone() } })
    }
}

impl Decoder for JsonDecoder {
    fn arrow_schema(&self) -> &SchemaRef {
        self.frame.arrow_schema()
    }

    fn decode(&mut self, messages: &[Message<'_>]) -> Result<Decoded, DecodeError> {
        self.frame.decode(&mut self.reader, messages)
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
        let Some(payload) = payload else {
            return columns.fill_absent(row).map(|()| 0);
        };
        let text = as_text(payload)?;
        let mut filler = Filler::new(text, &self.options);
        if filler.cursor.peek()? != b'{' {
            return Err(Fault::value(NOT_AN_OBJECT, "object", filler.cursor.next_value()));
        }
        filler.object(columns, row)?;
        filler.cursor.end()?;
        Ok(filler.unknown)
    }

    fn weightiest(&self, fault: Box<Fault>, payload: &[u8]) -> Box<Fault> {
        match as_text(payload).and_then(|text| cursor::check(text, self.options.max_depth)) {
            Err(malformed) => malformed,
            Ok(()) => fault,
        }
    }
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
