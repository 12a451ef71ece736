//! Partitions and specs: outputs stay in the partition and the spec of their inputs.

use std::collections::BTreeMap;

use iceberg::TableUpdate;
use iceberg::spec::{Transform, UnboundPartitionSpec};

use crate::rewriting::assert_nothing_left;
use crate::support::{Lake, TestTable, schema};

/// Rows by spec and partition, as the layout tells them.
async fn rows_by_partition(table: &TestTable) -> BTreeMap<(i32, String), u64> {
    let mut rows = BTreeMap::new();
    for file in table.live().await {
        *rows.entry((file.spec_id, file.partition_path.clone())).or_default() += file.file.record_count();
    }
    rows
}

#[tokio::test]
async fn each_transform_keeps_rows_and_partitions() {
    let transforms = [
        ("n", Transform::Identity),
        ("id", Transform::Bucket(3)),
        ("name", Transform::Truncate(6)),
        ("at", Transform::Year),
        ("at", Transform::Month),
        ("at", Transform::Day),
        ("at", Transform::Hour),
        ("name", Transform::Void),
    ];
    for (source, transform) in transforms {
        let lake = Lake::new().await;
        let table = lake.create(schema(), &[(source, transform)], &[]).await;
        for seed in 1..=19 {
            table.append_random(12, seed).await;
        }
        let (rows, partitions) = (table.rows().await, rows_by_partition(&table).await);
        let files = table.live().await.len();
        let report = table.compact(&[("min-input-files", "2")]).await;
        assert_eq!(report.dropped, [], "{transform}");
        assert!(report.groups_landed > 0, "{transform}");
        assert_eq!(table.rows().await, rows, "{transform}");
        assert_eq!(rows_by_partition(&table).await, partitions, "{transform}");
        assert_eq!(table.live().await.len(), partitions.len(), "{transform}: from {files} files");
        assert_nothing_left(&table, &[("min-input-files", "2")]).await;
    }
}

#[tokio::test]
async fn old_files_keep_their_spec_after_a_finer_field_was_added() {
    let lake = Lake::new().await;
    let table = lake.create(schema(), &[("at", Transform::Month)], &[]).await;
    for seed in 1..=8 {
        table.append_random(100, seed).await;
    }
    let spec = UnboundPartitionSpec::builder()
        .with_spec_id(1)
        .add_partition_field(5, "at_month", Transform::Month)
        .and_then(|spec| spec.add_partition_field(1, "id_bucket", Transform::Bucket(16)))
        .expect("fields")
        .build();
    table.update(vec![TableUpdate::AddSpec { spec }, TableUpdate::SetDefaultSpec { spec_id: -1 }]).await;
    let (rows, partitions) = (table.rows().await, rows_by_partition(&table).await);
    assert!(partitions.keys().all(|(spec_id, _)| *spec_id == 0));
    let report = table.compact(&[("min-input-files", "2")]).await;
    assert!(report.groups_landed > 0);
    assert_eq!(table.rows().await, rows);
    assert_eq!(rows_by_partition(&table).await, partitions);
    assert_eq!(table.live().await.len(), partitions.len());
    assert_nothing_left(&table, &[]).await;
}

#[tokio::test]
async fn a_null_and_the_string_null_stay_apart() {
    let lake = Lake::new().await;
    let table = lake.create(schema(), &[("name", Transform::Identity)], &[]).await;
    for seed in 1..=6 {
        let batch = crate::support::with_names(&table, seed, &[None, Some("null"), None, Some("null")]).await;
        table.append(&batch).await;
    }
    let rows = table.rows().await;
    let report = table.compact(&[]).await;
    assert_eq!((report.groups_planned, report.groups_landed, report.files_in), (2, 2, 12));
    assert_eq!(table.rows().await, rows);
    assert_eq!(table.live().await.len(), 2);
}
