use std::collections::HashMap;

use iceberg::spec::{
    DataFileBuilder, FormatVersion, Literal, NestedField, PartitionSpec, PrimitiveType, Schema, SortOrder,
    Struct, TableMetadataBuilder, Transform, Type,
};

use super::*;

const DATA: &str = "memory:///t/data/a.parquet";

/// Spec 0 is by `part`, spec 1 is unpartitioned, spec 2 is by `part` again under another name.
fn metadata() -> TableMetadata {
    let part = NestedField::optional(1, "part", Type::Primitive(PrimitiveType::Int)).into();
    let schema = Schema::builder().with_fields([part]).build().unwrap();
    let by = |name: &str| {
        let builder = PartitionSpec::builder(schema.clone());
        builder
            .add_partition_field("part", name, Transform::Identity)
            .unwrap()
            .build()
            .unwrap()
            .into_unbound()
    };
    TableMetadataBuilder::new(
        schema.clone(),
        by("part"),
        SortOrder::unsorted_order(),
        "memory:///t".to_owned(),
        FormatVersion::V3,
        HashMap::new(),
    )
    .unwrap()
    .add_partition_spec(PartitionSpec::unpartition_spec().into_unbound())
    .unwrap()
    .add_partition_spec(by("other"))
    .unwrap()
    .build()
    .unwrap()
    .metadata
}

fn part(value: i32) -> Struct {
    Struct::from_iter([Some(Literal::int(value))])
}

fn file(path: &str, content: DataContentType, partition: Struct) -> DataFileBuilder {
    let mut builder = DataFileBuilder::default();
    builder
        .content(content)
        .file_path(path.to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition(partition)
        .record_count(1)
        .file_size_in_bytes(10);
    builder
}

fn data(sequence_number: i64) -> LiveFile {
    LiveFile {
        file: Arc::new(file(DATA, DataContentType::Data, part(1)).build().unwrap()),
        spec_id: 0,
        partition_path: "part=1".to_owned(),
        sequence_number,
        file_sequence_number: sequence_number,
        snapshot_id: 1,
        added_at_ms: None,
        manifest_path: "m".into(),
    }
}

fn live(mut builder: DataFileBuilder, spec_id: i32, sequence_number: i64) -> LiveDelete {
    let file = Arc::new(builder.partition_spec_id(spec_id).build().unwrap());
    LiveDelete { file, spec_id, sequence_number, manifest_path: "d".into() }
}

fn bounds(builder: &mut DataFileBuilder, lower: &str, upper: &str) -> DataFileBuilder {
    let bound = |path: &str| HashMap::from([(DELETE_FILE_PATH, Datum::string(path))]);
    builder.lower_bounds(bound(lower)).upper_bounds(bound(upper)).clone()
}

/// Whether a delete applies to the data file of this sequence number.
fn applies(delete: LiveDelete, sequence_number: i64) -> bool {
    !DeleteIndex::new(&metadata(), vec![delete]).applying_to(&data(sequence_number)).is_empty()
}

#[test]
fn a_position_delete_applies_to_files_of_its_commit_and_before() {
    let delete = || live(file("d", DataContentType::PositionDeletes, part(1)), 0, 5);
    assert_eq!([4, 5, 6].map(|number| applies(delete(), number)), [true, true, false]);
    let of_one = || live(bounds(&mut file("d", DataContentType::PositionDeletes, part(1)), DATA, DATA), 0, 5);
    assert_eq!([4, 5, 6].map(|number| applies(of_one(), number)), [true, true, false]);
}

#[test]
fn an_equality_delete_applies_to_files_before_its_commit() {
    let delete = || live(file("d", DataContentType::EqualityDeletes, part(1)), 0, 5);
    assert_eq!([4, 5, 6].map(|number| applies(delete(), number)), [true, false, false]);
    let global = || live(file("d", DataContentType::EqualityDeletes, Struct::empty()), 1, 5);
    assert_eq!([4, 5, 6].map(|number| applies(global(), number)), [true, false, false]);
}

#[test]
fn deletes_of_another_partition_or_spec_do_not_apply() {
    for content in [DataContentType::PositionDeletes, DataContentType::EqualityDeletes] {
        assert!(!applies(live(file("d", content, part(2)), 0, 5), 1), "{content:?}");
        // The tuples are equal, the specs are not.
        assert!(!applies(live(file("d", content, part(1)), 2, 5), 1), "{content:?}");
    }
    assert!(!applies(live(file("d", DataContentType::PositionDeletes, Struct::empty()), 1, 5), 1));
}

#[test]
fn a_position_delete_applies_only_to_paths_that_it_may_name() {
    let delete = |lower: &str, upper: &str| {
        live(bounds(&mut file("d", DataContentType::PositionDeletes, part(1)), lower, upper), 0, 5)
    };
    assert!(applies(delete("memory:///t/data/0.parquet", "memory:///t/data/z.parquet"), 1));
    assert!(applies(delete(DATA, "memory:///t/data/z.parquet"), 1));
    assert!(!applies(delete("memory:///t/data/b.parquet", "memory:///t/data/z.parquet"), 1));
    assert!(!applies(delete("memory:///t/data/b.parquet", "memory:///t/data/b.parquet"), 1));
    let reference = |path: &str| {
        let mut builder = file("d", DataContentType::PositionDeletes, part(1));
        live(builder.referenced_data_file(Some(path.to_owned())).clone(), 0, 5)
    };
    assert!(applies(reference(DATA), 1));
    assert!(!applies(reference("memory:///t/data/b.parquet"), 1));
}

#[test]
fn a_deletion_vector_applies_by_its_reference_and_puts_position_deletes_aside() {
    let mut builder = file("d.puffin", DataContentType::PositionDeletes, part(1));
    builder.file_format(DataFileFormat::Puffin).content_offset(Some(4)).content_size_in_bytes(Some(40));
    let vector = |path: &str| live(builder.clone().referenced_data_file(Some(path.to_owned())).clone(), 0, 5);
    assert!(applies(vector(DATA), 1));
    assert!(!applies(vector("memory:///t/data/b.parquet"), 1));
    let position = live(file("d", DataContentType::PositionDeletes, part(1)), 0, 5);
    let equality = live(file("e", DataContentType::EqualityDeletes, part(1)), 0, 5);
    let index = DeleteIndex::new(&metadata(), vec![position, vector(DATA), equality]);
    let applying: Vec<String> =
        index.applying_to(&data(1)).into_iter().map(|delete| delete.file.file_path().to_owned()).collect();
    assert_eq!(applying, ["d.puffin", "e"]);
}

#[test]
fn vectors_of_one_file_have_keys_of_their_own() {
    let mut builder = file("d.puffin", DataContentType::PositionDeletes, part(1));
    builder.file_format(DataFileFormat::Puffin).referenced_data_file(Some(DATA.to_owned()));
    let key = |offset| DeleteKey::of(&builder.clone().content_offset(Some(offset)).build().unwrap());
    assert_ne!(key(4), key(44));
    assert_eq!(key(4), key(4));
}
