//! Files of all ages of a schema, rewritten together.

use std::sync::Arc;

use iceberg::spec::{ListType, NestedField, PrimitiveType, Schema, StructType, Transform, Type};

use crate::rewriting::assert_nothing_left;
use crate::support::{Lake, TestTable};

fn optional(id: i32, name: &str, r#type: PrimitiveType) -> NestedField {
    NestedField::optional(id, name, Type::Primitive(r#type))
}

fn nested(id: i32, name: &str, fields: Vec<NestedField>) -> NestedField {
    NestedField::optional(id, name, Type::Struct(StructType::new(fields.into_iter().map(Arc::new).collect())))
}

fn id() -> NestedField {
    NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long))
}

fn tags(id: i32, element: i32) -> NestedField {
    let element = NestedField::list_element(element, Type::Primitive(PrimitiveType::String), false);
    NestedField::optional(id, "tags", Type::List(ListType::new(Arc::new(element))))
}

async fn append_two(table: &TestTable, seed: u64) {
    table.append_random(60, seed).await;
    table.append_random(60, seed + 1).await;
}

/// Adds, drops, renames, promotes, renames in a struct and reorders, with files written after each change.
async fn evolved(lake: &Lake, partition: &[(&str, Transform)]) -> TestTable {
    use PrimitiveType::{Double, Float, Int, Long, String};
    let first = vec![
        id(),
        optional(2, "n", Int),
        optional(3, "x", Float),
        optional(4, "gone", String),
        nested(5, "s", vec![optional(6, "a", Int), optional(7, "b", String)]),
        tags(8, 9),
    ];
    let first = Schema::builder().with_fields(first.into_iter().map(Arc::new)).build().expect("a schema");
    let table = lake.create(first, partition, &[]).await;
    let created = table.table().await.metadata().current_schema().clone();
    let id_of = |name: &str| created.field_id_by_name(name).expect("a field");
    let ids = ["id", "n", "x", "gone", "s", "s.a", "s.b", "tags", "tags.element"].map(id_of);
    // Creation numbers fields level by level; the later schemas use its ids.
    let [_, n, x, gone, s, a, b, tags_id, element] = ids;
    let tags = || tags(tags_id, element);
    append_two(&table, 1).await;
    let added = vec![
        id(),
        optional(n, "n", Int),
        optional(x, "x", Float),
        optional(gone, "gone", String),
        nested(s, "s", vec![optional(a, "a", Int), optional(b, "b", String)]),
        tags(),
        optional(20, "new", String),
    ];
    table.set_schema(added).await;
    append_two(&table, 3).await;
    let dropped_and_renamed = vec![
        id(),
        optional(n, "number", Int),
        optional(x, "x", Float),
        nested(s, "s", vec![optional(a, "alpha", Int), optional(b, "b", String)]),
        tags(),
        optional(20, "new", String),
    ];
    table.set_schema(dropped_and_renamed).await;
    append_two(&table, 5).await;
    let promoted_and_reordered = vec![
        optional(20, "new", String),
        nested(s, "s", vec![optional(b, "b", String), optional(a, "alpha", Long)]),
        tags(),
        optional(x, "x", Double),
        id(),
        optional(n, "number", Long),
        // A dropped name with a new id is another column.
        optional(21, "gone", Int),
    ];
    table.set_schema(promoted_and_reordered).await;
    append_two(&table, 7).await;
    table
}

#[tokio::test]
async fn files_of_all_ages_read_the_same_after_they_were_joined() {
    let lake = Lake::new().await;
    let table = evolved(&lake, &[]).await;
    let rows = table.rows().await;
    assert_eq!(rows.len(), 8 * 60);
    let report = table.compact(&[]).await;
    assert_eq!((report.files_in, report.files_out, report.dropped.len()), (8, 1, 0), "{:?}", report.dropped);
    assert_eq!(table.rows().await, rows);
}

#[tokio::test]
async fn a_promoted_partition_column_keeps_its_partitions_together() {
    let lake = Lake::new().await;
    let table = evolved(&lake, &[("n", Transform::Truncate(500))]).await;
    let rows = table.rows().await;
    let report = table.compact(&[]).await;
    assert_eq!(report.dropped, []);
    assert_eq!(report.groups_landed, report.groups_planned);
    assert_eq!(table.rows().await, rows);
    assert_nothing_left(&table, &[]).await;
}

#[tokio::test]
async fn a_dropped_partition_source_does_not_hinder_the_rewrite() {
    let lake = Lake::new().await;
    let table = evolved(&lake, &[("x", Transform::Void), ("id", Transform::Bucket(2))]).await;
    let rows = table.rows().await;
    let report = table.compact(&[]).await;
    assert_eq!(report.dropped, []);
    assert_eq!(table.rows().await, rows);
}

#[tokio::test]
async fn files_without_rows_leave_no_output() {
    let lake = Lake::new().await;
    let table = evolved(&lake, &[]).await;
    let before = table.rows().await;
    let empty = crate::support::empty_files(&table, 5).await;
    table.append_files(empty).await;
    assert_eq!(table.live().await.len(), 13);
    let report = table.compact(&[]).await;
    assert_eq!((report.files_in, report.files_out, report.dropped.len()), (13, 1, 0));
    assert_eq!(table.rows().await, before);

    let empty = crate::support::empty_files(&table, 5).await;
    table.append_files(empty).await;
    let report = table.compact(&[]).await;
    assert_eq!((report.files_in, report.files_out), (6, 1));
}

#[tokio::test]
async fn a_group_of_files_without_rows_is_removed() {
    let lake = Lake::new().await;
    let table = lake.create(crate::support::schema(), &[], &[]).await;
    let empty = crate::support::empty_files(&table, 6).await;
    table.append_files(empty).await;
    let report = table.compact(&[]).await;
    assert_eq!((report.groups_landed, report.files_in, report.files_out), (1, 6, 0));
    assert_eq!(table.live().await.len(), 0);
    assert_eq!(table.data_files().len(), 6, "only the inputs are on disk");
    assert_nothing_left(&table, &[]).await;
}
