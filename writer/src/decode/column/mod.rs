//! Columns under construction, with a way back: [`Column::truncate`] takes them to where a row began.
//!
//! Every child of a struct has as many values as its struct, and the child of a list as many as the last offset says.
//! So the number of rows alone tells what to cut off, and a field that a message has filled is one longer than the rows.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{ArrayRef, LargeBinaryArray, StringArray};
use arrow_schema::{ArrowError, DataType, TimeUnit};

mod nested;
mod values;

pub(crate) use nested::{Lists, Maps, Structs};
pub(crate) use values::{Booleans, Bytes, FixedBytes, Primitives, Validity};

/// The values of one field.
#[derive(Debug)]
pub(crate) enum Column {
    Boolean(Booleans),
    Int(Primitives<i32>),
    Long(Primitives<i64>),
    Float(Primitives<f32>),
    Double(Primitives<f64>),
    Decimal(Primitives<i128>),
    Date(Primitives<i32>),
    Time(Primitives<i64>),
    Timestamp(Primitives<i64>),
    String(Bytes<i32>),
    Binary(Bytes<i64>),
    Fixed(FixedBytes),
    Uuid(FixedBytes),
    Struct(Structs),
    List(Box<Lists>),
    Map(Box<Maps>),
}

impl Column {
    /// Values so far.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Boolean(column) => column.validity.len(),
            Self::Int(column) | Self::Date(column) => column.values.len(),
            Self::Long(column) | Self::Time(column) | Self::Timestamp(column) => column.values.len(),
            Self::Float(column) => column.values.len(),
            Self::Double(column) => column.values.len(),
            Self::Decimal(column) => column.values.len(),
            Self::String(column) => column.validity.len(),
            Self::Binary(column) => column.validity.len(),
            Self::Fixed(column) | Self::Uuid(column) => column.validity.len(),
            Self::Struct(column) => column.validity.len(),
            Self::List(column) => column.validity.len(),
            Self::Map(column) => column.validity.len(),
        }
    }

    /// Appends a null. Also used below a null struct, where required children have a null that nobody sees.
    pub(crate) fn push_null(&mut self) {
        match self {
            Self::Boolean(column) => column.push_null(),
            Self::Int(column) | Self::Date(column) => column.push_null(),
            Self::Long(column) | Self::Time(column) | Self::Timestamp(column) => column.push_null(),
            Self::Float(column) => column.push_null(),
            Self::Double(column) => column.push_null(),
            Self::Decimal(column) => column.push_null(),
            Self::String(column) => column.push_null(),
            Self::Binary(column) => column.push_null(),
            Self::Fixed(column) | Self::Uuid(column) => column.push_null(),
            Self::Struct(column) => column.push_null(),
            Self::List(column) => column.push_null(),
            Self::Map(column) => column.push_null(),
        }
    }

    /// Forgets all values from `len` on; those of the last one may be incomplete.
    pub(crate) fn truncate(&mut self, len: usize) {
        match self {
            Self::Boolean(column) => column.truncate(len),
            Self::Int(column) | Self::Date(column) => column.truncate(len),
            Self::Long(column) | Self::Time(column) | Self::Timestamp(column) => column.truncate(len),
            Self::Float(column) => column.truncate(len),
            Self::Double(column) => column.truncate(len),
            Self::Decimal(column) => column.truncate(len),
            Self::String(column) => column.truncate(len),
            Self::Binary(column) => column.truncate(len),
            Self::Fixed(column) | Self::Uuid(column) => column.truncate(len),
            Self::Struct(column) => column.truncate(len),
            Self::List(column) => column.truncate(len),
            Self::Map(column) => column.truncate(len),
        }
    }

    /// The values as an array of `data_type`; the column is empty afterwards.
    pub(crate) fn finish(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        Ok(match (self, data_type) {
            (Self::Boolean(column), DataType::Boolean) => Arc::new(column.finish()),
            (Self::Int(column), DataType::Int32) => Arc::new(column.finish::<Int32Type>()),
            (Self::Long(column), DataType::Int64) => Arc::new(column.finish::<Int64Type>()),
            (Self::Float(column), DataType::Float32) => Arc::new(column.finish::<Float32Type>()),
            (Self::Double(column), DataType::Float64) => Arc::new(column.finish::<Float64Type>()),
            (Self::Date(column), DataType::Date32) => Arc::new(column.finish::<Date32Type>()),
            (Self::Time(column), DataType::Time64(TimeUnit::Microsecond)) => {
                Arc::new(column.finish::<Time64MicrosecondType>())
            }
            (Self::Decimal(column), DataType::Decimal128(precision, scale)) => {
                Arc::new(column.finish::<Decimal128Type>().with_precision_and_scale(*precision, *scale)?)
            }
            (Self::Timestamp(column), DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
                Arc::new(column.finish::<TimestampMicrosecondType>().with_timezone_opt(zone.clone()))
            }
            (Self::Timestamp(column), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
                Arc::new(column.finish::<TimestampNanosecondType>().with_timezone_opt(zone.clone()))
            }
            (Self::String(column), DataType::Utf8) => {
                let (offsets, values, nulls) = column.finish();
                Arc::new(StringArray::try_new(offsets, values, nulls)?)
            }
            (Self::Binary(column), DataType::LargeBinary) => {
                let (offsets, values, nulls) = column.finish();
                Arc::new(LargeBinaryArray::try_new(offsets, values, nulls)?)
            }
            (Self::Fixed(column) | Self::Uuid(column), DataType::FixedSizeBinary(width)) => {
                Arc::new(column.finish(*width)?)
            }
            (Self::Struct(column), DataType::Struct(fields)) => Arc::new(column.finish(fields)?),
            (Self::List(column), DataType::List(element)) => Arc::new(column.finish(element)?),
            (Self::Map(column), DataType::Map(entries, false)) => Arc::new(column.finish(entries)?),
            (column, other) => {
                return Err(ArrowError::SchemaError(format!("{column:?} is not written as {other}")));
            }
        })
    }

    /// Whether [`Self::finish`] knows `data_type` for this column, children aside.
    pub(crate) fn fits(&self, data_type: &DataType) -> bool {
        use DataType as T;
        use TimeUnit::{Microsecond, Nanosecond};
        matches!(
            (self, data_type),
            (Self::Boolean(_), T::Boolean)
                | (Self::Int(_), T::Int32)
                | (Self::Long(_), T::Int64)
                | (Self::Float(_), T::Float32)
                | (Self::Double(_), T::Float64)
                | (Self::Decimal(_), T::Decimal128(_, _))
                | (Self::Date(_), T::Date32)
                | (Self::Time(_), T::Time64(Microsecond))
                | (Self::Timestamp(_), T::Timestamp(Microsecond | Nanosecond, _))
                | (Self::String(_), T::Utf8)
                | (Self::Binary(_), T::LargeBinary)
                | (Self::Fixed(_) | Self::Uuid(_), T::FixedSizeBinary(_))
                | (Self::Struct(_), T::Struct(_))
                | (Self::List(_), T::List(_))
                | (Self::Map(_), T::Map(_, false))
        )
    }
}
