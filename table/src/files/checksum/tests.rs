use std::collections::HashMap;
use std::time::Instant;

use arrow_array::{Float32Array, Float64Array, Int32Array, Int64Array, ListArray, StringArray};
use arrow_cast::cast;
use arrow_schema::Schema;
use iceberg::arrow::schema_to_arrow_schema;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::files::testing::{every_type, random_batch};

fn sum(batches: &[RecordBatch]) -> Checksum {
    let mut checksum = Checksum::default();
    for batch in batches {
        checksum.update(batch).unwrap();
    }
    checksum
}

fn batch_of(columns: Vec<ArrayRef>) -> RecordBatch {
    let fields: Vec<_> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let id = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), (index + 1).to_string())]);
            Field::new(format!("c{index}"), column.data_type().clone(), true).with_metadata(id)
        })
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn longs(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn order_and_division_of_rows_do_not_matter(seed: u64, cut in 0usize..60, step in 1usize..59) {
        let arrow = Arc::new(schema_to_arrow_schema(&every_type()).unwrap());
        let batch = random_batch(&mut StdRng::seed_from_u64(seed), &arrow, 60);
        let whole = sum(std::slice::from_ref(&batch));
        let divided = sum(&[batch.slice(cut, 60 - cut), batch.slice(0, cut)]);
        prop_assert_eq!(&whole, &divided);
        let order: arrow_array::UInt32Array = (0..60u32).map(|at| (at * 59 + step as u32) % 60).collect();
        let shuffled = arrow_select::take::take_record_batch(&batch, &order).unwrap();
        prop_assert_eq!(&whole, &sum(&[shuffled]));
        let mut merged = sum(&[batch.slice(0, cut)]);
        merged.merge(&sum(&[batch.slice(cut, 60 - cut)]));
        prop_assert_eq!(whole.difference(&merged), None);
    }
}

#[test]
fn promoted_columns_have_equal_sums() {
    let narrow: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(-1), None, Some(i32::MAX)])),
        Arc::new(Float32Array::from(vec![0.1, f32::NAN, -0.0])),
    ];
    let wide =
        vec![cast(&narrow[0], &DataType::Int64).unwrap(), cast(&narrow[1], &DataType::Float64).unwrap()];
    assert_eq!(sum(&[batch_of(narrow)]), sum(&[batch_of(wide)]));
}

#[test]
fn what_differs_is_named() {
    let base = sum(&[batch_of(vec![longs(&[1, 2]), longs(&[3, 4])])]);
    let other = |columns| sum(&[batch_of(columns)]);
    let fewer = other(vec![longs(&[1]), longs(&[3])]);
    assert_eq!(base.difference(&fewer).unwrap(), "2 rows against 1");
    let changed = other(vec![longs(&[1, 2]), longs(&[3, 5])]);
    assert_eq!(base.difference(&changed).unwrap(), "field 2: equal counts and different values");
    let null: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let nulled = other(vec![null, longs(&[3, 4])]);
    assert_eq!(base.difference(&nulled).unwrap(), "field 1: 2 values and 0 nulls against 1 and 1");
    let exchanged = other(vec![longs(&[2, 1]), longs(&[3, 4])]);
    assert_eq!(
        base.difference(&exchanged).unwrap(),
        "equal columns whose values are combined into different rows"
    );
}

#[test]
fn text_is_told_from_its_neighbours() {
    let text = |values: &[&str]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
    let sums: Vec<_> =
        [vec!["ab", "c"], vec!["a", "bc"], vec!["ab\0", "c"], vec!["", "abc"], vec!["12345678", "9"]]
            .iter()
            .map(|values| sum(&[batch_of(vec![text(values)])]))
            .collect();
    for (index, left) in sums.iter().enumerate() {
        assert!(sums[index + 1..].iter().all(|right| left != right), "{index}");
    }
}

#[test]
fn elements_that_null_lists_hide_do_not_count() {
    let with_values = |values: Vec<i64>, lengths: Vec<usize>| -> ArrayRef {
        let id = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), "9".to_owned())]);
        let element = Arc::new(Field::new("element", DataType::Int64, true).with_metadata(id));
        let nulls = NullBuffer::from(vec![true, false, true]);
        let offsets = OffsetBuffer::from_lengths(lengths);
        Arc::new(ListArray::new(element, offsets, longs(&values), Some(nulls)))
    };
    let hidden = sum(&[batch_of(vec![with_values(vec![1, 7, 8, 2], vec![1, 2, 1])])]);
    let absent = sum(&[batch_of(vec![with_values(vec![1, 2], vec![1, 0, 1])])]);
    assert_eq!(hidden, absent);
    let moved = sum(&[batch_of(vec![with_values(vec![1, 2], vec![2, 0, 0])])]);
    assert_eq!(absent.columns[&9], moved.columns[&9]);
    assert_ne!(absent.columns[&1].sum, moved.columns[&1].sum);
}

/// Prints the rate; nothing is asserted of it.
#[test]
fn rate_is_printed() {
    let rows = 1 << 20;
    let words: StringArray = (0..rows).map(|i| Some(format!("a fairly usual string {i}"))).collect();
    let columns: Vec<ArrayRef> = vec![
        longs(&(0..rows).collect::<Vec<i64>>()),
        Arc::new((0..rows).map(|i| Some(i as f64)).collect::<Float64Array>()),
        Arc::new(words),
    ];
    let batch = batch_of(columns);
    let started = Instant::now();
    let checksum = sum(std::slice::from_ref(&batch));
    let seconds = started.elapsed().as_secs_f64();
    let megabytes = batch.get_array_memory_size() as f64 / 1e6;
    assert_eq!(checksum.rows, rows as u64);
    println!("checksum: {:.0} MB/s of decoded data", megabytes / seconds);
}
