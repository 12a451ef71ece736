//! Columns of the layout's batches: each is described, filled and named in one place.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMillisecondArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::{Error, ErrorKind, Result};

/// The type of a column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    Flag,
    Int,
    Long,
    Double,
    Time,
}

/// A column of rows of type `R`.
pub(super) struct Column<R> {
    pub(super) name: &'static str,
    pub(super) value: Value<R>,
}

/// How a column is filled from rows; the optional forms make it nullable.
pub(super) enum Value<R> {
    Text(fn(&R) -> &str),
    OptionalText(fn(&R) -> Option<&str>),
    Flag(fn(&R) -> bool),
    Int(fn(&R) -> i32),
    OptionalInt(fn(&R) -> Option<i32>),
    Long(fn(&R) -> i64),
    OptionalLong(fn(&R) -> Option<i64>),
    Double(fn(&R) -> f64),
    Time(fn(&R) -> i64),
    OptionalTime(fn(&R) -> Option<i64>),
}

/// A column.
pub(super) fn column<R>(name: &'static str, value: Value<R>) -> Column<R> {
    Column { name, value }
}

impl<R> Value<R> {
    fn kind(&self) -> (Kind, Nullable) {
        match self {
            Self::Text(_) => (Kind::Text, Nullable::No),
            Self::OptionalText(_) => (Kind::Text, Nullable::Yes),
            Self::Flag(_) => (Kind::Flag, Nullable::No),
            Self::Int(_) => (Kind::Int, Nullable::No),
            Self::OptionalInt(_) => (Kind::Int, Nullable::Yes),
            Self::Long(_) => (Kind::Long, Nullable::No),
            Self::OptionalLong(_) => (Kind::Long, Nullable::Yes),
            Self::Double(_) => (Kind::Double, Nullable::No),
            Self::Time(_) => (Kind::Time, Nullable::No),
            Self::OptionalTime(_) => (Kind::Time, Nullable::Yes),
        }
    }

    fn array(&self, rows: &[R]) -> ArrayRef {
        let time = |array: TimestampMillisecondArray| -> ArrayRef { Arc::new(array.with_timezone("+00:00")) };
        match self {
            Self::Text(value) => Arc::new(rows.iter().map(|row| Some(value(row))).collect::<StringArray>()),
            Self::OptionalText(value) => Arc::new(rows.iter().map(value).collect::<StringArray>()),
            Self::Flag(value) => Arc::new(rows.iter().map(|row| Some(value(row))).collect::<BooleanArray>()),
            Self::Int(value) => Arc::new(rows.iter().map(|row| Some(value(row))).collect::<Int32Array>()),
            Self::OptionalInt(value) => Arc::new(rows.iter().map(value).collect::<Int32Array>()),
            Self::Long(value) => Arc::new(rows.iter().map(|row| Some(value(row))).collect::<Int64Array>()),
            Self::OptionalLong(value) => Arc::new(rows.iter().map(value).collect::<Int64Array>()),
            Self::Double(value) => {
                Arc::new(rows.iter().map(|row| Some(value(row))).collect::<Float64Array>())
            }
            Self::Time(value) => time(rows.iter().map(|row| Some(value(row))).collect()),
            Self::OptionalTime(value) => time(rows.iter().map(value).collect()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nullable {
    Yes,
    No,
}

/// The schema of columns.
pub(super) fn schema_of<R>(columns: &[Column<R>]) -> SchemaRef {
    let fields: Vec<Field> = columns
        .iter()
        .map(|column| {
            let (kind, nullable) = column.value.kind();
            let data_type = match kind {
                Kind::Text => DataType::Utf8,
                Kind::Flag => DataType::Boolean,
                Kind::Int => DataType::Int32,
                Kind::Long => DataType::Int64,
                Kind::Double => DataType::Float64,
                Kind::Time => DataType::Timestamp(TimeUnit::Millisecond, Some("+00:00".into())),
            };
            Field::new(column.name, data_type, nullable == Nullable::Yes)
        })
        .collect();
    Arc::new(Schema::new(fields))
}

/// Rows as one batch.
pub(super) fn batch_of<R>(columns: &[Column<R>], rows: &[R]) -> Result<RecordBatch> {
    let arrays = columns.iter().map(|column| column.value.array(rows)).collect();
    RecordBatch::try_new(schema_of(columns), arrays).map_err(|cause| {
        Error::new(ErrorKind::Internal, "the layout does not fit its own schema").with_source(cause)
    })
}

/// A count as Arrow has it.
pub(super) fn long(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
