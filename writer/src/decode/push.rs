//! Text and numbers into the columns of their fields, whichever format they come from.

use super::bytes::{decode_base64, decode_hex, decode_uuid};
use super::column::{Column, Maps};
use super::fault::{Fault, Parsed, Problem};
use super::number::Number;
use super::plan::{Field, Rule};
use super::time::{parse_date, parse_time, parse_timestamp};
use super::{BinaryText, NumberText, RejectCode, StringValues, TimestampNumbers, TimestampPrecision};

pub(super) const WRONG_TYPE: Problem =
    Problem::new(RejectCode::WrongType, "the type is not read from such a value");
pub(super) const NULL: Problem =
    Problem::new(RejectCode::NullInRequired, "the value is null and the field is required");
const MISSING: Problem = Problem::new(RejectCode::MissingField, "the field is absent and required");
pub(super) const DUPLICATE: Problem =
    Problem::new(RejectCode::DuplicateField, "the name occurs twice in one object");
const NO_NUMBER: Problem = Problem::new(RejectCode::InvalidNumber, "the text is not a number of JSON");
pub(super) const NO_UUID: Problem = Problem::new(RejectCode::InvalidUuid, "the text is not a UUID");
const NO_ENCODING: Problem =
    Problem::new(RejectCode::UndeclaredEncoding, "the encoding of bytes as text is not declared");
const BAD_ENCODING: Problem =
    Problem::new(RejectCode::InvalidEncoding, "the text is not of the declared encoding of bytes");
pub(super) const WRONG_LENGTH: Problem =
    Problem::new(RejectCode::WrongLength, "the number of bytes is not that of the type");
const NO_UNIT: Problem =
    Problem::new(RejectCode::UndeclaredUnit, "the unit of numbers in this column is not declared");
pub(super) const TIME_BEYOND: Problem =
    Problem::new(RejectCode::OutOfRange, "the timestamp is beyond the range of the type");
pub(super) const TIME_DIGITS: Problem =
    Problem::new(RejectCode::PrecisionLost, "the timestamp has more digits than the type");

/// A problem with the value of a field, without the field's name.
pub(super) fn fault(problem: Problem, rule: &Rule, found: &str) -> Box<Fault> {
    Fault::value(problem, rule.type_name.to_string(), found)
}

/// A field that the message does not have.
pub(super) fn push_missing(field: &mut Field) -> Parsed<()> {
    if field.required {
        return Err(fault(MISSING, &field.rule, "").in_field(&field.name));
    }
    field.column.push_null();
    Ok(())
}

/// No key stands twice in the map under construction.
pub(super) fn refuse_duplicate_keys(maps: &Maps) -> Parsed<()> {
    let entries = maps.open_entries();
    let mut keys: Vec<&[u8]> = entries.map(|entry| maps.keys.value(entry)).collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Fault::value(DUPLICATE, "map", "").under_key(&String::from_utf8_lossy(pair[0]))),
        None => Ok(()),
    }
}

/// Text in a column that is not of strings.
pub(super) fn push_text(field: &mut Field, text: &str) -> Result<(), Problem> {
    match &mut field.column {
        Column::Timestamp(values) => values.push(parse_timestamp(text, field.rule.clock)?),
        Column::Date(values) => values.push(parse_date(text)?),
        Column::Time(values) => values.push(parse_time(text, field.rule.clock)?),
        Column::Uuid(values) => values.push(&decode_uuid(text.as_bytes()).ok_or(NO_UUID)?),
        Column::Binary(values) => {
            decode_bytes(text, field.rule.options.binary, &mut values.values)?;
            values.end_value();
        }
        Column::Fixed(values) => {
            let mut bytes = Vec::with_capacity(values.width);
            decode_bytes(text, field.rule.options.binary, &mut bytes)?;
            if bytes.len() != values.width {
                return Err(WRONG_LENGTH);
            }
            values.push(&bytes);
        }
        Column::Int(_) | Column::Long(_) | Column::Float(_) | Column::Double(_) | Column::Decimal(_) => {
            return push_number_text(field, text);
        }
        _ => return Err(WRONG_TYPE),
    }
    Ok(())
}

fn push_number_text(field: &mut Field, text: &str) -> Result<(), Problem> {
    if field.rule.options.numbers == NumberText::Reject {
        return Err(WRONG_TYPE);
    }
    match Number::prefix(text) {
        Some(number) if number.text.len() == text.len() => push_number(field, number),
        _ => Err(NO_NUMBER),
    }
}

fn decode_bytes(text: &str, encoding: BinaryText, out: &mut Vec<u8>) -> Result<(), Problem> {
    match encoding {
        BinaryText::Reject => Err(NO_ENCODING),
        BinaryText::Base64 => decode_base64(text.as_bytes(), out).ok_or(BAD_ENCODING),
        BinaryText::Hex => decode_hex(text.as_bytes(), out).ok_or(BAD_ENCODING),
        BinaryText::Utf8 => {
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
}

/// A number as text, in any column.
#[inline]
pub(super) fn push_number(field: &mut Field, number: Number<'_>) -> Result<(), Problem> {
    let rule = &field.rule;
    match &mut field.column {
        Column::Long(values) => values.push(number.to_i64()?),
        Column::Int(values) => values.push(number.to_i32()?),
        Column::Double(values) => values.push(number.to_f64()?),
        Column::Float(values) => values.push(number.to_f32()?),
        Column::Decimal(values) => values.push(number.to_decimal(rule.precision, rule.scale)?),
        Column::Timestamp(values) => values.push(timestamp(number, rule)?),
        Column::String(values) if rule.options.strings == StringValues::JsonText => {
            values.push(number.text.as_bytes());
        }
        _ => return Err(WRONG_TYPE),
    }
    Ok(())
}

fn timestamp(number: Number<'_>, rule: &Rule) -> Result<i64, Problem> {
    let places = match rule.options.timestamp_numbers {
        TimestampNumbers::Reject => return Err(NO_UNIT),
        TimestampNumbers::Seconds => 0,
        TimestampNumbers::Millis => 3,
        TimestampNumbers::Micros => 6,
        TimestampNumbers::Nanos => 9,
    };
    let scaled = number.to_scaled(i64::from(rule.clock.places) - places).map_err(|_| TIME_BEYOND)?;
    if !scaled.exact && rule.options.timestamp_precision == TimestampPrecision::Exact {
        return Err(TIME_DIGITS);
    }
    i64::try_from(scaled.value).map_err(|_| TIME_BEYOND)
}
