//! Which columns of a file get a dictionary.
//!
//! Small files are made large by copying their pages, and a chunk with a dictionary cannot be copied. So a
//! column has one only where it pays: where, in a sample of the first batch, dictionary and indices together
//! take less than half of the plain values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::DataType;
use arrow_select::take::take;

use super::checksum::leaf_hashes;
use super::columns::leaf_arrays;
use crate::{Error, ErrorKind, Result};

/// Values that are looked at: few, since this is done for each column of each small file.
const SAMPLE_VALUES: usize = 512;
/// Fewer values say nothing.
const MIN_VALUES: usize = 64;

/// Decides for each leaf of a batch, in Parquet's order.
pub(super) fn choose(batch: &RecordBatch) -> Result<Vec<bool>> {
    leaf_arrays(batch).iter().map(pays).collect()
}

fn pays(array: &ArrayRef) -> Result<bool> {
    if array.data_type() == &DataType::Boolean || array.len() < MIN_VALUES {
        return Ok(false);
    }
    let sample = sample(array)?;
    let hashes = leaf_hashes(&sample)?;
    let mut present: Vec<u64> =
        hashes.into_iter().enumerate().filter(|(at, _)| sample.is_valid(*at)).map(|(_, hash)| hash).collect();
    if present.len() < MIN_VALUES {
        return Ok(false);
    }
    let values = present.len();
    present.sort_unstable();
    present.dedup();
    let distinct = present.len();
    let value_bytes = value_bytes(&sample, values);
    let index_bits = usize::BITS - (distinct - 1).leading_zeros();
    let plain = values as f64 * value_bytes;
    let encoded = distinct as f64 * value_bytes + values as f64 * f64::from(index_bits) / 8.0;
    Ok(encoded < plain / 2.0)
}

/// Values at equal distances.
fn sample(array: &ArrayRef) -> Result<ArrayRef> {
    let step = array.len().div_ceil(SAMPLE_VALUES);
    if step <= 1 {
        return Ok(Arc::clone(array));
    }
    let places: UInt64Array = (0..array.len()).step_by(step).map(|at| at as u64).collect();
    take(array, &places, None).map_err(|cause| {
        Error::new(ErrorKind::Internal, "a sample of a column could not be taken").with_source(cause)
    })
}

/// The mean plain size of a value that is not null.
fn value_bytes(array: &ArrayRef, present: usize) -> f64 {
    let variable = |bytes: usize| 4.0 + bytes as f64 / present as f64;
    match array.data_type() {
        DataType::Utf8 => {
            let offsets = array.as_string::<i32>().value_offsets();
            variable((offsets[array.len()] - offsets[0]) as usize)
        }
        DataType::LargeBinary => {
            let offsets = array.as_binary::<i64>().value_offsets();
            variable((offsets[array.len()] - offsets[0]) as usize)
        }
        DataType::FixedSizeBinary(bytes) => f64::from(*bytes),
        other => other.primitive_width().unwrap_or(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn few_long_values_pay_and_many_do_not() {
        let states: StringArray = (0..5_000).map(|i| Some(format!("state-{}", i % 7))).collect();
        let names: StringArray = (0..5_000).map(|i| Some(format!("name-{i}"))).collect();
        assert!(pays(&(Arc::new(states) as ArrayRef)).unwrap());
        assert!(!pays(&(Arc::new(names) as ArrayRef)).unwrap());
    }

    #[test]
    fn nulls_and_short_columns_do_not_pay() {
        let nulls = Int64Array::from(vec![None; 5_000]);
        let short = Int64Array::from(vec![1; MIN_VALUES - 1]);
        assert!(!pays(&(Arc::new(nulls) as ArrayRef)).unwrap());
        assert!(!pays(&(Arc::new(short) as ArrayRef)).unwrap());
    }
}
