//! Values without parts: read by their type, judged by their column.

use std::fmt;

use super::super::RejectCode;
use super::super::column::Column;
use super::super::fault::{Parsed, Problem};
use super::super::number::Number;
use super::super::plan::{Field, Rule};
use super::super::push::{
    NO_UUID, TIME_BEYOND, TIME_DIGITS, WRONG_LENGTH, WRONG_TYPE, push_number, push_text,
};
use super::cursor::Cursor;
use super::types::{AvroType, Logical, Physical};

const BEYOND: Problem = Problem::new(RejectCode::OutOfRange, "the number is beyond the range of the type");
const FRACTION: Problem = Problem::new(RejectCode::NotAnInteger, "the number has a fraction");
const ROUNDED: Problem = Problem::new(RejectCode::PrecisionLost, "the type cannot hold the number exactly");
const NO_DIGITS: Problem = Problem::new(RejectCode::InvalidNumber, "a decimal has at least one byte");
const NO_TIME: Problem = Problem::new(RejectCode::OutOfRange, "the time is not within a day");
const ZONE_FORBIDDEN: Problem =
    Problem::new(RejectCode::ZoneForbidden, "the value is a point in time, which the type cannot hold");
const ZONE_MISSING: Problem =
    Problem::new(RejectCode::ZoneMissing, "the value is a local time, so it is no point in time");

/// The digits of the most precise decimal of Iceberg.
const MAX_DIGITS: u32 = 38;

/// A value of the writer's schema.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f32),
    Double(f64),
    Text(&'a str),
    /// An enum's symbol.
    Symbol(&'a str),
    Bytes(&'a [u8]),
    Date(i32),
    Time {
        units: i64,
        places: u32,
    },
    Timestamp {
        units: i64,
        places: u32,
        zoned: bool,
    },
    /// Big-endian, two's complement.
    Decimal {
        unscaled: &'a [u8],
        scale: u32,
    },
    UuidText(&'a str),
    Uuid(&'a [u8]),
    /// A record, array or map, not read.
    Nested,
}

impl<'a> Value<'a> {
    /// Reads the value of a type that is no union. Symbols are borrowed from the type.
    pub(super) fn read(of: &'a AvroType, cursor: &mut Cursor<'a>) -> Parsed<Self> {
        Ok(match (&of.physical, of.logical) {
            (Physical::Null, _) => Self::Null,
            (Physical::Boolean, _) => Self::Boolean(cursor.boolean()?),
            (Physical::Int, Some(Logical::Date)) => Self::Date(cursor.int()?),
            (Physical::Int, Some(Logical::Time { places })) => {
                Self::Time { units: cursor.int()?.into(), places }
            }
            (Physical::Long, Some(Logical::Time { places })) => Self::Time { units: cursor.long()?, places },
            (Physical::Long, Some(Logical::Timestamp { places, zoned })) => {
                Self::Timestamp { units: cursor.long()?, places, zoned }
            }
            (Physical::Int, _) => Self::Integer(cursor.int()?.into()),
            (Physical::Long, _) => Self::Integer(cursor.long()?),
            (Physical::Float, _) => Self::Float(cursor.float()?),
            (Physical::Double, _) => Self::Double(cursor.double()?),
            (Physical::String, Some(Logical::Uuid)) => Self::UuidText(cursor.text()?),
            (Physical::String, _) => Self::Text(cursor.text()?),
            (Physical::Enum(symbols), _) => Self::Symbol(&symbols[cursor.index(symbols.len())?]),
            (Physical::Bytes, logical) => of_bytes(cursor.counted_bytes()?, logical),
            (Physical::Fixed(size), logical) => of_bytes(cursor.bytes(*size)?, logical),
            (Physical::Array(_) | Physical::Map(_) | Physical::Record(_) | Physical::Union(_), _) => {
                Self::Nested
            }
        })
    }
}

fn of_bytes(bytes: &[u8], logical: Option<Logical>) -> Value<'_> {
    match logical {
        Some(Logical::Decimal { scale }) => Value::Decimal { unscaled: bytes, scale },
        Some(Logical::Uuid) => Value::Uuid(bytes),
        _ => Value::Bytes(bytes),
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Double(value) => write!(f, "{value}"),
            Self::Text(text) | Self::UuidText(text) | Self::Symbol(text) => write!(f, "{text:?}"),
            Self::Bytes(bytes) | Self::Uuid(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Date(days) => write!(f, "{days} days since the epoch"),
            Self::Time { units, places } => write!(f, "{units}e-{places} s since midnight"),
            Self::Timestamp { units, places, .. } => write!(f, "{units}e-{places} s since the epoch"),
            Self::Decimal { unscaled, scale } => match integer(unscaled) {
                Some(unscaled) => write!(f, "{unscaled}e-{scale}"),
                None => write!(f, "a decimal of {} bytes", unscaled.len()),
            },
            Self::Nested => f.write_str("a record, array or map"),
        }
    }
}

/// Appends a value other than null to the column of its field.
#[inline]
pub(super) fn push(field: &mut Field, value: Value<'_>) -> Result<(), Problem> {
    let clock = field.rule.clock;
    match (value, &mut field.column) {
        (Value::Boolean(value), Column::Boolean(values)) => values.push(value),
        (Value::Integer(value), Column::Long(values)) => values.push(value),
        (Value::Integer(value), Column::Int(values)) => values.push(value.try_into().map_err(|_| BEYOND)?),
        (Value::Text(text), Column::String(values))
        | (Value::Symbol(text), Column::String(values))
        | (Value::UuidText(text), Column::String(values)) => values.push(text.as_bytes()),
        (Value::Double(value), Column::Double(values)) => values.push(value),
        (Value::Float(value), Column::Float(values)) => values.push(value),
        (Value::Float(value), Column::Double(values)) => values.push(value.into()),
        (Value::Double(value), Column::Float(values)) => values.push(to_float(value)?),
        (Value::Timestamp { units, places, zoned }, Column::Timestamp(values)) => {
            match (zoned, clock.zoned) {
                (true, false) => return Err(ZONE_FORBIDDEN),
                (false, true) => return Err(ZONE_MISSING),
                _ => values.push(rescale_time(units, places, &field.rule)?),
            }
        }
        (Value::Date(days), Column::Date(values)) => values.push(days),
        (Value::Time { units, places }, Column::Time(values)) => {
            if !(0..86_400 * 10i64.pow(places)).contains(&units) {
                return Err(NO_TIME);
            }
            values.push(rescale_time(units, places, &field.rule)?);
        }
        (Value::Bytes(bytes), Column::Binary(values)) | (Value::Uuid(bytes), Column::Binary(values)) => {
            values.push(bytes);
        }
        (Value::Bytes(bytes) | Value::Uuid(bytes), Column::Fixed(values)) => {
            if bytes.len() != values.width {
                return Err(WRONG_LENGTH);
            }
            values.push(bytes);
        }
        (Value::Uuid(bytes), Column::Uuid(values)) => values.push(bytes),
        (Value::Decimal { unscaled, scale }, Column::Decimal(values)) => {
            values.push(rescale(unscaled, scale, &field.rule)?);
        }
        _ => return push_converted(field, value),
    }
    Ok(())
}

/// Values in columns of other kinds.
fn push_converted(field: &mut Field, value: Value<'_>) -> Result<(), Problem> {
    match (value, &mut field.column) {
        (Value::Integer(value), Column::Float(_) | Column::Double(_) | Column::Decimal(_)) => {
            push_integer(field, value)
        }
        (Value::Integer(value), Column::Timestamp(_)) => push_integer(field, value),
        (Value::Float(value), Column::Int(_) | Column::Long(_)) => {
            push_integer(field, to_integer(value.into())?)
        }
        (Value::Double(value), Column::Int(_) | Column::Long(_)) => push_integer(field, to_integer(value)?),
        (Value::Text(text), _) => push_text(field, text),
        (Value::UuidText(text), Column::Uuid(_)) => push_text(field, text).map_err(|_| NO_UUID),
        _ => Err(WRONG_TYPE),
    }
}

/// As the same number in JSON.
fn push_integer(field: &mut Field, value: i64) -> Result<(), Problem> {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(value);
    push_number(field, Number { text, small: Some(value), integer: true })
}

fn to_integer(value: f64) -> Result<i64, Problem> {
    // The bounds are powers of two, which a double holds.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        return Err(BEYOND);
    }
    if value.fract() == 0.0 { Ok(value as i64) } else { Err(FRACTION) }
}

fn to_float(value: f64) -> Result<f32, Problem> {
    let float = value as f32;
    if value.is_nan() || f64::from(float) == value {
        return Ok(float);
    }
    Err(if float.is_infinite() || float == 0.0 { BEYOND } else { ROUNDED })
}

/// Units of a second in those of the column.
fn rescale_time(units: i64, places: u32, rule: &Rule) -> Result<i64, Problem> {
    let wanted = rule.clock.places;
    if let Some(more) = wanted.checked_sub(places) {
        return units.checked_mul(10i64.pow(more)).ok_or(TIME_BEYOND);
    }
    let divisor = 10i64.pow(places - wanted);
    if !rule.clock.truncate && units.rem_euclid(divisor) != 0 {
        return Err(TIME_DIGITS);
    }
    Ok(units.div_euclid(divisor))
}

/// The unscaled value in the scale of the column.
fn rescale(unscaled: &[u8], scale: u32, rule: &Rule) -> Result<i128, Problem> {
    if unscaled.is_empty() {
        return Err(NO_DIGITS);
    }
    let value = integer(unscaled).ok_or(BEYOND)?;
    let (scaled, exact) = if scale <= rule.scale {
        let factor = 10i128.pow(rule.scale - scale);
        (value.checked_mul(factor).ok_or(BEYOND)?, true)
    } else if scale - rule.scale > MAX_DIGITS {
        (0, value == 0)
    } else {
        let divisor = 10i128.pow(scale - rule.scale);
        (value / divisor, value % divisor == 0)
    };
    if scaled.unsigned_abs() >= 10u128.pow(rule.precision.min(MAX_DIGITS)) {
        return Err(BEYOND);
    }
    if exact { Ok(scaled) } else { Err(ROUNDED) }
}

/// A big-endian integer in two's complement; `None` beyond 128 bits, and for no bytes.
fn integer(bytes: &[u8]) -> Option<i128> {
    let fill = if *bytes.first()? >= 0x80 { 0xff } else { 0 };
    let extra = bytes.len().saturating_sub(16);
    let (lead, last) = bytes.split_at(extra);
    let mut whole = [fill; 16];
    whole[16 - last.len()..].copy_from_slice(last);
    let value = i128::from_be_bytes(whole);
    // What was cut off only repeats the sign.
    (lead.iter().all(|byte| *byte == fill) && (value < 0) == (fill == 0xff)).then_some(value)
}
