//! Messages whose bytes are kept as they are.
//!
//! | column | from |
//! | --- | --- |
//! | `key` | the message's key; null where it has none |
//! | `value` | the message's value; null in a tombstone that is to become a row ([`Tombstones::Row`](super::Tombstones::Row)) |
//! | any other | null; it must be optional. Columns of metadata are filled as with any format |
//!
//! Both are `binary`, which takes all bytes, or `string`, which takes UTF-8 (else `invalid-utf8`). An empty value is a
//! value of no bytes.

use arrow_schema::SchemaRef;
use iceberg::spec::Schema;

use super::column::Column;
use super::fault::{Fault, Parsed, Problem};
use super::frame::{Frame, RowReader};
use super::plan::{Children, Field, unsupported};
use super::{DecodeError, DecodeOptions, Decoded, Decoder, Message, RejectCode};

/// The column of message keys.
const KEY: &str = "key";

/// The column of message values.
const VALUE: &str = "value";

const NO_UTF8: Problem = Problem::new(RejectCode::InvalidUtf8, "the bytes are not UTF-8");
const ABSENT: Problem =
    Problem::new(RejectCode::NullInRequired, "the message has none and the field is required");

/// Copies keys and values into columns. The rules are those of this module.
#[derive(Debug)]
pub struct RawDecoder {
    frame: Frame,
    reader: Reader,
}

#[derive(Debug)]
struct Reader {
    /// For each column of the messages what fills it.
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Key,
    Value,
    Nothing,
}

impl RawDecoder {
    /// A decoder for a table. `arrow_schema` is the Arrow form of `schema` with field ids, as data files are written.
    pub fn new(
        schema: &Schema,
        arrow_schema: SchemaRef,
        options: &DecodeOptions,
    ) -> Result<Self, DecodeError> {
        let frame = Frame::new(schema, arrow_schema, options)?;
        let parts: Vec<Part> = frame.children().fields.iter().map(part).collect::<Result<_, _>>()?;
        if parts.iter().all(|part| matches!(part, Part::Nothing)) {
            return Err(unsupported(VALUE, "is missing: raw messages need a column `key` or `value`"));
        }
        Ok(Self { frame, reader: Reader { parts } })
    }
}

fn part(field: &Field) -> Result<Part, DecodeError> {
    let part = match &*field.name {
        KEY => Part::Key,
        VALUE => Part::Value,
        name if field.required => {
            return Err(unsupported(name, "is required, and raw messages fill only `key` and `value`"));
        }
        _ => return Ok(Part::Nothing),
    };
    match &field.column {
        Column::Binary(_) | Column::String(_) => Ok(part),
        _ => Err(unsupported(&field.name, "must be binary or string to hold the bytes of messages")),
    }
}

impl Decoder for RawDecoder {
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
        message: &Message<'_>,
        payload: Option<&[u8]>,
        columns: &mut Children,
        _row: usize,
    ) -> Parsed<u64> {
        for (part, field) in self.parts.iter().zip(&mut columns.fields) {
            let bytes = match part {
                Part::Key => message.key,
                Part::Value => payload,
                Part::Nothing => None,
            };
            push(field, bytes).map_err(|problem| {
                Fault::value(problem, field.rule.type_name.to_string(), "").in_field(&field.name)
            })?;
        }
        Ok(0)
    }

    fn weightiest(&self, fault: Box<Fault>, _payload: &[u8]) -> Box<Fault> {
        fault
    }
}

fn push(field: &mut Field, bytes: Option<&[u8]>) -> Result<(), Problem> {
    match (&mut field.column, bytes) {
        (Column::Binary(values), Some(bytes)) => values.push(bytes),
        (Column::String(values), Some(bytes)) => {
            values.push(std::str::from_utf8(bytes).map_err(|_| NO_UTF8)?.as_bytes());
        }
        (_, None) if field.required => return Err(ABSENT),
        (column, _) => column.push_null(),
    }
    Ok(())
}
