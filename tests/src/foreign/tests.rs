//! What the engine does, as its own reader sees it.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use firn_table::catalog::{NewTable, PartitionColumn, create_table, parse_table_ident};
use iceberg::spec::{FormatVersion, NestedField, PrimitiveType, Schema, Transform, Type};
use iceberg::table::Table;

use super::*;
use crate::checks::{Contents, manifest_problems, total_problems};
use crate::warehouse::Warehouse;

/// `(id long, part int, text string)`, partitioned by `part`, which is `id % 3`.
async fn engine(test: &str, version: FormatVersion) -> Result<Engine> {
    let opened = Warehouse::new(test)?.create().await?;
    let column = |id, name: &str, kind| NestedField::optional(id, name, Type::Primitive(kind)).into();
    let schema = Schema::builder()
        .with_fields([
            column(1, "id", PrimitiveType::Long),
            column(2, "part", PrimitiveType::Int),
            column(3, "text", PrimitiveType::String),
        ])
        .build()?;
    let ident = parse_table_ident("db.t")?;
    let partition = PartitionColumn { source: "part".to_owned(), transform: Transform::Identity, name: None };
    let new = NewTable {
        format_version: version,
        partition: vec![partition],
        ..NewTable::new(ident.clone(), schema)
    };
    create_table(opened.catalog.as_ref(), new).await?;
    let clock: Clock = Arc::new(|| chrono::Utc::now().timestamp_millis());
    Ok(Engine::new(opened.catalog, opened.stores, ident, 7, clock))
}

async fn ids(engine: &mut Engine, table: &Table) -> Result<BTreeSet<i64>> {
    let Some(head) = table.metadata().current_snapshot_id() else { return Ok(BTreeSet::new()) };
    let live = engine.reader.live(table, head).await?;
    let ids: BTreeSet<i64> = live.iter().filter_map(|row| row.id).collect();
    assert_eq!(ids.len(), live.len(), "each row once: {live:?}");
    for snapshot in Contents::load(table).await?.snapshots {
        assert_eq!(manifest_problems(&snapshot), Vec::<String>::new());
        assert_eq!(total_problems(&snapshot), Vec::<String>::new());
    }
    Ok(ids)
}

fn set(ids: impl IntoIterator<Item = i64>) -> BTreeSet<i64> {
    ids.into_iter().collect()
}

#[tokio::test]
async fn deletes_of_every_kind_take_their_rows_and_no_others() -> Result<()> {
    for scope in [Scope::FileByBounds, Scope::FileByReference, Scope::Partition] {
        let mut engine = engine("foreign-deletes", FormatVersion::V2).await?;
        engine.must(&Append { ids: 0..9 }).await?;
        engine.must(&Append { ids: 9..18 }).await?;
        let table = engine.must(&PositionDelete { victims: Victims::ids([0, 1, 3, 12]), scope }).await?;
        let mut left = set((0..18).filter(|id| ![0, 1, 3, 12].contains(id)));
        assert_eq!(ids(&mut engine, &table).await?, left, "{scope:?}");
        let table = engine.must(&EqualityDelete { victims: Victims::ids([2, 9]) }).await?;
        left.retain(|id| ![2, 9].contains(id));
        assert_eq!(ids(&mut engine, &table).await?, left, "{scope:?}");
        // Rows that come afterwards are not meant.
        let table = engine.must(&Append { ids: 0..3 }).await?;
        left.extend(0..3);
        assert_eq!(ids(&mut engine, &table).await?, left, "{scope:?}");
        let merged =
            RewritePositionDeletes { sequence_number: SequenceNumber::Kept, victims: Victims::ids([4]) };
        let table = engine.must(&merged).await?;
        left.remove(&4);
        assert_eq!(ids(&mut engine, &table).await?, left, "{scope:?}");
        let table = engine.must(&Compact { min_files: 2 }).await?;
        assert_eq!(ids(&mut engine, &table).await?, left, "{scope:?}");
    }
    Ok(())
}

#[tokio::test]
async fn vectors_of_one_file_are_merged_and_row_ids_stay() -> Result<()> {
    let mut engine = engine("foreign-vectors", FormatVersion::V3).await?;
    engine.must(&Append { ids: 0..9 }).await?;
    engine.must(&Append { ids: 9..18 }).await?;
    engine.must(&DeletionVectors { victims: Victims::ids([0, 1, 3, 12]) }).await?;
    let table = engine.must(&DeletionVectors { victims: Victims::ids([6]) }).await?;
    let left = set((0..18).filter(|id| ![0, 1, 3, 6, 12].contains(id)));
    assert_eq!(ids(&mut engine, &table).await?, left);
    let head = |table: &Table| table.metadata().current_snapshot_id().unwrap_or_default();
    let lineage = |rows: Vec<LiveRow>| -> BTreeSet<(Option<i64>, Option<i64>, Option<i64>)> {
        rows.into_iter().map(|row| (row.id, row.row_id, row.last_updated)).collect()
    };
    let before = lineage(engine.reader.live(&table, head(&table)).await?);
    assert!(before.iter().all(|(_, row_id, updated)| row_id.is_some() && updated.is_some()));
    let table = engine.must(&Compact { min_files: 2 }).await?;
    assert_eq!(lineage(engine.reader.live(&table, head(&table)).await?), before);
    assert_eq!(ids(&mut engine, &table).await?, left);
    Ok(())
}

#[tokio::test]
async fn schema_spec_and_history_change() -> Result<()> {
    let mut engine = engine("foreign-history", FormatVersion::V2).await?;
    let first = engine.must(&Append { ids: 0..6 }).await?;
    engine.must(&AddColumn { name: "more".to_owned(), kind: PrimitiveType::Double }).await?;
    engine.must(&ChangeSpec { column: "id".to_owned(), transform: Transform::Bucket(2) }).await?;
    let table = engine.must(&Append { ids: 6..12 }).await?;
    assert_eq!(table.metadata().default_partition_spec().fields().len(), 2);
    assert_eq!(ids(&mut engine, &table).await?, set(0..12));
    let head = first.metadata().current_snapshot_id().unwrap_or_default();
    let table = engine.must(&RollBack::To(head)).await?;
    assert_eq!(ids(&mut engine, &table).await?, set(0..6));
    engine.must(&Append { ids: 12..15 }).await?;
    let Outcome::Done(table) = engine.expire(&Expire { keep: 1 }).await? else {
        anyhow::bail!("nothing expired")
    };
    assert_eq!(table.metadata().snapshots().len(), 1);
    assert_eq!(ids(&mut engine, &table).await?, set((0..6).chain(12..15)));
    let stores = &engine.stores;
    let contents = Contents::load(&table).await?;
    assert_eq!(crate::checks::missing(&table, &contents, stores).await?, Vec::<String>::new());
    let left = crate::checks::unreferenced(&table, &contents, stores).await?;
    assert_eq!(left, Vec::<String>::new());
    Ok(())
}
