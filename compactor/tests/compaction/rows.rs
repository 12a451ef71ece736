//! Rows from a seed, for any schema.

use std::sync::Arc;

use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, Date32Array, Decimal128Array, ListArray, PrimitiveArray,
    RecordBatch, StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, SchemaRef};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Random rows. A tenth of the values of an optional column is null; `id` counts up from the seed.
pub(crate) fn random_batch(schema: &SchemaRef, rows: usize, seed: u64) -> RecordBatch {
    let mut random = StdRng::seed_from_u64(seed);
    let columns = schema.fields().iter().map(|field| column(field, rows, seed, &mut random)).collect();
    RecordBatch::try_new(schema.clone(), columns).expect("columns of the schema")
}

fn column(field: &Field, rows: usize, seed: u64, random: &mut StdRng) -> ArrayRef {
    let valid: Vec<bool> =
        (0..rows).map(|_| !field.is_nullable() || random.random_range(0..10) > 0).collect();
    match field.data_type() {
        DataType::Int64 if field.name() == "id" => {
            let first = i64::try_from(seed * 1_000_000).expect("a small seed");
            Arc::new(
                (0..).take(rows).map(|row: i64| Some(first + row)).collect::<PrimitiveArray<Int64Type>>(),
            )
        }
        DataType::Int64 => primitive::<Int64Type>(&valid, || random.random()),
        DataType::Int32 => primitive::<Int32Type>(&valid, || random.random_range(-1000..1000)),
        DataType::Float32 => primitive::<Float32Type>(&valid, || random.random()),
        DataType::Float64 => primitive::<Float64Type>(&valid, || random.random()),
        DataType::Boolean => Arc::new(BooleanArray::from(optional(&valid, || random.random::<bool>()))),
        DataType::Date32 => Arc::new(Date32Array::from(optional(&valid, || random.random_range(-400..400)))),
        DataType::Timestamp(_, zone) => {
            // From two months before the epoch on, so that days and months before 1970 occur.
            let micros = optional(&valid, || random.random_range(-60..60) * 86_400_000_000 + 1_234_567);
            Arc::new(PrimitiveArray::<TimestampMicrosecondType>::from(micros).with_timezone_opt(zone.clone()))
        }
        DataType::Decimal128(precision, scale) => {
            let values =
                Decimal128Array::from(optional(&valid, || i128::from(random.random_range(-9999..9999))));
            Arc::new(values.with_precision_and_scale(*precision, *scale).expect("a precision"))
        }
        DataType::Utf8 => Arc::new(StringArray::from(optional(&valid, || text(field.name(), random)))),
        DataType::Struct(fields) => {
            let children = fields.iter().map(|field| column(field, rows, seed, random)).collect();
            Arc::new(StructArray::new(fields.clone(), children, Some(NullBuffer::from(valid))))
        }
        DataType::List(element) => {
            let lengths: Vec<usize> = (0..rows).map(|_| random.random_range(0..4)).collect();
            let elements = column(element, lengths.iter().sum(), seed, random);
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(ListArray::new(element.clone(), offsets, elements, Some(NullBuffer::from(valid))))
        }
        other => panic!("no random values of type {other}"),
    }
}

/// Names repeat, payloads do not.
fn text(column: &str, random: &mut StdRng) -> String {
    match column {
        "name" => format!("name/{}", random.random_range(0..20)),
        _ => format!("{:032x}{:032x}", random.random::<u128>(), random.random::<u128>()),
    }
}

fn primitive<T: ArrowPrimitiveType>(valid: &[bool], value: impl FnMut() -> T::Native) -> ArrayRef {
    Arc::new(optional(valid, value).into_iter().collect::<PrimitiveArray<T>>())
}

fn optional<V>(valid: &[bool], mut value: impl FnMut() -> V) -> Vec<Option<V>> {
    valid
        .iter()
        .map(|&valid| {
            let value = value();
            valid.then_some(value)
        })
        .collect()
}
