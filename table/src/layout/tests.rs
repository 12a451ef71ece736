use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, Datum, FormatVersion, Literal, MAIN_BRANCH, Operation,
    PrimitiveType, Snapshot, SortOrder, Struct, Summary, TableMetadataBuilder, Transform,
    UnboundPartitionSpec,
};
use iceberg::table::Table;
use uuid::Uuid;

use super::*;
use crate::ErrorKind;
use crate::files::NewFile;
use crate::files::testing::{memory, primitive, schema, table_of};
use crate::ledger::{CommitId, Cursor, Guarantee, Ledger, TopicPartition, WriterName, property_name};
use crate::manifest::{
    ListTarget, ManifestContents, MetadataNames, Output, read_manifest, write_added, write_filtered,
    write_list,
};
use crate::storage::Stores;

const SNAPSHOT_ID: i64 = 77;
const COMMITTED_AT_MS: i64 = 4_102_444_800_000;

fn builder(columns: usize, properties: HashMap<String, String>) -> TableMetadataBuilder {
    let mut fields =
        vec![primitive(1, "id", PrimitiveType::Long), primitive(2, "ts", PrimitiveType::Timestamp)];
    fields.extend((3..=columns as i32).map(|id| primitive(id, &format!("c{id}"), PrimitiveType::Long)));
    let spec = UnboundPartitionSpec::builder().add_partition_field(2, "day", Transform::Day).unwrap().build();
    TableMetadataBuilder::new(
        schema(fields).as_ref().clone(),
        spec,
        SortOrder::unsorted_order(),
        "memory:///t".to_owned(),
        FormatVersion::V2,
        properties,
    )
    .unwrap()
}

fn new_file(number: usize, day: i32, columns: usize) -> NewFile {
    let ids = || 1..=columns as i32;
    let counts = || ids().map(|id| (id, 10)).collect::<HashMap<_, _>>();
    let bounds = |value: i64| {
        let bound = |id| if id == 2 { Datum::timestamp_micros(value) } else { Datum::long(value) };
        ids().map(|id| (id, bound(id))).collect::<HashMap<_, _>>()
    };
    let file = DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(format!("memory:///t/data/day={day}/writer-0190a1b2-{number}-0.parquet"))
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::from_iter([Some(Literal::date(day))]))
        .partition_spec_id(0)
        .record_count(number as u64)
        .file_size_in_bytes(100 * number as u64)
        .column_sizes(counts())
        .value_counts(counts())
        .null_value_counts(counts())
        .lower_bounds(bounds(0))
        .upper_bounds(bounds(number as i64))
        .split_offsets(Some(vec![4]))
        .build()
        .unwrap();
    NewFile { file, spec_id: 0 }
}

/// A table of one snapshot, with a manifest for each group of files.
async fn table_of_files(stores: &Stores, columns: usize, groups: Vec<Vec<NewFile>>) -> Table {
    let writer = WriterName::new("w").unwrap();
    let ledger = Ledger {
        commit_id: CommitId { instance: Uuid::nil(), counter: 3 },
        snapshot_id: SNAPSHOT_ID,
        sequence_number: 1,
        guarantee: Guarantee::ExactlyOnce,
        cluster_id: None,
        topic_ids: BTreeMap::new(),
        cursors: BTreeMap::from([(
            TopicPartition { topic: "events".to_owned(), partition: 2 },
            Cursor { start: 5, next: 20, rows: 10, rejected: 1, holes: 3, gaps: 1 },
        )]),
    };
    let properties = HashMap::from([(property_name("main", &writer), ledger.to_text())]);
    let metadata = builder(columns, properties).build().unwrap().metadata;
    let (file_io, names) = (stores.file_io(), MetadataNames::of_table(&metadata, uuid::Uuid::now_v7()));
    let output =
        Output { file_io: &file_io, names: &names, snapshot_id: SNAPSHOT_ID, version: FormatVersion::V2 };
    let mut manifests = Vec::new();
    for group in groups {
        manifests.extend(write_added(output, &metadata, &group, None, u64::MAX).await.unwrap());
    }
    let location = names.list(SNAPSHOT_ID);
    let target = ListTarget {
        location: location.clone(),
        snapshot_id: SNAPSHOT_ID,
        parent_id: None,
        sequence_number: 1,
        first_row_id: None,
    };
    write_list(&file_io, &target, manifests).await.unwrap();
    let summary = HashMap::from([("added-data-files".to_owned(), "3".to_owned())]);
    let snapshot = Snapshot::builder()
        .with_snapshot_id(SNAPSHOT_ID)
        .with_sequence_number(1)
        .with_timestamp_ms(COMMITTED_AT_MS)
        .with_manifest_list(location)
        .with_summary(Summary { operation: Operation::Append, additional_properties: summary })
        .with_schema_id(0)
        .build();
    let metadata = TableMetadataBuilder::new_from_metadata(metadata, None)
        .set_branch_snapshot(snapshot, MAIN_BRANCH)
        .unwrap()
        .build()
        .unwrap()
        .metadata;
    table_of(metadata, stores)
}

async fn three_files(stores: &Stores) -> Table {
    let group = vec![new_file(0, -1, 4), new_file(1, 20_455, 4)];
    table_of_files(stores, 4, vec![group, vec![new_file(2, 20_455, 4)]]).await
}

fn longs(batch: &RecordBatch, column: &str) -> Vec<i64> {
    batch.column_by_name(column).unwrap().as_primitive::<Int64Type>().values().to_vec()
}

fn texts(batch: &RecordBatch, column: &str) -> Vec<String> {
    let array = batch.column_by_name(column).unwrap().as_string::<i32>();
    array.iter().map(|text| text.unwrap_or("null").to_owned()).collect()
}

#[tokio::test]
async fn live_files_are_complete_and_in_manifest_order() {
    let stores = memory();
    let table = three_files(&stores).await;
    let files = live_files(&table, SNAPSHOT_ID).await.unwrap();
    let found: Vec<_> =
        files.iter().map(|live| (live.file.record_count(), live.partition_path.as_str())).collect();
    // A file of no rows and no bytes is a file like any other.
    assert_eq!(found, [(0, "day=1969-12-31"), (1, "day=2026-01-02"), (2, "day=2026-01-02")]);
    for live in &files {
        assert_eq!(
            (live.spec_id, live.snapshot_id, live.added_at_ms),
            (0, SNAPSHOT_ID, Some(COMMITTED_AT_MS))
        );
        assert_eq!((live.sequence_number, live.file_sequence_number), (1, 1));
    }
    assert_ne!(files[0].manifest_path, files[2].manifest_path);
    assert_eq!(files[2].file.upper_bounds()[&3], Datum::long(2));
    let error = live_files(&table, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_path_that_is_live_twice_is_refused() {
    let stores = memory();
    let table = table_of_files(&stores, 2, vec![vec![new_file(1, 0, 2)], vec![new_file(1, 0, 2)]]).await;
    let error = live_files(&table, SNAPSHOT_ID).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.to_string().contains("writer-0190a1b2-1-0.parquet"), "{error}");
}

/// Case R5: what a manifest records as deleted stays dead.
#[tokio::test]
async fn tombstones_are_not_live() {
    let stores = memory();
    let table = three_files(&stores).await;
    let (list, file_io) = (manifests(&table, SNAPSHOT_ID).await.unwrap(), stores.file_io());
    let contents: ManifestContents = read_manifest(&file_io, &list[0]).await.unwrap();
    let names = MetadataNames::of_table(table.metadata(), uuid::Uuid::now_v7());
    let output = Output { file_io: &file_io, names: &names, snapshot_id: 78, version: FormatVersion::V2 };
    let removed = contents.entries[0].file.file_path();
    let filtered = write_filtered(output, &contents, |file| file.file_path() == removed).await.unwrap();
    let target = ListTarget {
        location: table.metadata().current_snapshot().unwrap().manifest_list().to_owned(),
        snapshot_id: 78,
        parent_id: Some(SNAPSHOT_ID),
        sequence_number: 2,
        first_row_id: None,
    };
    write_list(&file_io, &target, vec![filtered, list[1].clone()]).await.unwrap();
    let files = live_files(&table, SNAPSHOT_ID).await.unwrap();
    let found: Vec<_> = files.iter().map(|live| (live.file.record_count(), live.sequence_number)).collect();
    assert_eq!(found, [(1, 1), (2, 1)]);
}

#[tokio::test]
async fn files_and_partitions_have_their_columns() {
    let stores = memory();
    let table = three_files(&stores).await;
    let live = live_files(&table, SNAPSHOT_ID).await.unwrap();
    let files = files_batch(&table, &live).unwrap();
    assert_eq!(files.schema(), files_schema());
    assert_eq!(longs(&files, "file_size_bytes"), [0, 100, 200]);
    assert_eq!(texts(&files, "file_name")[2], "writer-0190a1b2-2-0.parquet");
    assert_eq!(texts(&files, "format")[0], "parquet");
    let added = files.column_by_name("added_at").unwrap().as_primitive::<TimestampMillisecondType>();
    assert_eq!(added.value(0), COMMITTED_AT_MS);
    assert!(files.column_by_name("is_current_spec").unwrap().as_boolean().value(0));
    let splits = files.column_by_name("split_count").unwrap().as_primitive::<Int32Type>();
    assert_eq!(splits.values(), &[1, 1, 1]);
    assert_eq!(files.column_by_name("sort_order_id").unwrap().null_count(), 3);

    let partitions = partitions_batch(&live).unwrap();
    assert_eq!(partitions.schema(), partitions_schema());
    assert_eq!(texts(&partitions, "partition"), ["day=1969-12-31", "day=2026-01-02"]);
    assert_eq!(longs(&partitions, "file_count"), [1, 2]);
    assert_eq!(longs(&partitions, "total_bytes"), [0, 300]);
    assert_eq!(longs(&partitions, "min_file_bytes"), [0, 100]);
    let mean = partitions.column_by_name("mean_file_bytes").unwrap().as_primitive::<Float64Type>();
    assert_eq!(mean.values(), &[0.0, 150.0]);
    assert_eq!(files_batch(&table, &[]).unwrap().num_rows(), 0);
    assert_eq!(partitions_batch(&[]).unwrap().num_rows(), 0);
}

#[tokio::test]
async fn manifests_snapshots_and_offsets_have_their_columns() {
    let stores = memory();
    let table = three_files(&stores).await;
    let list = manifests_batch(&manifests(&table, SNAPSHOT_ID).await.unwrap()).unwrap();
    assert_eq!(list.schema(), manifests_schema());
    assert_eq!(longs(&list, "added_files"), [2, 1]);
    assert_eq!(longs(&list, "added_rows"), [1, 2]);
    assert_eq!(texts(&list, "content"), ["data", "data"]);

    let snapshots = snapshots_batch(&table).unwrap();
    assert_eq!(snapshots.schema(), snapshots_schema());
    assert_eq!(longs(&snapshots, "snapshot_id"), [SNAPSHOT_ID]);
    assert_eq!(longs(&snapshots, "added_files"), [3]);
    assert_eq!(texts(&snapshots, "refs"), ["main"]);
    assert_eq!(texts(&snapshots, "operation"), ["append"]);
    assert_eq!(texts(&snapshots, "summary"), [r#"{"added-data-files":"3"}"#]);
    assert!(snapshots.column_by_name("parent_id").unwrap().is_null(0));

    let offsets = offsets_batch(&table).unwrap();
    assert_eq!(offsets.schema(), offsets_schema());
    let numbers = ["start", "next", "rows", "rejected", "holes", "gaps"].map(|name| longs(&offsets, name)[0]);
    assert_eq!(numbers, [5, 20, 10, 1, 3, 1]);
    let words = ["writer", "branch", "topic"].map(|name| texts(&offsets, name)[0].clone());
    assert_eq!(words, ["w", "main", "events"]);
}

/// Prints the rate; nothing is asserted of it. A hundred thousand files of twenty columns in manifests of a
/// thousand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_for_many_files_is_printed() {
    let (stores, count, columns) = (memory(), 10_000, 20);
    let groups = (0..count / 1_000)
        .map(|group| {
            (0..1_000).map(|at| new_file(group * 1_000 + at, (group % 30) as i32, columns)).collect()
        })
        .collect();
    let table = table_of_files(&stores, columns, groups).await;
    let started = Instant::now();
    let files = live_files(&table, SNAPSHOT_ID).await.unwrap();
    let read = started.elapsed();
    let batch = files_batch(&table, &files).unwrap();
    println!(
        "layout of {} files: {read:?} to read, {:?} with the batch",
        batch.num_rows(),
        started.elapsed()
    );
    assert_eq!(batch.num_rows(), count);
}
