use std::collections::{BTreeMap, HashMap};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, FixedSizeBinaryArray, Int64Array, StructArray, TimestampMicrosecondArray};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{Literal, PrimitiveType, UnboundPartitionSpec};
use proptest::prelude::*;

use super::*;
use crate::files::testing::{group, primitive, schema};

fn test_schema() -> SchemaRef {
    schema(vec![
        primitive(1, "id", PrimitiveType::Long),
        primitive(2, "ts", PrimitiveType::Timestamp),
        primitive(3, "uuid", PrimitiveType::Uuid),
        group(4, "inner", vec![primitive(5, "id", PrimitiveType::Long)]),
    ])
}

fn spec(fields: &[(i32, Transform)]) -> Arc<PartitionSpec> {
    let mut builder = UnboundPartitionSpec::builder();
    for (index, (source, transform)) in fields.iter().enumerate() {
        builder = builder.add_partition_field(*source, format!("p{index}"), *transform).unwrap();
    }
    Arc::new(builder.build().bind(test_schema()).unwrap())
}

fn batch(ids: &[Option<i64>], times: &[Option<i64>]) -> RecordBatch {
    let arrow = Arc::new(schema_to_arrow_schema(&test_schema()).unwrap());
    let uuids = ids.iter().map(|id| id.map(|id| [id as u8; 16]));
    let inner: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
    let fields = match arrow.field(3).data_type() {
        arrow_schema::DataType::Struct(fields) => fields.clone(),
        _ => unreachable!("a struct"),
    };
    let valid: Vec<bool> = (0..ids.len()).map(|row| row % 5 != 4).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::clone(&inner),
        Arc::new(TimestampMicrosecondArray::from(times.to_vec())),
        Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuids, 16).unwrap()),
        Arc::new(StructArray::new(fields, vec![inner], Some(valid.into()))),
    ];
    RecordBatch::try_new(arrow, columns).unwrap()
}

fn router(fields: &[(i32, Transform)]) -> PartitionRouter {
    PartitionRouter::new(spec(fields), test_schema()).unwrap()
}

fn ids(batch: &RecordBatch) -> Vec<Option<i64>> {
    batch.column(0).as_primitive::<Int64Type>().iter().collect()
}

#[test]
fn one_partition_is_passed_on_without_a_copy() {
    let batch = batch(&[Some(1), Some(2)], &[Some(5), Some(6)]);
    for fields in [vec![], vec![(2, Transform::Day)], vec![(1, Transform::Void)]] {
        let split = router(&fields).split(&batch).unwrap();
        assert_eq!(split.len(), 1);
        let (given, passed) = (batch.column(0).to_data(), split[0].1.column(0).to_data());
        assert_eq!(given.buffers()[0].as_ptr(), passed.buffers()[0].as_ptr());
    }
}

#[test]
fn an_empty_batch_has_no_partition() {
    assert!(router(&[(1, Transform::Identity)]).split(&batch(&[], &[])).unwrap().is_empty());
}

/// Case M14.
#[test]
fn nulls_and_times_before_1970_have_their_partitions() {
    let day = 86_400_000_000;
    let batch = batch(
        &[Some(0), Some(1), None, Some(3), Some(4)],
        &[Some(-1), None, Some(-day - 500_000), Some(0), Some(-day)],
    );
    let split = router(&[(2, Transform::Day)]).split(&batch).unwrap();
    let found: Vec<_> = split.iter().map(|(tuple, rows)| (tuple[0].clone(), ids(rows))).collect();
    assert_eq!(
        found,
        vec![
            (Some(Literal::date(-1)), vec![Some(0), Some(4)]),
            (None, vec![Some(1)]),
            (Some(Literal::date(-2)), vec![None]),
            (Some(Literal::date(0)), vec![Some(3)]),
        ]
    );
}

#[test]
fn rows_keep_their_order_and_partitions_appear_as_they_come() {
    let batch = batch(&[Some(7), Some(8), Some(7), None, Some(8)], &[None; 5]);
    let split = router(&[(1, Transform::Identity)]).split(&batch).unwrap();
    let found: Vec<_> = split.iter().map(|(tuple, rows)| (tuple[0].clone(), ids(rows))).collect();
    assert_eq!(
        found,
        vec![
            (Some(Literal::long(7)), vec![Some(7), Some(7)]),
            (Some(Literal::long(8)), vec![Some(8), Some(8)]),
            (None, vec![None]),
        ]
    );
}

#[test]
fn a_uuid_is_a_uuid_in_the_tuple() {
    let batch = batch(&[Some(1), None], &[None; 2]);
    let split = router(&[(3, Transform::Identity)]).split(&batch).unwrap();
    let expected = Literal::uuid(uuid::Uuid::from_bytes([1; 16]));
    assert_eq!(split[0].0, Struct::from_iter([Some(expected)]));
    assert_eq!(split[1].0, Struct::from_iter([None]));
}

#[test]
fn a_source_in_a_null_struct_is_null() {
    let batch = batch(&[Some(1), Some(1), Some(1), Some(1), Some(1)], &[None; 5]);
    let split = router(&[(5, Transform::Identity)]).split(&batch).unwrap();
    let found: Vec<_> = split.iter().map(|(tuple, rows)| (tuple[0].clone(), rows.num_rows())).collect();
    assert_eq!(found, vec![(Some(Literal::long(1)), 4), (None, 1)]);
}

#[test]
fn four_thousand_partitions_are_split_at_once() {
    let day = 86_400_000_000;
    let rows = 200_000i64;
    let times: Vec<_> = (0..rows).map(|row| Some((row * 7_919) % 4_000 * day)).collect();
    let keys: Vec<_> = (0..rows).map(Some).collect();
    let batch = batch(&keys, &times);
    let started = std::time::Instant::now();
    let split = router(&[(2, Transform::Day)]).split(&batch).unwrap();
    println!("{rows} rows into {} partitions in {:?}", split.len(), started.elapsed());
    assert_eq!(split.len(), 4_000);
    assert!(split.iter().all(|(_, rows)| rows.num_rows() == 50));
}

proptest! {
    #[test]
    fn each_row_goes_to_its_partition_once(
        rows in prop::collection::vec((prop::option::of(-20i64..20), prop::option::of(-3i64..3)), 1..200)
    ) {
        let day = 86_400_000_000;
        let keys: Vec<_> = rows.iter().map(|(key, _)| *key).collect();
        let times: Vec<_> = rows.iter().map(|(_, time)| time.map(|time| time * day - 1)).collect();
        let batch = batch(&keys, &times);
        let split = router(&[(1, Transform::Truncate(10)), (2, Transform::Day)]).split(&batch).unwrap();
        let mut expected: BTreeMap<_, Vec<Option<i64>>> = BTreeMap::new();
        for (key, time) in &rows {
            let partition = (key.map(|key| key.div_euclid(10) * 10), time.map(|time| time - 1));
            expected.entry(partition).or_default().push(*key);
        }
        prop_assert_eq!(split.len(), expected.len());
        let found: HashMap<_, _> = split.iter().map(|(tuple, rows)| (tuple.clone(), ids(rows))).collect();
        for ((key, time), keys) in expected {
            let day = time.map(|time| Literal::date(time as i32));
            let tuple = Struct::from_iter([key.map(Literal::long), day]);
            prop_assert_eq!(found.get(&tuple), Some(&keys));
        }
    }
}
