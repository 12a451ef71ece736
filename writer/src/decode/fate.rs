//! What becomes of each kind of value in each type of column: one table, which the decoders obey.
//!
//! Null and absent fields are a matter of the column alone: null where it is optional, else `null-in-required` and
//! `missing-field`. What is malformed is rejected before anything in this table matters.

use std::fmt;

use iceberg::spec::{PrimitiveType, Type};

use super::RejectCode::{
    self, DuplicateField, InvalidDate, InvalidEncoding, InvalidNumber, InvalidTime, InvalidTimestamp,
    InvalidUtf8, InvalidUuid, NotAnInteger, OutOfRange, PrecisionLost, UndeclaredEncoding, UndeclaredUnit,
    WrongLength, WrongType, ZoneForbidden, ZoneMissing,
};
use super::{
    BinaryText, ColumnOptions, Format, NumberText, StringValues, TimestampNumbers, TimestampPrecision,
};

/// A kind of value in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Wire {
    JsonBoolean,
    /// A number written without fraction and exponent.
    JsonInteger,
    /// A number written with a fraction or exponent.
    JsonFraction,
    JsonText,
    JsonArray,
    JsonObject,
    AvroBoolean,
    AvroInt,
    AvroLong,
    AvroFloat,
    AvroDouble,
    AvroString,
    AvroEnum,
    AvroBytes,
    AvroFixed,
    AvroDecimal,
    AvroDate,
    AvroTime,
    AvroTimestampMillis,
    AvroTimestampMicros,
    AvroTimestampNanos,
    AvroLocalTimestampMillis,
    AvroLocalTimestampMicros,
    AvroLocalTimestampNanos,
    /// On `string`.
    AvroUuidText,
    /// On `fixed(16)`.
    AvroUuid,
    AvroArray,
    AvroMap,
    AvroRecord,
    /// A message's key or value, whole.
    RawBytes,
}

/// What becomes of the values of one kind in one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Every value is held exactly.
    Exact,
    /// A value is held exactly, or its message is rejected with one of these codes.
    ExactOr(&'static [RejectCode]),
    /// A value may lose what was declared, or its message is rejected with one of these codes.
    Loss(&'static [RejectCode]),
    /// Every message with such a value is rejected with this code.
    Reject(RejectCode),
    /// No decoder is made: the writer does not start.
    Refused,
}

impl Wire {
    /// All kinds of values.
    pub const ALL: [Self; 30] = [
        Self::JsonBoolean,
        Self::JsonInteger,
        Self::JsonFraction,
        Self::JsonText,
        Self::JsonArray,
        Self::JsonObject,
        Self::AvroBoolean,
        Self::AvroInt,
        Self::AvroLong,
        Self::AvroFloat,
        Self::AvroDouble,
        Self::AvroString,
        Self::AvroEnum,
        Self::AvroBytes,
        Self::AvroFixed,
        Self::AvroDecimal,
        Self::AvroDate,
        Self::AvroTime,
        Self::AvroTimestampMillis,
        Self::AvroTimestampMicros,
        Self::AvroTimestampNanos,
        Self::AvroLocalTimestampMillis,
        Self::AvroLocalTimestampMicros,
        Self::AvroLocalTimestampNanos,
        Self::AvroUuidText,
        Self::AvroUuid,
        Self::AvroArray,
        Self::AvroMap,
        Self::AvroRecord,
        Self::RawBytes,
    ];

    /// The kinds that messages of a format have.
    pub fn of(format: &Format) -> impl Iterator<Item = Self> {
        let (first, last) = match format {
            Format::Json => (Self::JsonBoolean, Self::JsonObject),
            Format::Avro { .. } => (Self::AvroBoolean, Self::AvroRecord),
            Format::Raw => (Self::RawBytes, Self::RawBytes),
        };
        Self::ALL.into_iter().filter(move |wire| (first..=last).contains(wire))
    }

    /// The format's own name of the kind.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonBoolean | Self::AvroBoolean => "boolean",
            Self::JsonInteger => "number, integer",
            Self::JsonFraction => "number, fraction or exponent",
            Self::JsonText | Self::AvroString => "string",
            Self::JsonArray | Self::AvroArray => "array",
            Self::JsonObject => "object",
            Self::AvroInt => "int",
            Self::AvroLong => "long",
            Self::AvroFloat => "float",
            Self::AvroDouble => "double",
            Self::AvroEnum => "enum",
            Self::AvroBytes => "bytes",
            Self::AvroFixed => "fixed",
            Self::AvroDecimal => "decimal",
            Self::AvroDate => "date",
            Self::AvroTime => "time-millis, time-micros",
            Self::AvroTimestampMillis => "timestamp-millis",
            Self::AvroTimestampMicros => "timestamp-micros",
            Self::AvroTimestampNanos => "timestamp-nanos",
            Self::AvroLocalTimestampMillis => "local-timestamp-millis",
            Self::AvroLocalTimestampMicros => "local-timestamp-micros",
            Self::AvroLocalTimestampNanos => "local-timestamp-nanos",
            Self::AvroUuidText => "uuid (string)",
            Self::AvroUuid => "uuid (fixed)",
            Self::AvroMap => "map",
            Self::AvroRecord => "record",
            Self::RawBytes => "bytes of the message",
        }
    }
}

impl Fate {
    /// The codes of the rejects that there may be.
    #[must_use]
    pub fn codes(&self) -> &[RejectCode] {
        match self {
            Self::Exact | Self::Refused => &[],
            Self::ExactOr(codes) | Self::Loss(codes) => codes,
            Self::Reject(code) => std::slice::from_ref(code),
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::ExactOr(_) => "exact or rejected",
            Self::Loss([]) => "declared loss",
            Self::Loss(_) => "declared loss or rejected",
            Self::Reject(_) => "rejected",
            Self::Refused => "refused at the start",
        })
    }
}

/// What becomes of values of the kind `wire` in a column of type `column` with these options.
#[must_use]
pub fn fate(wire: Wire, column: &Type, options: &ColumnOptions) -> Fate {
    match (wire, column) {
        (Wire::RawBytes, Type::Primitive(PrimitiveType::Binary)) => Fate::Exact,
        (Wire::RawBytes, Type::Primitive(PrimitiveType::String)) => Fate::ExactOr(&[InvalidUtf8]),
        (Wire::RawBytes, _) => Fate::Refused,
        (Wire::JsonArray | Wire::AvroArray, Type::List(_)) | (Wire::AvroRecord, Type::Struct(_)) => {
            Fate::Exact
        }
        (Wire::JsonObject, Type::Struct(_) | Type::Map(_)) | (Wire::AvroMap, Type::Map(_)) => {
            Fate::ExactOr(&[DuplicateField])
        }
        (_, Type::Struct(_) | Type::List(_) | Type::Map(_)) => Fate::Reject(WrongType),
        (
            Wire::JsonBoolean | Wire::JsonInteger | Wire::JsonFraction | Wire::JsonArray | Wire::JsonObject,
            Type::Primitive(PrimitiveType::String),
        ) => match options.strings {
            StringValues::JsonText => Fate::Loss(&[]),
            StringValues::Strict => Fate::Reject(WrongType),
        },
        (Wire::JsonText | Wire::AvroString, Type::Primitive(primitive)) => text(primitive, options),
        (wire, Type::Primitive(primitive)) => number(wire, primitive, options),
    }
}

/// Text, whether in JSON or in Avro.
fn text(column: &PrimitiveType, options: &ColumnOptions) -> Fate {
    use PrimitiveType as P;
    let truncate = options.timestamp_precision == TimestampPrecision::Truncate;
    match (column, options.numbers) {
        (P::String, _) => Fate::Exact,
        (P::Int | P::Long, NumberText::Parse) => Fate::ExactOr(&[InvalidNumber, NotAnInteger, OutOfRange]),
        (P::Float | P::Double, NumberText::Parse) => Fate::Loss(&[InvalidNumber, OutOfRange, PrecisionLost]),
        (P::Decimal { .. }, NumberText::Parse) => Fate::ExactOr(&[InvalidNumber, OutOfRange, PrecisionLost]),
        (P::Date, _) => Fate::ExactOr(&[InvalidDate]),
        (P::Time, _) if truncate => Fate::Loss(&[InvalidTime]),
        (P::Time, _) => Fate::ExactOr(&[InvalidTime, PrecisionLost]),
        (P::Timestamp, _) if truncate => Fate::Loss(&[InvalidTimestamp, ZoneForbidden]),
        (P::Timestamp, _) => Fate::ExactOr(&[InvalidTimestamp, ZoneForbidden, PrecisionLost]),
        (P::Timestamptz, _) if truncate => Fate::Loss(&[InvalidTimestamp, ZoneMissing]),
        (P::Timestamptz, _) => Fate::ExactOr(&[InvalidTimestamp, ZoneMissing, PrecisionLost]),
        (P::TimestampNs, _) if truncate => Fate::Loss(&[InvalidTimestamp, ZoneForbidden, OutOfRange]),
        (P::TimestampNs, _) => Fate::ExactOr(&[InvalidTimestamp, ZoneForbidden, PrecisionLost, OutOfRange]),
        (P::TimestamptzNs, _) if truncate => Fate::Loss(&[InvalidTimestamp, ZoneMissing, OutOfRange]),
        (P::TimestamptzNs, _) => Fate::ExactOr(&[InvalidTimestamp, ZoneMissing, PrecisionLost, OutOfRange]),
        (P::Uuid, _) => Fate::ExactOr(&[InvalidUuid]),
        (P::Binary | P::Fixed(_), _) => bytes_as_text(column, options.binary),
        _ => Fate::Reject(WrongType),
    }
}

fn bytes_as_text(column: &PrimitiveType, encoding: BinaryText) -> Fate {
    match (column, encoding) {
        (_, BinaryText::Reject) => Fate::Reject(UndeclaredEncoding),
        (PrimitiveType::Binary, BinaryText::Utf8) => Fate::Exact,
        (PrimitiveType::Binary, _) => Fate::ExactOr(&[InvalidEncoding]),
        (_, BinaryText::Utf8) => Fate::ExactOr(&[WrongLength]),
        (_, _) => Fate::ExactOr(&[InvalidEncoding, WrongLength]),
    }
}

/// Anything but text, in a column of a primitive type.
fn number(wire: Wire, column: &PrimitiveType, options: &ColumnOptions) -> Fate {
    use PrimitiveType as P;
    match (wire, column) {
        (Wire::JsonBoolean | Wire::AvroBoolean, P::Boolean)
        | (Wire::AvroInt, P::Int | P::Long | P::Double)
        | (Wire::AvroLong, P::Long)
        | (Wire::AvroFloat, P::Float | P::Double)
        | (Wire::AvroDouble, P::Double)
        | (Wire::AvroEnum | Wire::AvroUuidText, P::String)
        | (Wire::AvroBytes | Wire::AvroFixed | Wire::AvroUuid, P::Binary)
        | (Wire::AvroUuid, P::Uuid | P::Fixed(16))
        | (Wire::AvroDate, P::Date) => Fate::Exact,
        (Wire::JsonInteger, P::Int | P::Long | P::Decimal { .. })
        | (Wire::AvroLong, P::Int)
        | (Wire::AvroTime, P::Time) => Fate::ExactOr(&[OutOfRange]),
        (Wire::JsonFraction | Wire::AvroFloat | Wire::AvroDouble, P::Int | P::Long) => {
            Fate::ExactOr(&[NotAnInteger, OutOfRange])
        }
        // The nearest value is what a binary fraction can be.
        (Wire::JsonFraction, P::Float | P::Double) => Fate::Loss(&[OutOfRange]),
        (Wire::JsonInteger, P::Float | P::Double)
        | (Wire::JsonFraction, P::Decimal { .. })
        | (Wire::AvroDouble, P::Float) => Fate::ExactOr(&[OutOfRange, PrecisionLost]),
        (Wire::AvroInt, P::Float) | (Wire::AvroLong, P::Float | P::Double) => Fate::ExactOr(&[PrecisionLost]),
        (Wire::AvroInt, P::Decimal { precision, scale }) => digits(10, *precision, *scale),
        (Wire::AvroLong, P::Decimal { precision, scale }) => digits(19, *precision, *scale),
        (Wire::AvroDecimal, P::Decimal { .. }) => Fate::ExactOr(&[InvalidNumber, OutOfRange, PrecisionLost]),
        (Wire::AvroUuid, P::Fixed(_)) => Fate::Reject(WrongLength),
        (Wire::AvroBytes | Wire::AvroFixed, P::Fixed(_)) => Fate::ExactOr(&[WrongLength]),
        (Wire::AvroUuidText, P::Uuid) => Fate::ExactOr(&[InvalidUuid]),
        (_, P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs) => time(wire, column, options),
        _ => Fate::Reject(WrongType),
    }
}

/// An integer of so many digits in a decimal.
fn digits(count: u32, precision: u32, scale: u32) -> Fate {
    if precision.saturating_sub(scale) >= count { Fate::Exact } else { Fate::ExactOr(&[OutOfRange]) }
}

/// Anything but text, in a column of timestamps.
fn time(wire: Wire, column: &PrimitiveType, options: &ColumnOptions) -> Fate {
    use PrimitiveType as P;
    let zoned = matches!(column, P::Timestamptz | P::TimestamptzNs);
    let wanted = if matches!(column, P::TimestampNs | P::TimestamptzNs) { 9 } else { 6 };
    let places = match wire {
        Wire::AvroTimestampMillis | Wire::AvroTimestampMicros | Wire::AvroTimestampNanos if !zoned => {
            return Fate::Reject(ZoneForbidden);
        }
        Wire::AvroLocalTimestampMillis | Wire::AvroLocalTimestampMicros | Wire::AvroLocalTimestampNanos
            if zoned =>
        {
            return Fate::Reject(ZoneMissing);
        }
        Wire::AvroTimestampMillis | Wire::AvroLocalTimestampMillis => 3,
        Wire::AvroTimestampMicros | Wire::AvroLocalTimestampMicros => 6,
        Wire::AvroTimestampNanos | Wire::AvroLocalTimestampNanos => 9,
        Wire::AvroInt | Wire::AvroLong | Wire::JsonInteger | Wire::JsonFraction => {
            match options.timestamp_numbers {
                TimestampNumbers::Reject => return Fate::Reject(UndeclaredUnit),
                TimestampNumbers::Seconds => 0,
                TimestampNumbers::Millis => 3,
                TimestampNumbers::Micros => 6,
                TimestampNumbers::Nanos => 9,
            }
        }
        _ => return Fate::Reject(WrongType),
    };
    let truncate = options.timestamp_precision == TimestampPrecision::Truncate;
    // Text has any number of digits; 64 bits of a unit no finer than the column's may be too much for it.
    let json = matches!(wire, Wire::JsonInteger | Wire::JsonFraction);
    let beyond = json || (places < wanted && wire != Wire::AvroInt);
    let cut = places > wanted || wire == Wire::JsonFraction;
    match (cut, truncate, beyond) {
        (false, _, false) => Fate::Exact,
        (false, _, true) => Fate::ExactOr(&[OutOfRange]),
        (true, true, false) => Fate::Loss(&[]),
        (true, true, true) => Fate::Loss(&[OutOfRange]),
        (true, false, false) => Fate::ExactOr(&[PrecisionLost]),
        (true, false, true) => Fate::ExactOr(&[OutOfRange, PrecisionLost]),
    }
}
