use arrow_array::{
    Date32Array, Decimal128Array, FixedSizeBinaryArray, Int32Array, Int64Array, LargeBinaryArray,
    StringArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use chrono::{Datelike, NaiveDate};
use proptest::prelude::*;

use super::*;

const TIMESTAMP_MICROS: i64 = 1_510_871_468_000_000;

fn ints(array: &ArrayRef) -> Vec<Option<i32>> {
    array.as_primitive::<Int32Type>().iter().collect()
}

/// The 32-bit hashes that appendix B of the specification publishes.
#[test]
fn bucket_hashes_are_those_of_the_specification() {
    let uuid = uuid::Uuid::parse_str("f79c3e09-677c-4bbd-a479-3f349cb785e7").unwrap();
    let cases: Vec<(ArrayRef, i32)> = vec![
        (Arc::new(Int32Array::from(vec![34])), 2_017_239_379),
        (Arc::new(Int64Array::from(vec![34])), 2_017_239_379),
        (Arc::new(Decimal128Array::from(vec![1420]).with_precision_and_scale(9, 2).unwrap()), -500_754_589),
        (Arc::new(Date32Array::from(vec![17_486])), -653_330_422),
        (Arc::new(Time64MicrosecondArray::from(vec![81_068_000_000])), -662_762_989),
        (Arc::new(TimestampMicrosecondArray::from(vec![TIMESTAMP_MICROS])), -2_047_944_441),
        (Arc::new(TimestampMicrosecondArray::from(vec![TIMESTAMP_MICROS + 1])), -1_207_196_810),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![TIMESTAMP_MICROS]).with_timezone("+00:00")),
            -2_047_944_441,
        ),
        (Arc::new(TimestampNanosecondArray::from(vec![TIMESTAMP_MICROS * 1_000])), -2_047_944_441),
        (Arc::new(TimestampNanosecondArray::from(vec![TIMESTAMP_MICROS * 1_000 + 1_001])), -1_207_196_810),
        (Arc::new(StringArray::from(vec!["iceberg"])), 1_210_000_089),
        (
            Arc::new(FixedSizeBinaryArray::try_from_iter(std::iter::once(uuid.into_bytes())).unwrap()),
            1_488_055_340,
        ),
        (
            Arc::new(FixedSizeBinaryArray::try_from_iter(std::iter::once([0u8, 1, 2, 3])).unwrap()),
            -188_683_207,
        ),
        (Arc::new(LargeBinaryArray::from_vec(vec![&[0u8, 1, 2, 3]])), -188_683_207),
    ];
    for (array, hash) in cases {
        for count in [1, 16, 1_000_003] {
            let expected = (hash.cast_unsigned() & 0x7fff_ffff) % count;
            let found = ints(&apply(Transform::Bucket(count), &array).unwrap());
            assert_eq!(found, vec![Some(expected.cast_signed())], "{:?}", array.data_type());
        }
    }
}

#[test]
fn decimals_are_hashed_by_their_shortest_form() {
    for value in [0i128, 1, -1, 127, 128, -128, -129, 32_767, 32_768, 10i128.pow(37), -(10i128.pow(37))] {
        let whole = value.to_be_bytes();
        let short = minimal_bytes(&whole);
        let sign = if value < 0 { 0xff } else { 0 };
        let mut again = [sign; 16];
        again[16 - short.len()..].copy_from_slice(short);
        assert_eq!(i128::from_be_bytes(again), value);
        let redundant = short.len() > 1 && short[0] == sign && (short[1] & 0x80) == (sign & 0x80);
        assert!(!redundant, "{value}: {short:?}");
    }
}

#[test]
fn nanoseconds_before_1970_have_the_buckets_of_their_microseconds() {
    let nanos: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-1, -999, -1_000, -1_001]));
    let micros: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![-1, -1, -1, -2]));
    let bucket = |array| ints(&apply(Transform::Bucket(1_000), array).unwrap());
    assert_eq!(bucket(&nanos), bucket(&micros));
}

#[test]
fn times_before_1970_are_rounded_down() {
    let micros: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![
        Some(-1),
        Some(-MICROS_PER_DAY),
        Some(-MICROS_PER_DAY - 1),
        // Half a second before the end of a day, where truncation of seconds goes wrong.
        Some(-MICROS_PER_DAY - 500_000),
        None,
        Some(0),
    ]));
    let nanos: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![
        Some(-1),
        Some(-MICROS_PER_DAY * 1_000),
        Some(-MICROS_PER_DAY * 1_000 - 1),
        Some(-MICROS_PER_DAY * 1_000 - 500_000_000),
        None,
        Some(0),
    ]));
    for array in [micros, nanos] {
        let day = apply(Transform::Day, &array).unwrap();
        let days: Vec<_> = day.as_primitive::<Date32Type>().iter().collect();
        assert_eq!(days, vec![Some(-1), Some(-1), Some(-2), Some(-2), None, Some(0)]);
        assert_eq!(
            ints(&apply(Transform::Hour, &array).unwrap()),
            vec![Some(-1), Some(-24), Some(-25), Some(-25), None, Some(0)]
        );
        assert_eq!(
            ints(&apply(Transform::Month, &array).unwrap()),
            vec![Some(-1), Some(-1), Some(-1), Some(-1), None, Some(0)]
        );
        assert_eq!(
            ints(&apply(Transform::Year, &array).unwrap()),
            vec![Some(-1), Some(-1), Some(-1), Some(-1), None, Some(0)]
        );
    }
}

#[test]
fn dates_have_years_months_and_days() {
    let array: ArrayRef = Arc::new(Date32Array::from(vec![-1, 0, 17_486, -719_162]));
    assert_eq!(
        ints(&apply(Transform::Year, &array).unwrap()),
        vec![Some(-1), Some(0), Some(47), Some(-1_969)]
    );
    assert_eq!(
        ints(&apply(Transform::Month, &array).unwrap()),
        vec![Some(-1), Some(0), Some(574), Some(-23_628)]
    );
}

#[test]
fn numbers_are_truncated_downwards() {
    let int: ArrayRef = Arc::new(Int32Array::from(vec![1, -1, 0, 15, i32::MAX]));
    assert_eq!(
        ints(&apply(Transform::Truncate(10), &int).unwrap()),
        vec![Some(0), Some(-10), Some(0), Some(10), Some(2_147_483_640)]
    );
    let long: ArrayRef = Arc::new(Int64Array::from(vec![1, -1, i64::MAX]));
    let cut = apply(Transform::Truncate(10), &long).unwrap();
    assert_eq!(cut.as_primitive::<Int64Type>().values(), &[0, -10, 9_223_372_036_854_775_800]);
    let decimal: ArrayRef =
        Arc::new(Decimal128Array::from(vec![1_065, -1]).with_precision_and_scale(9, 2).unwrap());
    let cut = apply(Transform::Truncate(50), &decimal).unwrap();
    assert_eq!(cut.as_primitive::<Decimal128Type>().values(), &[1_050, -50]);
    assert_eq!(cut.data_type(), decimal.data_type());
}

#[test]
fn text_is_truncated_by_code_points_and_bytes_by_bytes() {
    let text: ArrayRef = Arc::new(StringArray::from(vec![Some("iceberg"), Some("äöü"), Some("a"), None]));
    let cut = apply(Transform::Truncate(2), &text).unwrap();
    let found: Vec<_> = cut.as_string::<i32>().iter().collect();
    assert_eq!(found, vec![Some("ic"), Some("äö"), Some("a"), None]);
    let bytes: ArrayRef = Arc::new(LargeBinaryArray::from_vec(vec![&[1u8, 2, 3], &[4]]));
    let cut = apply(Transform::Truncate(2), &bytes).unwrap();
    let found: Vec<_> = cut.as_binary::<i64>().iter().flatten().collect();
    assert_eq!(found, vec![&[1u8, 2][..], &[4]]);
}

#[test]
fn what_a_transform_does_not_take_is_refused() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    for transform in [Transform::Day, Transform::Hour, Transform::Unknown] {
        assert_eq!(apply(transform, &text).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}

proptest! {
    #[test]
    fn the_calendar_is_that_of_chrono(days in -3_000_000i32..3_000_000) {
        let date = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap() + chrono::Duration::days(i64::from(days));
        prop_assert_eq!(civil_from_days(days), (date.year(), date.month(), date.day()));
    }
}
