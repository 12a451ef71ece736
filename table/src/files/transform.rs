//! Partition transforms over Arrow arrays, as the Iceberg specification defines them (appendix B for the
//! hashes).
//!
//! They are written here because `iceberg` 0.10.1 puts some timestamps before 1970 into the next day, hashes
//! nanoseconds before 1970 by truncation, and knows neither `truncate` of `LargeBinary` nor `hour` of
//! nanoseconds.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, Date32Array, Int32Array, LargeBinaryArray, StringArray, new_null_array};
use arrow_schema::{DataType, TimeUnit};
use iceberg::spec::Transform;

use crate::{Error, ErrorKind, Result};

const MICROS_PER_DAY: i64 = 86_400_000_000;
const MICROS_PER_HOUR: i64 = 3_600_000_000;
const NANOS_PER_MICRO: i64 = 1_000;

/// Applies a transform to a column. A null stays null. Days come as `Date32`, the other times, buckets and
/// what is void as `Int32`.
pub(super) fn apply(transform: Transform, column: &ArrayRef) -> Result<ArrayRef> {
    match transform {
        Transform::Identity => Ok(Arc::clone(column)),
        Transform::Void => Ok(new_null_array(&DataType::Int32, column.len())),
        Transform::Bucket(count) => bucket(count, column),
        Transform::Truncate(width) => truncate(width, column),
        Transform::Year => Ok(Arc::new(map_days(column, |day| civil_from_days(day).0 - 1970)?)),
        Transform::Month => Ok(Arc::new(map_days(column, |day| {
            let (year, month, _) = civil_from_days(day);
            (year - 1970) * 12 + month as i32 - 1
        })?)),
        Transform::Day => {
            let days: Date32Array = map_days(column, |day| day)?.reinterpret_cast();
            Ok(Arc::new(days))
        }
        Transform::Hour => hour(column),
        Transform::Unknown => Err(unsupported(transform, column.data_type())),
    }
}

/// The year, month (from 1) and day (from 1) of a number of days since 1970-01-01, in the proleptic Gregorian
/// calendar.
pub(super) fn civil_from_days(days: i32) -> (i32, u32, u32) {
    const DAYS_PER_ERA: i64 = 146_097;
    // Years begin in March here, so that the leap day is a year's last day.
    let shifted = i64::from(days) + 719_468;
    let era = shifted.div_euclid(DAYS_PER_ERA);
    let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year as i32, month as u32, day as u32)
}

/// 32-bit Murmur3 of the x86 variant with seed 0.
pub(super) fn murmur3(bytes: &[u8]) -> u32 {
    fn mixed(block: u32) -> u32 {
        block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
    }
    let mut hash = 0u32;
    let (blocks, tail) = bytes.as_chunks::<4>();
    for block in blocks {
        hash ^= mixed(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    if !tail.is_empty() {
        let mut block = [0u8; 4];
        block[..tail.len()].copy_from_slice(tail);
        hash ^= mixed(u32::from_le_bytes(block));
    }
    hash ^= bytes.len() as u32;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

fn unsupported(transform: Transform, data_type: &DataType) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("partition transform `{transform}` of a column of type `{data_type}`: nothing was written"),
    )
}

fn days_of_micros(micros: i64) -> i32 {
    // Every 64-bit number of microseconds is fewer than 2^31 days.
    micros.div_euclid(MICROS_PER_DAY) as i32
}

fn map_days(column: &ArrayRef, of_day: impl Fn(i32) -> i32) -> Result<Int32Array> {
    match column.data_type() {
        DataType::Date32 => Ok(column.as_primitive::<Date32Type>().unary(of_day)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => Ok(column
            .as_primitive::<TimestampMicrosecondType>()
            .unary(|micros| of_day(days_of_micros(micros)))),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Ok(column
            .as_primitive::<TimestampNanosecondType>()
            .unary(|nanos| of_day(days_of_micros(nanos.div_euclid(NANOS_PER_MICRO))))),
        other => Err(unsupported(Transform::Day, other)),
    }
}

fn hour(column: &ArrayRef) -> Result<ArrayRef> {
    let hours: Int32Array = match column.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => column
            .as_primitive::<TimestampMicrosecondType>()
            .try_unary(|micros| i32::try_from(micros.div_euclid(MICROS_PER_HOUR)))
            .map_err(|cause| {
                Error::new(ErrorKind::Data, "timestamp beyond the range of hours that a partition can hold")
                    .with_source(cause)
            })?,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => column
            .as_primitive::<TimestampNanosecondType>()
            .unary(|nanos| nanos.div_euclid(MICROS_PER_HOUR * NANOS_PER_MICRO) as i32),
        other => return Err(unsupported(Transform::Hour, other)),
    };
    Ok(Arc::new(hours))
}

fn bucket(count: u32, column: &ArrayRef) -> Result<ArrayRef> {
    let of_hash = |hash: u32| ((hash & 0x7fff_ffff) % count) as i32;
    let of_long = |value: i64| of_hash(murmur3(&value.to_le_bytes()));
    let buckets: Int32Array = match column.data_type() {
        DataType::Int32 => column.as_primitive::<Int32Type>().unary(|v| of_long(i64::from(v))),
        DataType::Date32 => column.as_primitive::<Date32Type>().unary(|v| of_long(i64::from(v))),
        DataType::Int64 => column.as_primitive::<Int64Type>().unary(of_long),
        DataType::Time64(TimeUnit::Microsecond) => {
            column.as_primitive::<Time64MicrosecondType>().unary(of_long)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            column.as_primitive::<TimestampMicrosecondType>().unary(of_long)
        }
        // Nanoseconds are hashed as microseconds, so that a promoted column keeps its buckets.
        DataType::Timestamp(TimeUnit::Nanosecond, _) => column
            .as_primitive::<TimestampNanosecondType>()
            .unary(|nanos| of_long(nanos.div_euclid(NANOS_PER_MICRO))),
        DataType::Decimal128(_, _) => column
            .as_primitive::<Decimal128Type>()
            .unary(|unscaled| of_hash(murmur3(minimal_bytes(&unscaled.to_be_bytes())))),
        DataType::Utf8 => {
            column.as_string::<i32>().iter().map(|v| v.map(|v| of_hash(murmur3(v.as_bytes())))).collect()
        }
        DataType::LargeBinary => {
            column.as_binary::<i64>().iter().map(|v| v.map(|v| of_hash(murmur3(v)))).collect()
        }
        DataType::FixedSizeBinary(_) => {
            column.as_fixed_size_binary().iter().map(|v| v.map(|v| of_hash(murmur3(v)))).collect()
        }
        other => return Err(unsupported(Transform::Bucket(count), other)),
    };
    Ok(Arc::new(buckets))
}

/// The shortest two's-complement form of a big-endian number, as Java's `BigInteger.toByteArray` gives it.
fn minimal_bytes(bytes: &[u8; 16]) -> &[u8] {
    let sign = if bytes[0] & 0x80 == 0 { 0x00 } else { 0xff };
    let mut start = 0;
    while start < 15 && bytes[start] == sign && (bytes[start + 1] & 0x80) == (sign & 0x80) {
        start += 1;
    }
    &bytes[start..]
}

fn truncate(width: u32, column: &ArrayRef) -> Result<ArrayRef> {
    let size = usize::try_from(width).unwrap_or(usize::MAX);
    Ok(match column.data_type() {
        DataType::Int32 => {
            let width = i64::from(width);
            Arc::new(column.as_primitive::<Int32Type>().unary::<_, Int32Type>(|value| {
                let value = i64::from(value);
                // Java computes in 32 bits too, and wraps at the lower end of the range.
                (value - value.rem_euclid(width)) as i32
            }))
        }
        DataType::Int64 => {
            let width = i64::from(width);
            Arc::new(
                column
                    .as_primitive::<Int64Type>()
                    .unary::<_, Int64Type>(|value| value.wrapping_sub(value.rem_euclid(width))),
            )
        }
        DataType::Decimal128(precision, scale) => {
            let width = i128::from(width);
            let cut = column
                .as_primitive::<Decimal128Type>()
                .unary::<_, Decimal128Type>(|value| value.wrapping_sub(value.rem_euclid(width)));
            Arc::new(cut.with_precision_and_scale(*precision, *scale).map_err(|cause| {
                Error::new(ErrorKind::Internal, "a truncated decimal keeps its type").with_source(cause)
            })?)
        }
        DataType::Utf8 => {
            let cut: StringArray =
                column.as_string::<i32>().iter().map(|v| v.map(|v| first_chars(v, size))).collect();
            Arc::new(cut)
        }
        DataType::LargeBinary => {
            let cut: LargeBinaryArray =
                column.as_binary::<i64>().iter().map(|v| v.map(|v| &v[..v.len().min(size)])).collect();
            Arc::new(cut)
        }
        other => return Err(unsupported(Transform::Truncate(width), other)),
    })
}

/// The longest prefix of at most `count` code points.
pub(super) fn first_chars(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

#[cfg(test)]
mod tests;
