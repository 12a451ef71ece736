use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{Literal, NestedField, PrimitiveType, SchemaRef};

use super::*;
use crate::files::testing::table_with;

fn schema() -> SchemaRef {
    let field = |id, name, primitive| Arc::new(NestedField::optional(id, name, Type::Primitive(primitive)));
    let fields = vec![
        field(1, "id", PrimitiveType::Long),
        field(2, "ts", PrimitiveType::Timestamptz),
        field(3, "städte und so", PrimitiveType::String),
    ];
    Arc::new(Schema::builder().with_fields(fields).build().unwrap())
}

fn spec() -> PartitionSpec {
    PartitionSpec::builder(schema())
        .add_partition_field("ts", "day", Transform::Day)
        .unwrap()
        .add_partition_field("id", "id_bucket", Transform::Bucket(16))
        .unwrap()
        .add_partition_field("städte und so", "städte und so", Transform::Identity)
        .unwrap()
        .build()
        .unwrap()
}

fn tuple(city: Option<&str>) -> Struct {
    Struct::from_iter([Some(Literal::date(20_455)), Some(Literal::int(3)), city.map(Literal::string)])
}

fn location(properties: &[(&str, &str)], spec: &PartitionSpec, partition: &Struct) -> String {
    let properties: HashMap<_, _> =
        properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let table = table_with(&schema(), spec, properties, "s3://bucket/db/t/");
    data_file_location(&table, spec, partition, "a.parquet").unwrap()
}

#[test]
fn names_and_values_are_form_encoded() {
    let path = partition_path(&spec(), &schema(), &tuple(Some("a b/ü=*~+"))).unwrap();
    assert_eq!(path, "day=2026-01-02/id_bucket=3/st%C3%A4dte+und+so=a+b%2F%C3%BC%3D*%7E%2B");
}

#[test]
fn null_is_written_as_null_and_no_spec_as_nothing() {
    let path = partition_path(&spec(), &schema(), &tuple(None)).unwrap();
    assert_eq!(path, "day=2026-01-02/id_bucket=3/st%C3%A4dte+und+so=null");
    let none = PartitionSpec::unpartition_spec();
    assert_eq!(partition_path(&none, &schema(), &Struct::empty()).unwrap(), "");
}

#[test]
fn a_tuple_of_another_spec_is_refused() {
    let error = partition_path(&spec(), &schema(), &Struct::empty()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
}

#[test]
fn files_go_to_the_data_location() {
    let none = PartitionSpec::unpartition_spec();
    assert_eq!(location(&[], &none, &Struct::empty()), "s3://bucket/db/t/data/a.parquet");
    assert_eq!(
        location(&[("write.data.path", "s3://other/x/")], &spec(), &tuple(Some("x"))),
        "s3://other/x/day=2026-01-02/id_bucket=3/st%C3%A4dte+und+so=x/a.parquet"
    );
    assert_eq!(
        location(&[("write.object-storage.enabled", "false")], &none, &Struct::empty()),
        "s3://bucket/db/t/data/a.parquet"
    );
}

/// The hashes of names that Java's `TestLocationProvider` publishes.
#[test]
fn object_storage_puts_a_hash_before_the_partition() {
    for (name, hash) in [
        ("a", "0101/0110/1001/10110010"),
        ("b", "1110/0111/1110/00000011"),
        ("c", "0010/1101/0110/01011111"),
        ("d", "1001/0001/0100/01110011"),
    ] {
        assert_eq!(entropy(name), hash);
    }
    let enabled = ("write.object-storage.enabled", "true");
    let path = location(&[enabled], &spec(), &tuple(Some("x")));
    assert!(path.starts_with("s3://bucket/db/t/data/"), "{path}");
    assert!(path.ends_with("/day=2026-01-02/id_bucket=3/st%C3%A4dte+und+so=x/a.parquet"), "{path}");
    let flat =
        location(&[enabled, ("write.object-storage.partitioned-paths", "false")], &spec(), &tuple(Some("x")));
    assert_eq!(flat, format!("s3://bucket/db/t/data/{}-a.parquet", entropy("a.parquet")));
}
