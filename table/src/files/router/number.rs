//! Numbering of a column's values in order of appearance.

use std::collections::HashMap;
use std::hash::Hash;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};
use iceberg::spec::{Literal, PrimitiveLiteral, PrimitiveType, Type};
use uuid::Uuid;

use crate::{Error, ErrorKind, Result};

/// A number for each row, equal where the values are equal.
#[derive(Debug)]
pub(super) struct Numbering {
    numbers: Vec<u32>,
    /// For each number the first row that has it.
    pub(super) first_rows: Vec<usize>,
}

impl Numbering {
    /// All rows are equal.
    pub(super) fn single(rows: usize) -> Self {
        Self { numbers: vec![0; rows], first_rows: vec![0] }
    }

    /// Numbers by key. A run of one key costs one look-up.
    fn by_key<K: Hash + Eq + Copy>(rows: usize, key: impl Fn(usize) -> K) -> Self {
        let mut known: HashMap<K, u32> = HashMap::new();
        let mut numbering = Self { numbers: Vec::with_capacity(rows), first_rows: Vec::new() };
        let mut last: Option<(K, u32)> = None;
        for row in 0..rows {
            let key = key(row);
            let number = match last {
                Some((same, number)) if same == key => number,
                _ => {
                    let next = known.len() as u32;
                    *known.entry(key).or_insert_with(|| {
                        numbering.first_rows.push(row);
                        next
                    })
                }
            };
            numbering.numbers.push(number);
            last = Some((key, number));
        }
        numbering
    }

    /// Numbers the pairs of two numberings of the same rows.
    pub(super) fn combine(self, other: &Self) -> Self {
        if other.first_rows.len() <= 1 {
            return self;
        }
        Self::by_key(self.numbers.len(), |row| (self.numbers[row], other.numbers[row]))
    }

    /// The rows ordered by number, and where each number's rows end.
    pub(super) fn grouped(&self) -> (Vec<u32>, Vec<usize>) {
        let mut ends = vec![0usize; self.first_rows.len()];
        for number in &self.numbers {
            ends[*number as usize] += 1;
        }
        let mut total = 0;
        let mut places = Vec::with_capacity(ends.len());
        for end in &mut ends {
            places.push(total);
            total += *end;
            *end = total;
        }
        let mut rows = vec![0u32; self.numbers.len()];
        for (row, number) in self.numbers.iter().enumerate() {
            let place = &mut places[*number as usize];
            rows[*place] = row as u32;
            *place += 1;
        }
        (rows, ends)
    }

    /// Numbers the values of a column; nulls are equal to each other, and so are all NaNs.
    pub(super) fn of(values: &ArrayRef) -> Result<Self> {
        let rows = values.len();
        Ok(match values.data_type() {
            DataType::Boolean => {
                let typed = values.as_boolean();
                Self::by_key(rows, |row| typed.is_valid(row).then(|| typed.value(row)))
            }
            DataType::Int32 => Self::primitive::<Int32Type, _>(values, |value| value),
            DataType::Int64 => Self::primitive::<Int64Type, _>(values, |value| value),
            DataType::Date32 => Self::primitive::<Date32Type, _>(values, |value| value),
            DataType::Time64(TimeUnit::Microsecond) => {
                Self::primitive::<Time64MicrosecondType, _>(values, |value| value)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Self::primitive::<TimestampMicrosecondType, _>(values, |value| value)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                Self::primitive::<TimestampNanosecondType, _>(values, |value| value)
            }
            DataType::Decimal128(_, _) => Self::primitive::<Decimal128Type, _>(values, |value| value),
            DataType::Float32 => {
                Self::primitive::<Float32Type, _>(values, |value| one_nan(f64::from(value)).to_bits())
            }
            DataType::Float64 => Self::primitive::<Float64Type, _>(values, |value| one_nan(value).to_bits()),
            DataType::Utf8 => {
                let typed = values.as_string::<i32>();
                Self::by_key(rows, |row| typed.is_valid(row).then(|| typed.value(row)))
            }
            DataType::LargeBinary => {
                let typed = values.as_binary::<i64>();
                Self::by_key(rows, |row| typed.is_valid(row).then(|| typed.value(row)))
            }
            DataType::FixedSizeBinary(_) => {
                let typed = values.as_fixed_size_binary();
                Self::by_key(rows, |row| typed.is_valid(row).then(|| typed.value(row)))
            }
            other => return Err(unsupported(other)),
        })
    }

    fn primitive<T: ArrowPrimitiveType, K: Hash + Eq + Copy>(
        values: &ArrayRef,
        key: impl Fn(T::Native) -> K,
    ) -> Self {
        let typed = values.as_primitive::<T>();
        Self::by_key(typed.len(), |row| typed.is_valid(row).then(|| key(typed.value(row))))
    }
}

fn one_nan(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

fn unsupported(data_type: &DataType) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("a partition value of type `{data_type}`: nothing was written"),
    )
}

/// The value of a row as a partition tuple has it; `source` is the type of the transform's source column.
pub(super) fn literal_at(values: &ArrayRef, source: &Type, row: usize) -> Result<Option<Literal>> {
    if values.is_null(row) {
        return Ok(None);
    }
    Ok(Some(match values.data_type() {
        DataType::Boolean => Literal::bool(values.as_boolean().value(row)),
        DataType::Int32 => Literal::int(values.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => Literal::long(values.as_primitive::<Int64Type>().value(row)),
        DataType::Date32 => Literal::date(values.as_primitive::<Date32Type>().value(row)),
        DataType::Time64(TimeUnit::Microsecond) => {
            Literal::long(values.as_primitive::<Time64MicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Literal::long(values.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Literal::long(values.as_primitive::<TimestampNanosecondType>().value(row))
        }
        DataType::Decimal128(_, _) => {
            Literal::Primitive(PrimitiveLiteral::Int128(values.as_primitive::<Decimal128Type>().value(row)))
        }
        DataType::Float32 => Literal::float(values.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Literal::double(values.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => Literal::string(values.as_string::<i32>().value(row)),
        DataType::LargeBinary => {
            Literal::Primitive(PrimitiveLiteral::Binary(values.as_binary::<i64>().value(row).to_vec()))
        }
        DataType::FixedSizeBinary(_) => {
            let bytes = values.as_fixed_size_binary().value(row);
            match (source, <[u8; 16]>::try_from(bytes)) {
                (Type::Primitive(PrimitiveType::Uuid), Ok(bytes)) => Literal::uuid(Uuid::from_bytes(bytes)),
                _ => Literal::Primitive(PrimitiveLiteral::Binary(bytes.to_vec())),
            }
        }
        other => return Err(unsupported(other)),
    }))
}
