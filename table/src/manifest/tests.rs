#![allow(clippy::panic, reason = "tests state what cannot be")]

use std::collections::{HashMap, HashSet};

use iceberg::TableCreation;
use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, FormatVersion, Literal, ManifestContentType,
    ManifestFile, ManifestStatus, ManifestWriterBuilder, NestedField, PrimitiveType, Schema, Struct,
    TableMetadata, TableMetadataBuilder, Transform, Type, UnboundPartitionSpec,
};

use super::*;
use crate::ErrorKind;
use crate::files::NewFile;
use crate::storage::Stores;

const LOCATION: &str = "memory:///table";

/// A table with one column of `kind`, partitioned by its identity.
fn table_of(kind: PrimitiveType) -> TableMetadata {
    let schema = Schema::builder()
        .with_fields([NestedField::optional(1, "v", Type::Primitive(kind)).into()])
        .build()
        .unwrap();
    let spec =
        UnboundPartitionSpec::builder().add_partition_field(1, "v", Transform::Identity).unwrap().build();
    let creation = TableCreation::builder()
        .name("t".to_owned())
        .location(LOCATION.to_owned())
        .schema(schema)
        .partition_spec(spec)
        .format_version(FormatVersion::V2)
        .build();
    TableMetadataBuilder::from_table_creation(creation).unwrap().build().unwrap().metadata
}

fn file(name: &str, value: Option<Literal>) -> NewFile {
    let file = DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(format!("{LOCATION}/data/{name}"))
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::from_iter([value]))
        .record_count(3)
        .file_size_in_bytes(300)
        .build()
        .unwrap();
    NewFile { file, spec_id: 0 }
}

struct Kit {
    metadata: TableMetadata,
    file_io: FileIO,
    names: MetadataNames,
}

impl Kit {
    fn new(metadata: TableMetadata) -> Self {
        let names = MetadataNames::of_table(&metadata, uuid::Uuid::now_v7());
        Self { metadata, file_io: Stores::new(HashMap::new()).file_io(), names }
    }

    fn output(&self, snapshot_id: i64) -> Output<'_> {
        Output {
            file_io: &self.file_io,
            names: &self.names,
            snapshot_id,
            version: self.metadata.format_version(),
        }
    }

    async fn added(&self, snapshot_id: i64, files: &[NewFile]) -> Vec<ManifestFile> {
        write_added(self.output(snapshot_id), &self.metadata, files, None, u64::MAX).await.unwrap()
    }

    /// The manifests as the list of a snapshot with this sequence number shows them.
    async fn listed(&self, sequence_number: i64, manifests: Vec<ManifestFile>) -> Vec<ManifestFile> {
        let snapshot_id = manifests[0].added_snapshot_id;
        let target = ListTarget {
            location: self.names.list(snapshot_id),
            snapshot_id,
            parent_id: None,
            sequence_number,
            first_row_id: (self.metadata.format_version() == FormatVersion::V3).then_some(0),
        };
        let written = write_list(&self.file_io, &target, manifests).await.unwrap();
        let version = self.metadata.format_version();
        let read = read_list_at(&self.file_io, &target.location, version).await.unwrap();
        assert_eq!(written.manifests, read);
        read
    }
}

#[tokio::test]
async fn added_entries_inherit_snapshot_and_sequence_numbers() {
    let kit = Kit::new(table_of(PrimitiveType::Long));
    let manifests = kit.added(77, &[file("a", Some(Literal::long(1))), file("b", None)]).await;
    let manifests = kit.listed(5, manifests).await;
    let contents = read_manifest(&kit.file_io, &manifests[0]).await.unwrap();
    assert_eq!((contents.content, contents.spec.spec_id()), (ManifestContentType::Data, 0));
    for entry in &contents.entries {
        assert_eq!((entry.status, entry.snapshot_id), (ManifestStatus::Added, 77));
        assert_eq!((entry.sequence_number, entry.file_sequence_number), (5, 5));
    }
    assert_eq!(manifests[0].min_sequence_number, 5);
}

#[tokio::test]
async fn a_filtered_manifest_keeps_survivors_as_they_were_and_drops_old_tombstones() {
    let kit = Kit::new(table_of(PrimitiveType::Long));
    let files: Vec<NewFile> = ["a", "b", "c"].map(|name| file(name, Some(Literal::long(1)))).to_vec();
    let first = kit.listed(5, kit.added(77, &files).await).await;
    let contents = read_manifest(&kit.file_io, &first[0]).await.unwrap();
    let a = format!("{LOCATION}/data/a");
    let filtered = write_filtered(kit.output(88), &contents, |file| file.file_path() == a).await.unwrap();
    let second = kit.listed(6, vec![filtered]).await;
    let contents = read_manifest(&kit.file_io, &second[0]).await.unwrap();
    let seen: Vec<_> = contents
        .entries
        .iter()
        .map(|entry| (entry.status, entry.snapshot_id, entry.sequence_number, entry.file_sequence_number))
        .collect();
    let existing = (ManifestStatus::Existing, 77, 5, 5);
    assert_eq!(seen, [(ManifestStatus::Deleted, 88, 5, 5), existing, existing]);
    assert_eq!((second[0].sequence_number, second[0].min_sequence_number), (6, 5));
    let b = format!("{LOCATION}/data/b");
    let filtered = write_filtered(kit.output(99), &contents, |file| file.file_path() == b).await.unwrap();
    let third = kit.listed(7, vec![filtered]).await;
    let entries = read_entries(&kit.file_io, &third[0]).await.unwrap();
    let seen: Vec<_> = entries.iter().map(|entry| (entry.status, entry.snapshot_id)).collect();
    assert_eq!(seen, [(ManifestStatus::Deleted, 99), (ManifestStatus::Existing, 77)]);
    assert_eq!((third[0].existing_files_count, third[0].deleted_files_count), (Some(1), Some(1)));
}

#[tokio::test]
async fn partition_summaries_are_complete_for_every_type() {
    type Case = (PrimitiveType, Vec<Literal>, Vec<u8>, Vec<u8>);
    let cases: Vec<Case> = vec![
        (PrimitiveType::Boolean, vec![Literal::bool(true), Literal::bool(false)], vec![0], vec![1]),
        (
            PrimitiveType::Int,
            vec![Literal::int(3), Literal::int(-9)],
            (-9_i32).to_le_bytes().to_vec(),
            3_i32.to_le_bytes().to_vec(),
        ),
        (
            PrimitiveType::Long,
            vec![Literal::long(3), Literal::long(i64::MIN)],
            i64::MIN.to_le_bytes().to_vec(),
            3_i64.to_le_bytes().to_vec(),
        ),
        (
            PrimitiveType::Float,
            vec![Literal::float(1.5), Literal::float(-0.0), Literal::float(0.0)],
            (-0.0_f32).to_le_bytes().to_vec(),
            1.5_f32.to_le_bytes().to_vec(),
        ),
        (
            PrimitiveType::Double,
            vec![Literal::double(f64::INFINITY), Literal::double(-2.0)],
            (-2.0_f64).to_le_bytes().to_vec(),
            f64::INFINITY.to_le_bytes().to_vec(),
        ),
        (
            PrimitiveType::Date,
            vec![Literal::date(-1), Literal::date(1)],
            (-1_i32).to_le_bytes().to_vec(),
            1_i32.to_le_bytes().to_vec(),
        ),
        (
            PrimitiveType::Timestamptz,
            vec![Literal::timestamptz(-1), Literal::timestamptz(1)],
            (-1_i64).to_le_bytes().to_vec(),
            1_i64.to_le_bytes().to_vec(),
        ),
        (
            PrimitiveType::String,
            vec![Literal::string("b"), Literal::string("ab")],
            b"ab".to_vec(),
            b"b".to_vec(),
        ),
        (
            PrimitiveType::Decimal { precision: 9, scale: 2 },
            vec![Literal::decimal(12345), Literal::decimal(-1)],
            vec![255],
            vec![0x30, 0x39],
        ),
        (
            PrimitiveType::Binary,
            vec![Literal::binary(vec![200]), Literal::binary(vec![1, 2])],
            vec![1, 2],
            vec![200],
        ),
        (
            PrimitiveType::Fixed(2),
            vec![Literal::fixed(vec![200, 0]), Literal::fixed(vec![1, 2])],
            vec![1, 2],
            vec![200, 0],
        ),
    ];
    for (kind, values, lower, upper) in cases {
        let kit = Kit::new(table_of(kind.clone()));
        let mut files: Vec<NewFile> = Vec::new();
        for (index, value) in values.into_iter().enumerate() {
            files.push(file(&index.to_string(), Some(value)));
        }
        let manifest = kit.added(1, &files).await.remove(0);
        let summary = &manifest.partitions.as_ref().unwrap()[0];
        assert!(!summary.contains_null, "{kind}");
        assert_eq!(summary.lower_bound.as_ref().map(|b| b.to_vec()), Some(lower), "{kind} lower");
        assert_eq!(summary.upper_bound.as_ref().map(|b| b.to_vec()), Some(upper), "{kind} upper");
        files.push(file("null", None));
        let manifest = kit.added(1, &files).await.remove(0);
        assert!(manifest.partitions.as_ref().unwrap()[0].contains_null, "{kind}");
        let read = read_entries(&kit.file_io, &kit.listed(1, vec![manifest]).await[0]).await.unwrap();
        let expected: Vec<&Struct> = files.iter().map(|file| file.file.partition()).collect();
        assert_eq!(read.iter().map(|entry| entry.file.partition()).collect::<Vec<_>>(), expected, "{kind}");
    }
}

/// `iceberg` 0.10.1 fails in the middle of writing one: it is refused before.
#[tokio::test]
async fn uuids_as_partition_values_are_refused() {
    let kit = Kit::new(table_of(PrimitiveType::Uuid));
    let files = [file("a", Some(Literal::uuid(uuid::Uuid::from_u128(1))))];
    let error = write_added(kit.output(1), &kit.metadata, &files, None, u64::MAX).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(kit.names.given().is_empty());
}

#[tokio::test]
async fn nan_and_null_partitions_have_no_bounds() {
    for (kind, nan) in
        [(PrimitiveType::Float, Literal::float(f32::NAN)), (PrimitiveType::Double, Literal::double(f64::NAN))]
    {
        let kit = Kit::new(table_of(kind));
        let manifest = kit.added(1, &[file("nan", Some(nan)), file("null", None)]).await.remove(0);
        let summary = &manifest.partitions.as_ref().unwrap()[0];
        assert_eq!((summary.contains_null, summary.contains_nan), (true, Some(true)));
        assert_eq!((summary.lower_bound.clone(), summary.upper_bound.clone()), (None, None));
    }
}

#[tokio::test]
async fn a_partition_tuple_that_does_not_fit_its_spec_is_an_error() {
    let kit = Kit::new(table_of(PrimitiveType::Long));
    let mut wrong = file("a", None);
    wrong.file = DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path("x".to_owned())
        .file_format(DataFileFormat::Parquet)
        .record_count(1)
        .file_size_in_bytes(1)
        .build()
        .unwrap();
    let error = write_added(kit.output(1), &kit.metadata, &[wrong], None, u64::MAX).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    let unknown = NewFile { spec_id: 9, ..file("a", None) };
    let error = write_added(kit.output(1), &kit.metadata, &[unknown], None, u64::MAX).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
}

#[tokio::test]
async fn many_added_files_are_spread_over_manifests_of_the_target_size() {
    let kit = Kit::new(table_of(PrimitiveType::Long));
    let files: Vec<NewFile> = (0..100).map(|n| file(&n.to_string(), Some(Literal::long(n)))).collect();
    let manifests = write_added(kit.output(1), &kit.metadata, &files, None, 5_000).await.unwrap();
    assert!(manifests.len() > 3, "{}", manifests.len());
    let files: u32 = manifests.iter().filter_map(|manifest| manifest.added_files_count).sum();
    assert_eq!(files, 100);
}

/// Format version 3: ids are computed over the live entries that have none, and there are none without a first one.
#[tokio::test]
async fn first_row_ids_are_inherited() {
    let kit = Kit::new(table_of(PrimitiveType::Long));
    let spec = kit.metadata.default_partition_spec().as_ref().clone();
    let location = kit.names.manifest();
    let output = kit.file_io.new_output(&location).unwrap();
    let mut writer = ManifestWriterBuilder::new(output, Some(5), kit.metadata.current_schema().clone(), spec)
        .build_v3_data();
    let with_id = |name: &str, id: Option<i64>| {
        let mut builder = DataFileBuilder::default();
        builder
            .content(DataContentType::Data)
            .file_path(name.to_owned())
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::from_iter([None::<Literal>]))
            .record_count(10)
            .file_size_in_bytes(1)
            .sort_order_id(3)
            .first_row_id(id);
        builder.build().unwrap()
    };
    writer.add_existing_file(with_id("old", Some(7)), 1, 1, Some(1)).unwrap();
    writer.add_delete_file(with_id("gone", None), 1, Some(1)).unwrap();
    writer.add_file(with_id("a", None), -1).unwrap();
    writer.add_file(with_id("b", None), -1).unwrap();
    let mut manifest = writer.write_manifest_file().await.unwrap();
    manifest.sequence_number = 4;
    let ids = |entries: Vec<Entry>| {
        assert!(entries.iter().all(|entry| entry.file.sort_order_id() == Some(3)));
        entries.iter().map(|entry| entry.file.first_row_id()).collect::<Vec<_>>()
    };
    manifest.first_row_id = Some(1000);
    let read = read_entries(&kit.file_io, &manifest).await.unwrap();
    assert_eq!(ids(read), [Some(7), None, Some(1000), Some(1010)]);
    manifest.first_row_id = None;
    let read = read_entries(&kit.file_io, &manifest).await.unwrap();
    assert_eq!(ids(read), [None, None, None, None]);
}

#[tokio::test]
async fn what_cannot_be_read_is_named() {
    let kit = Kit::new(table_of(PrimitiveType::Long));
    let missing = read_list_at(&kit.file_io, "memory:///nowhere.avro", FormatVersion::V2).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let mut manifest = kit.added(1, &[file("a", None)]).await.remove(0);
    kit.file_io.new_output("memory:///bad.avro").unwrap().write("not avro".into()).await.unwrap();
    manifest.manifest_path = "memory:///bad.avro".to_owned();
    let bad = read_manifest(&kit.file_io, &manifest).await.unwrap_err();
    assert!(bad.to_string().contains("bad.avro"), "{bad}");
    manifest.key_metadata = Some(vec![1]);
    assert_eq!(read_manifest(&kit.file_io, &manifest).await.unwrap_err().kind(), ErrorKind::Unsupported);
}

/// A manifest is written and read with the schema of its own header, also where the table's lost the column.
#[tokio::test]
async fn a_manifest_of_a_dropped_partition_source_gets_a_schema_that_has_it() {
    let metadata = table_of(PrimitiveType::Long);
    let other = Schema::builder()
        .with_fields([NestedField::optional(9, "w", Type::Primitive(PrimitiveType::Long)).into()])
        .build()
        .unwrap();
    let old_spec = metadata.default_partition_spec().clone();
    let unpartitioned = UnboundPartitionSpec::builder().build();
    let metadata = metadata
        .into_builder(None)
        .add_default_partition_spec(unpartitioned)
        .unwrap()
        .add_current_schema(other)
        .unwrap()
        .build()
        .unwrap()
        .metadata;
    assert!(old_spec.partition_type(metadata.current_schema()).is_err());
    let schema = schema_of_spec(&metadata, &old_spec).unwrap();
    assert!(schema.field_by_id(1).is_some());
    let kit = Kit::new(metadata);
    let manifests = kit.listed(3, kit.added(1, &[file("a", Some(Literal::long(4)))]).await).await;
    let contents = read_manifest(&kit.file_io, &manifests[0]).await.unwrap();
    let merged = write_merged(kit.output(1), &[contents.clone(), contents]).await.unwrap();
    assert_eq!(merged.existing_files_count, Some(2));
    assert_eq!(merged.partitions.unwrap()[0].lower_bound.as_ref().unwrap().to_vec(), 4_i64.to_le_bytes());
}

fn manifest(path: usize, files: u32, length: i64) -> ManifestFile {
    ManifestFile {
        manifest_path: format!("m{path}"),
        manifest_length: length,
        partition_spec_id: 0,
        content: ManifestContentType::Data,
        sequence_number: i64::try_from(path).unwrap(),
        min_sequence_number: 0,
        added_snapshot_id: 1,
        added_files_count: Some(files),
        existing_files_count: Some(0),
        deleted_files_count: Some(0),
        added_rows_count: Some(1),
        existing_rows_count: Some(0),
        deleted_rows_count: Some(0),
        partitions: None,
        key_metadata: None,
        first_row_id: None,
    }
}

fn policy() -> MergePolicy {
    MergePolicy::of_properties(&HashMap::new())
}

#[test]
fn merging_has_icebergs_names_and_defaults() {
    assert_eq!(policy(), MergePolicy { enabled: true, target_bytes: 8 << 20, min_count: 100 });
    let set = |name: &str, value: &str| HashMap::from([(name.to_owned(), value.to_owned())]);
    assert!(!MergePolicy::of_properties(&set("commit.manifest-merge.enabled", "false")).enabled);
    assert_eq!(MergePolicy::of_properties(&set("commit.manifest.min-count-to-merge", "3")).min_count, 3);
    assert_eq!(MergePolicy::of_properties(&set("commit.manifest.target-size-bytes", "9")).target_bytes, 9);
}

#[test]
fn a_tier_is_merged_when_it_is_full_and_only_what_is_alike() {
    let none = HashSet::new();
    let mut list: Vec<ManifestFile> = (0..99).map(|n| manifest(n, 1, 5_000)).collect();
    assert_eq!(plan_merge(&list, policy(), &none), None);
    // A larger one, one of another spec, a delete manifest, one without live files, a skipped one: none of them counts.
    list.push(manifest(100, 16, 5_000));
    list.push(ManifestFile { partition_spec_id: 1, ..manifest(101, 1, 5_000) });
    list.push(ManifestFile { content: ManifestContentType::Deletes, ..manifest(102, 1, 5_000) });
    list.push(manifest(103, 0, 5_000));
    list.push(manifest(104, 1, 5_000));
    assert_eq!(plan_merge(&list, policy(), &HashSet::from(["m104".to_owned()])), None);
    let due = plan_merge(&list, policy(), &none).unwrap();
    assert_eq!(due.len(), 100);
    assert_eq!(due, (0..99).chain([103]).collect::<Vec<_>>());
    assert_eq!(plan_merge(&list, MergePolicy { enabled: false, ..policy() }, &none), None);
}

#[test]
fn a_merge_stays_within_the_target_size() {
    let list: Vec<ManifestFile> = (0..150).map(|n| manifest(n, 1, 1 << 20)).collect();
    assert_eq!(plan_merge(&list, policy(), &HashSet::new()).unwrap(), (0..8).collect::<Vec<_>>());
    let large: Vec<ManifestFile> = (0..150).map(|n| manifest(n, 1, 5 << 20)).collect();
    assert_eq!(plan_merge(&large, policy(), &HashSet::new()), None);
}

/// However many appends there are, each entry is rewritten at most once per tier and manifests stay bounded.
#[test]
fn the_number_of_manifests_and_the_work_stay_bounded() {
    let mut list: Vec<ManifestFile> = Vec::new();
    let (mut rewritten, mut most) = (0_u64, 0);
    for n in 0..100_000 {
        list.push(manifest(n, 1, 200));
        if let Some(due) = plan_merge(&list, policy(), &HashSet::new()) {
            let due: HashSet<usize> = due.into_iter().collect();
            assert!(due.len() <= 100);
            let (files, bytes) = due
                .iter()
                .map(|&index| (list[index].added_files_count.unwrap(), list[index].manifest_length))
                .fold((0, 0), |sum, item| (sum.0 + item.0, sum.1 + item.1));
            rewritten += u64::from(files);
            list = list
                .into_iter()
                .enumerate()
                .filter(|(index, _)| !due.contains(index))
                .map(|(_, m)| m)
                .collect();
            list.push(manifest(n, files, bytes));
        }
        most = most.max(list.len());
    }
    assert!(most <= 300, "{most} manifests");
    assert!(rewritten <= 3 * 100_000, "{rewritten} entries were rewritten");
    let files: u32 = list.iter().filter_map(|manifest| manifest.added_files_count).sum();
    assert_eq!(files, 100_000);
}

#[test]
fn names_are_never_given_twice() {
    let metadata = table_of(PrimitiveType::Long);
    let (first, second) = (
        MetadataNames::of_table(&metadata, uuid::Uuid::now_v7()),
        MetadataNames::of_table(&metadata, uuid::Uuid::now_v7()),
    );
    let all: Vec<String> = [&first, &second]
        .into_iter()
        .flat_map(|names| [names.manifest(), names.manifest(), names.list(1), names.list(1)])
        .collect();
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 8);
    assert!(all.iter().all(|name| name.starts_with("memory:///table/metadata/")));
    assert_eq!(first.given().len(), 4);
}
