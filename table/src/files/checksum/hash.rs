//! 64-bit hashes of single values in their canonical form: integers, dates and times as 64 bits, floats as
//! the bits of a double with one NaN, decimals as 128 bits, the rest as bytes.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{ArrayAccessor, ArrayRef, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};

use crate::{Error, ErrorKind, Result};

/// Stands for a null.
pub(super) const NULL: u64 = 0x6e75_6c6c_2d68_6173;

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// Mixes a word into a hash: both halves of a 128-bit product.
pub(super) fn fold(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash.wrapping_add(SEED) ^ word) * u128::from(FACTOR);
    let mixed = (product >> 64) as u64 ^ product as u64;
    mixed ^ (mixed >> 29).wrapping_mul(SEED)
}

fn hash_word(word: u64) -> u64 {
    let mut hash = word.wrapping_add(SEED);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let mut hash = bytes.len() as u64;
    for word in words {
        hash = fold(hash, u64::from_le_bytes(*word));
    }
    let mut last = [0u8; 8];
    last[..tail.len()].copy_from_slice(tail);
    hash_word(fold(hash, u64::from_le_bytes(last)))
}

fn hash_double(value: f64) -> u64 {
    hash_word(if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() })
}

fn hash_signed(value: i64) -> u64 {
    hash_word(value as u64)
}

/// The hash of each slot of a leaf column; that of a null slot is arbitrary.
pub(in crate::files) fn leaf_hashes(array: &ArrayRef) -> Result<Vec<u64>> {
    Ok(match array.data_type() {
        DataType::Boolean => each(array.as_boolean(), |value| hash_word(u64::from(value))),
        DataType::Int32 => primitives::<Int32Type>(array, |value| hash_signed(i64::from(value))),
        DataType::Date32 => primitives::<Date32Type>(array, |value| hash_signed(i64::from(value))),
        DataType::Int64 => primitives::<Int64Type>(array, hash_signed),
        DataType::Time64(TimeUnit::Microsecond) => primitives::<Time64MicrosecondType>(array, hash_signed),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            primitives::<TimestampMicrosecondType>(array, hash_signed)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            primitives::<TimestampNanosecondType>(array, hash_signed)
        }
        DataType::Float32 => primitives::<Float32Type>(array, |value| hash_double(f64::from(value))),
        DataType::Float64 => primitives::<Float64Type>(array, hash_double),
        DataType::Decimal128(_, _) => {
            primitives::<Decimal128Type>(array, |value| fold(hash_word(value as u64), (value >> 64) as u64))
        }
        DataType::Utf8 => each(array.as_string::<i32>(), |text| hash_bytes(text.as_bytes())),
        DataType::LargeUtf8 => each(array.as_string::<i64>(), |text| hash_bytes(text.as_bytes())),
        DataType::Utf8View => each(array.as_string_view(), |text| hash_bytes(text.as_bytes())),
        DataType::Binary => each(array.as_binary::<i32>(), hash_bytes),
        DataType::LargeBinary => each(array.as_binary::<i64>(), hash_bytes),
        DataType::BinaryView => each(array.as_binary_view(), hash_bytes),
        DataType::FixedSizeBinary(_) => each(array.as_fixed_size_binary(), hash_bytes),
        other => {
            return Err(Error::new(
                ErrorKind::Internal,
                format!("a column of type `{other}` is not of a schema's Arrow form and cannot be summed"),
            ));
        }
    })
}

fn primitives<T: ArrowPrimitiveType>(array: &ArrayRef, hash: impl Fn(T::Native) -> u64) -> Vec<u64> {
    array.as_primitive::<T>().values().iter().map(|value| hash(*value)).collect()
}

fn each<A: ArrayAccessor>(array: A, hash: impl Fn(A::Item) -> u64) -> Vec<u64> {
    (0..array.len()).map(|at| hash(array.value(at))).collect()
}
