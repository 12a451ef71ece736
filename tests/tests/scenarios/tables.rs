//! What other engines and people do to a table, done through its catalog.

use anyhow::{Result, bail};
use firn_table::catalog::{CommitOutcome, OpenCatalog, parse_table_ident};
use firn_tests::warehouse::Warehouse;
use iceberg::TableUpdate;
use iceberg::spec::{SnapshotReference, SnapshotRetention};
use iceberg::table::Table;

/// Commits updates to a table as it is now.
pub(crate) async fn update(warehouse: &Warehouse, name: &str, updates: Vec<TableUpdate>) -> Result<Table> {
    let OpenCatalog { catalog, .. } = warehouse.open().await?;
    for _ in 0..20 {
        let table = catalog.load_table(&parse_table_ident(name)?).await?;
        match catalog.commit(&table, Vec::new(), updates.clone()).await {
            CommitOutcome::Committed(table) => return Ok(*table),
            CommitOutcome::Conflict | CommitOutcome::NotApplied { .. } => {}
            other => bail!("the update of {name} failed: {other:?}"),
        }
    }
    bail!("the update of {name} met twenty conflicts")
}

/// Makes a former snapshot the head, as `rollback_to_snapshot` does.
pub(crate) async fn roll_back(warehouse: &Warehouse, name: &str, snapshot_id: i64) -> Result<()> {
    let retention = SnapshotRetention::branch(None, None, None);
    let reference = SnapshotReference::new(snapshot_id, retention);
    let to_former = TableUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference };
    update(warehouse, name, vec![to_former]).await.map(drop)
}

/// Empties the table as `CREATE OR REPLACE TABLE` does: uuid, properties and old snapshots stay.
pub(crate) async fn replace_table(warehouse: &Warehouse, name: &str) -> Result<()> {
    let without_head = TableUpdate::RemoveSnapshotRef { ref_name: "main".to_owned() };
    update(warehouse, name, vec![without_head]).await.map(drop)
}

/// Removes properties.
pub(crate) async fn unset(warehouse: &Warehouse, name: &str, property: &str) -> Result<()> {
    let removal = TableUpdate::RemoveProperties { removals: vec![property.to_owned()] };
    update(warehouse, name, vec![removal]).await.map(drop)
}

/// Drops the table from the catalog; its files stay.
pub(crate) async fn drop_table(warehouse: &Warehouse, name: &str) -> Result<()> {
    Ok(warehouse.open().await?.catalog.drop_table(&parse_table_ident(name)?).await?)
}

/// The snapshot ids of the head and its ancestors, newest first.
pub(crate) async fn ancestry(warehouse: &Warehouse, name: &str) -> Result<Vec<i64>> {
    let (table, _) = warehouse.table(name).await?;
    let metadata = table.metadata();
    let mut next = metadata.current_snapshot();
    let mut ids = Vec::new();
    while let Some(snapshot) = next {
        ids.push(snapshot.snapshot_id());
        next = snapshot.parent_snapshot_id().and_then(|id| metadata.snapshot_by_id(id));
    }
    Ok(ids)
}
