//! What an append makes of a table.

use iceberg::TableUpdate;
use iceberg::spec::{
    FormatVersion, ManifestContentType, NestedField, Operation, PrimitiveType, Schema, SnapshotReference,
    SnapshotRetention, Transform, Type, UnboundPartitionSpec,
};

use super::world::{Ids, World, committed, creation, overtaken, range, topic_partition, writer};
use crate::ErrorKind;
use crate::commit::{Guarantee, SourceIdentity};
use crate::ledger::verify;

#[tokio::test]
async fn an_append_adds_one_snapshot_with_files_cursor_and_summary() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let done =
        committed(handle.append(world.flush_of(ids.next(), &[(0, 0, 10), (3, 7, 9)]).await).await.unwrap());
    let metadata = world.catalog.metadata();
    let snapshot = metadata.current_snapshot().unwrap();
    assert_eq!((snapshot.snapshot_id(), snapshot.sequence_number()), (done.snapshot_id, 1));
    assert_eq!(snapshot.summary().operation, Operation::Append);
    let summary = &snapshot.summary().additional_properties;
    for (name, value) in [
        ("added-data-files", "1"),
        ("added-records", "12"),
        ("total-records", "12"),
        ("total-data-files", "1"),
        ("total-delete-files", "0"),
        ("changed-partition-count", "1"),
        ("engine-name", "firn"),
        ("firn.writer", "w"),
        ("firn.ranges", "events 0:0+10,3:7+2"),
    ] {
        assert_eq!(summary.get(name).map(String::as_str), Some(value), "{name}");
    }
    let bytes: usize = summary.iter().map(|(name, value)| name.len() + value.len() + 6).sum();
    assert!(bytes < 700, "{bytes} bytes");
    assert_eq!((world.cursor(0), world.cursor(3)), (Some(10), Some(9)));
    let verification = verify(&metadata, "main", &writer()).unwrap();
    assert_eq!((verification.problems, verification.rows), (Vec::new(), 12));
}

#[tokio::test]
async fn offsets_without_rows_are_an_empty_append() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    committed(handle.append(world.flush(ids.next(), 0, 10).await).await.unwrap());
    let mut flush = world.flush_of(ids.next(), &[(0, 10, 10)]).await;
    flush.ranges[0] = crate::ledger::OffsetRange { next: 15, holes: 3, rejected: 2, ..range(0, 10, 10) };
    committed(handle.append(flush).await.unwrap());
    let metadata = world.catalog.metadata();
    assert_eq!(metadata.current_snapshot().unwrap().summary().operation, Operation::Append);
    let cursor = world.ledger().unwrap().cursors[&topic_partition(0)].clone();
    assert_eq!((cursor.next, cursor.rows, cursor.holes, cursor.rejected), (15, 10, 3, 2));
    assert_eq!(verify(&metadata, "main", &writer()).unwrap().problems, Vec::<String>::new());
}

/// K5: A is paused after 100, B commits to 105, A wakes with 100 to 105.
#[tokio::test]
async fn a_flush_that_starts_behind_the_cursor_is_overtaken_and_its_files_are_gone() {
    let world = World::new();
    let (a, b) = (world.open().await, world.open().await);
    let (mut of_a, mut of_b) = (Ids::new(), Ids::new());
    committed(a.append(world.flush_of(of_a.next(), &[(0, 0, 100), (1, 0, 1)]).await).await.unwrap());
    let winner = of_b.next();
    committed(b.append(world.flush(winner, 100, 105).await).await.unwrap());
    let flush = world.flush_of(of_a.next(), &[(0, 100, 105), (1, 1, 2)]).await;
    let path = flush.files[0].file.file_path().to_owned();
    let outcome = a.append(flush).await.unwrap();
    let crate::commit::FlushOutcome::Overtaken { by, .. } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(*by, Some(winner));
    let cursors = overtaken(outcome);
    assert_eq!((cursors[&topic_partition(0)], cursors[&topic_partition(1)]), (105, 1));
    assert!(!world.objects().await.contains(&path));
    assert_eq!(world.rows().await, 106);
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_flush_that_starts_beyond_the_cursor_is_a_gap() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    committed(handle.append(world.flush(ids.next(), 0, 10).await).await.unwrap());
    let error = handle.append(world.flush(ids.next(), 12, 20).await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ledger);
    assert!(error.to_string().starts_with("gap:") && error.to_string().contains("10 to 11"), "{error}");
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

#[tokio::test]
async fn at_least_once_has_no_fence_and_its_cursor_only_grows() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    for (start, next, cursor) in [(0, 10, 10), (5, 8, 10), (5, 12, 12), (14, 15, 15)] {
        let mut flush = world.flush(ids.next(), start, next).await;
        flush.guarantee = Guarantee::AtLeastOnce;
        committed(handle.append(flush).await.unwrap());
        assert_eq!(world.cursor(0), Some(cursor));
    }
    assert_eq!(world.rows().await, 10 + 3 + 7 + 1);
    let problems = verify(&world.catalog.metadata(), "main", &writer()).unwrap().problems;
    assert_eq!(
        problems,
        ["snapshot ".to_owned() + &gap_snapshot(&world) + ": offsets 12 to 13 of `events[0]` are missing"]
    );
}

fn gap_snapshot(world: &World) -> String {
    let metadata = world.catalog.metadata();
    metadata.current_snapshot().unwrap().parent_snapshot_id().unwrap().to_string()
}

#[tokio::test]
async fn another_topic_or_cluster_under_the_same_name_is_refused() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let source = |cluster: &str, topic: &str| SourceIdentity {
        cluster_id: Some(cluster.to_owned()),
        topic_ids: [("events".to_owned(), topic.to_owned())].into(),
    };
    let mut flush = world.flush(ids.next(), 0, 10).await;
    flush.source = source("c", "t");
    committed(handle.append(flush).await.unwrap());
    for other in [source("c", "u"), source("d", "t")] {
        let mut flush = world.flush(ids.next(), 10, 20).await;
        flush.source = other;
        assert_eq!(handle.append(flush).await.unwrap_err().kind(), ErrorKind::Ledger);
    }
    // A broker that does not tell is believed.
    committed(handle.append(world.flush(ids.next(), 10, 20).await).await.unwrap());
    assert_eq!(world.ledger().unwrap().cluster_id.as_deref(), Some("c"));
}

#[tokio::test]
async fn a_flush_that_is_not_whole_is_refused() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let mut twice = world.flush_of(ids.next(), &[(0, 0, 10), (0, 10, 20)]).await;
    twice.ranges[1].partition = topic_partition(0);
    let mut unbalanced = world.flush(ids.next(), 0, 10).await;
    unbalanced.ranges[0].rows = 9;
    let mut fewer_rows = world.flush(ids.next(), 0, 10).await;
    fewer_rows.files.clear();
    for flush in [twice, unbalanced, fewer_rows] {
        assert_eq!(handle.append(flush).await.unwrap_err().kind(), ErrorKind::Internal);
    }
    assert_eq!(world.catalog.commits(), 0);
}

#[tokio::test]
async fn the_retention_of_a_branch_is_kept() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let done = committed(handle.append(world.flush(ids.next(), 0, 10).await).await.unwrap());
    let retention = SnapshotRetention::branch(Some(7), Some(1000), None);
    let reference = SnapshotReference::new(done.snapshot_id, retention.clone());
    world.catalog.update(vec![TableUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference }]);
    handle.refresh().await.unwrap();
    committed(handle.append(world.flush(ids.next(), 10, 20).await).await.unwrap());
    let refs = crate::expire::refs(&world.catalog.metadata()).unwrap();
    assert_eq!(refs["main"].retention, retention);
}

#[tokio::test]
async fn timestamps_grow_even_where_the_clock_does_not() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    for at in 0..20 {
        committed(handle.append(world.flush(ids.next(), at, at + 1).await).await.unwrap());
    }
    let metadata = world.catalog.metadata();
    let times: Vec<i64> = metadata.history().iter().map(|log| log.timestamp_ms).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
}

/// K23: a partition field named `user.id_bucket` is refused before anything is written; a column named `a-b` is not.
#[tokio::test]
async fn a_partition_field_that_avro_cannot_name_is_refused_before_anything_is_written() {
    for (column, field, allowed) in
        [("user.id", "user.id_bucket", false), ("a-b", "a-b", false), ("a-b", "a_b", true)]
    {
        let schema = Schema::builder()
            .with_fields([NestedField::required(1, column, Type::Primitive(PrimitiveType::Long)).into()])
            .build()
            .unwrap();
        let transform = if field == column { Transform::Identity } else { Transform::Bucket(4) };
        let spec = UnboundPartitionSpec::builder().add_partition_field(1, field, transform).unwrap().build();
        let world = World::with(iceberg::TableCreation { schema, partition_spec: Some(spec), ..creation() });
        let handle = world.open().await;
        let mut flush = world.flush(Ids::new().next(), 0, 10).await;
        let path = flush.files[0].file.file_path().to_owned();
        let value =
            if field == column { iceberg::spec::Literal::long(1) } else { iceberg::spec::Literal::int(1) };
        flush.files[0].file =
            super::world::data_file(&path, 10, iceberg::spec::Struct::from_iter([Some(value)]));
        let before = world.meter.writes();
        match handle.append(flush).await {
            Ok(outcome) => {
                assert!(allowed, "{field}");
                committed(outcome);
                assert_eq!(world.rows().await, 10);
            }
            Err(error) => {
                assert!(!allowed, "{field}: {error}");
                assert_eq!((error.kind(), world.meter.writes()), (ErrorKind::Unsupported, before), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_table_of_format_version_1_is_refused_and_not_changed() {
    let world = World::with(iceberg::TableCreation { format_version: FormatVersion::V1, ..creation() });
    let handle = world.open().await;
    let before = world.catalog.metadata();
    let flush = world.flush(Ids::new().next(), 0, 10).await;
    let writes = world.meter.writes();
    assert_eq!(handle.append(flush).await.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(world.catalog.metadata(), before);
    assert_eq!(world.meter.writes(), writes);
}

/// A file keeps the spec that it was written with, also when the table's default changed meanwhile.
#[tokio::test]
async fn files_of_two_specs_get_a_manifest_each() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let mut flush = world.flush(ids.next(), 0, 10).await;
    let spec = UnboundPartitionSpec::builder()
        .add_partition_field(1, "id_bucket", Transform::Bucket(4))
        .unwrap()
        .build();
    world.catalog.update(vec![TableUpdate::AddSpec { spec }, TableUpdate::SetDefaultSpec { spec_id: -1 }]);
    let mut newer = world.file("newer", 5).await;
    assert_ne!(newer.spec_id, flush.files[0].spec_id);
    let path = newer.file.file_path().to_owned();
    newer.file = super::world::data_file(
        &path,
        5,
        iceberg::spec::Struct::from_iter([Some(iceberg::spec::Literal::int(2))]),
    );
    flush.files.push(newer);
    flush.ranges[0] = range(0, 0, 15);
    committed(handle.append(flush).await.unwrap());
    let specs: Vec<i32> =
        world.list_of(world.head()).await.iter().map(|manifest| manifest.partition_spec_id).collect();
    assert_eq!(specs, [0, 1]);
    assert_eq!(world.rows().await, 15);
    let list = world.list_of(world.head()).await;
    assert!(list.iter().all(|manifest| manifest.content == ManifestContentType::Data));
    assert_eq!(
        list[1].partitions.as_ref().unwrap()[0].lower_bound.as_ref().unwrap().as_ref(),
        2_i32.to_le_bytes()
    );
}
