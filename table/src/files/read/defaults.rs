//! Values for columns that a file does not have.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int32Array, Int64Array, LargeBinaryArray, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray, new_null_array,
};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};
use iceberg::spec::{Literal, PrimitiveLiteral, Schema};

use crate::files::project::field_id;
use crate::{Error, ErrorKind, Result};

/// The value of a field that a file does not have, as an array of length 1: the partition's value where there
/// is one, else the field's initial default, else null. `Data` where the field is required and has none.
pub(super) fn missing(
    schema: &Schema,
    field: &Field,
    constants: &HashMap<i32, Option<Literal>>,
) -> Result<ArrayRef> {
    let iceberg = field_id(field).and_then(|id| schema.field_by_id(id));
    let constant = iceberg.and_then(|iceberg| constants.get(&iceberg.id));
    let value = match constant {
        Some(value) => value.as_ref(),
        None => iceberg.and_then(|iceberg| iceberg.initial_default.as_ref()),
    };
    match value {
        Some(Literal::Primitive(value)) => constant_array(value, field.data_type()).map_err(|cause| {
            let message = format!("column `{}`: its default does not fit its type", field.name());
            Error::new(ErrorKind::Data, message).with_source(cause)
        }),
        Some(_) => Err(Error::new(
            ErrorKind::Unsupported,
            format!("column `{}` has a default of a nested type", field.name()),
        )),
        None if field.is_nullable() => Ok(new_null_array(field.data_type(), 1)),
        None => Err(Error::new(
            ErrorKind::Data,
            format!("required column `{}` is not in the file and has no initial default", field.name()),
        )),
    }
}

fn constant_array(value: &PrimitiveLiteral, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let array: ArrayRef = match (value, to) {
        (PrimitiveLiteral::Boolean(value), DataType::Boolean) => Arc::new(BooleanArray::from(vec![*value])),
        (PrimitiveLiteral::Int(value), DataType::Date32) => Arc::new(Date32Array::from(vec![*value])),
        (PrimitiveLiteral::Int(value), DataType::Int32) => Arc::new(Int32Array::from(vec![*value])),
        // A partition value may be of the column's type before it was promoted.
        (PrimitiveLiteral::Int(value), DataType::Int64) => {
            Arc::new(Int64Array::from(vec![i64::from(*value)]))
        }
        (PrimitiveLiteral::Long(value), DataType::Int64) => Arc::new(Int64Array::from(vec![*value])),
        (PrimitiveLiteral::Long(value), DataType::Time64(TimeUnit::Microsecond)) => {
            Arc::new(Time64MicrosecondArray::from(vec![*value]))
        }
        (PrimitiveLiteral::Long(value), DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
            Arc::new(TimestampMicrosecondArray::from(vec![*value]).with_timezone_opt(zone.clone()))
        }
        (PrimitiveLiteral::Long(value), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
            Arc::new(TimestampNanosecondArray::from(vec![*value]).with_timezone_opt(zone.clone()))
        }
        (PrimitiveLiteral::Float(value), DataType::Float32) => Arc::new(Float32Array::from(vec![value.0])),
        (PrimitiveLiteral::Float(value), DataType::Float64) => {
            Arc::new(Float64Array::from(vec![f64::from(value.0)]))
        }
        (PrimitiveLiteral::Double(value), DataType::Float64) => Arc::new(Float64Array::from(vec![value.0])),
        (PrimitiveLiteral::Int128(value), DataType::Decimal128(precision, scale)) => {
            Arc::new(Decimal128Array::from(vec![*value]).with_precision_and_scale(*precision, *scale)?)
        }
        (PrimitiveLiteral::String(value), DataType::Utf8) => {
            Arc::new(StringArray::from(vec![value.as_str()]))
        }
        (PrimitiveLiteral::Binary(value), DataType::LargeBinary) => {
            Arc::new(LargeBinaryArray::from_vec(vec![value.as_slice()]))
        }
        (PrimitiveLiteral::Binary(value), DataType::FixedSizeBinary(_)) => {
            Arc::new(FixedSizeBinaryArray::try_from_iter(std::iter::once(value.as_slice()))?)
        }
        (PrimitiveLiteral::UInt128(value), DataType::FixedSizeBinary(16)) => {
            Arc::new(FixedSizeBinaryArray::try_from_iter(std::iter::once(value.to_be_bytes()))?)
        }
        (value, to) => return Err(ArrowError::CastError(format!("{value:?} is no `{to}`"))),
    };
    cast(&array, to)
}
