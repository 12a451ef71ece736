//! Why a message is no row.

use std::borrow::Cow;
use std::fmt;

/// Why a message is no row of the table: for a person, for a dead letter, and for counting by code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// The kind.
    pub code: RejectCode,
    /// The field: `o.a`, `tags[3]`, `m["k"]`; empty where the message as a whole is meant.
    pub path: String,
    /// The type that the table expects there; empty where the message as a whole is meant.
    pub expected: Cow<'static, str>,
    /// What the message holds there, shortened.
    pub found: String,
    /// A sentence without a full stop that says what is wrong.
    pub reason: Cow<'static, str>,
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)?;
        if !self.path.is_empty() {
            write!(f, ", in `{}`", self.path)?;
        }
        if !self.expected.is_empty() {
            write!(f, ", expected {}", self.expected)?;
        }
        if !self.found.is_empty() {
            write!(f, ", found `{}`", self.found)?;
        }
        Ok(())
    }
}

/// The kinds of rejects. Their texts are stable: dead letters, metrics and configuration use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RejectCode {
    /// The message has no value and tombstones are not skipped.
    Tombstone,
    /// The value has no bytes.
    EmptyValue,
    /// The value, or text in it, is not UTF-8.
    InvalidUtf8,
    /// The value begins with a byte order mark.
    ByteOrderMark,
    /// The value is not JSON (RFC 8259).
    MalformedJson,
    /// The value is no datum of the writer's Avro schema.
    MalformedAvro,
    /// Bytes follow the value: in JSON other than white space.
    TrailingData,
    /// Arrays and objects are nested deeper than the limit.
    TooDeep,
    /// The lists and maps of the message stand for more values than the limit.
    TooManyValues,
    /// The JSON value is not an object.
    NotAnObject,
    /// An escape `\uD800`–`\uDFFF` without its other half: no character.
    LoneSurrogate,
    /// A name that occurs twice in an object that fills a struct or map.
    DuplicateField,
    /// A field that the schema does not know, where such fields are rejected.
    UnknownField,
    /// A required field is absent.
    MissingField,
    /// A required field, element or value is null.
    NullInRequired,
    /// A JSON value of a kind that this type is not read from.
    WrongType,
    /// A number with a fraction in an integer column.
    NotAnInteger,
    /// A value beyond the range of its type.
    OutOfRange,
    /// A value that its type can hold only rounded.
    PrecisionLost,
    /// Text that is not a number, where numbers in text are allowed.
    InvalidNumber,
    /// Text that is not a date `YYYY-MM-DD`.
    InvalidDate,
    /// Text that is not a time `HH:MM:SS[.ffffff]`.
    InvalidTime,
    /// Text that is not a timestamp of RFC 3339.
    InvalidTimestamp,
    /// A timestamp without zone for a `timestamptz` column.
    ZoneMissing,
    /// A timestamp with zone for a `timestamp` column.
    ZoneForbidden,
    /// A number for a timestamp whose unit is not declared.
    UndeclaredUnit,
    /// Text for a binary column whose encoding is not declared.
    UndeclaredEncoding,
    /// Text that is not of the declared binary encoding.
    InvalidEncoding,
    /// Bytes of another length than that of a `fixed` column.
    WrongLength,
    /// Text that is not a UUID.
    InvalidUuid,
}

impl RejectCode {
    /// All codes, for documentation and for metrics that name each from the start.
    pub const ALL: [Self; 30] = [
        Self::Tombstone,
        Self::EmptyValue,
        Self::InvalidUtf8,
        Self::ByteOrderMark,
        Self::MalformedJson,
        Self::MalformedAvro,
        Self::TrailingData,
        Self::TooDeep,
        Self::TooManyValues,
        Self::NotAnObject,
        Self::LoneSurrogate,
        Self::DuplicateField,
        Self::UnknownField,
        Self::MissingField,
        Self::NullInRequired,
        Self::WrongType,
        Self::NotAnInteger,
        Self::OutOfRange,
        Self::PrecisionLost,
        Self::InvalidNumber,
        Self::InvalidDate,
        Self::InvalidTime,
        Self::InvalidTimestamp,
        Self::ZoneMissing,
        Self::ZoneForbidden,
        Self::UndeclaredUnit,
        Self::UndeclaredEncoding,
        Self::InvalidEncoding,
        Self::WrongLength,
        Self::InvalidUuid,
    ];

    /// The stable text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tombstone => "tombstone",
            Self::EmptyValue => "empty-value",
            Self::InvalidUtf8 => "invalid-utf8",
            Self::ByteOrderMark => "byte-order-mark",
            Self::MalformedJson => "malformed-json",
            Self::MalformedAvro => "malformed-avro",
            Self::TrailingData => "trailing-data",
            Self::TooDeep => "too-deep",
            Self::TooManyValues => "too-many-values",
            Self::NotAnObject => "not-an-object",
            Self::LoneSurrogate => "lone-surrogate",
            Self::DuplicateField => "duplicate-field",
            Self::UnknownField => "unknown-field",
            Self::MissingField => "missing-field",
            Self::NullInRequired => "null-in-required",
            Self::WrongType => "wrong-type",
            Self::NotAnInteger => "not-an-integer",
            Self::OutOfRange => "out-of-range",
            Self::PrecisionLost => "precision-lost",
            Self::InvalidNumber => "invalid-number",
            Self::InvalidDate => "invalid-date",
            Self::InvalidTime => "invalid-time",
            Self::InvalidTimestamp => "invalid-timestamp",
            Self::ZoneMissing => "zone-missing",
            Self::ZoneForbidden => "zone-forbidden",
            Self::UndeclaredUnit => "undeclared-unit",
            Self::UndeclaredEncoding => "undeclared-encoding",
            Self::InvalidEncoding => "invalid-encoding",
            Self::WrongLength => "wrong-length",
            Self::InvalidUuid => "invalid-uuid",
        }
    }
}

impl fmt::Display for RejectCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
