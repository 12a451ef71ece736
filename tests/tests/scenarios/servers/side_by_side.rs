//! Many writers of one table at once, on each catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use firn_table::catalog::{CatalogOptions, parse_table_ident};
use firn_table::commit::{CommitLimits, TableHandle};
use firn_table::ledger::Ledger;
use firn_tests::appender::{self, Appender, id};
use firn_tests::checks::After;
use firn_tests::rows;
use firn_tests::server::Kind;
use firn_tests::warehouse::Warehouse;
use uuid::Uuid;

const WRITERS: i32 = 8;

/// K9: writers with a partition each. Their cursors stand in one property.
async fn write_side_by_side(warehouse: Warehouse, each: i64) -> Result<()> {
    let table = format!("side_by_side_{}.t", Uuid::new_v4().simple());
    appender::create(warehouse.create().await?.catalog.as_ref(), &table).await?;
    let (warehouse, table) = (Arc::new(warehouse), Arc::new(table));
    let mut writers = tokio::task::JoinSet::new();
    for partition in 0..WRITERS {
        let (warehouse, table) = (Arc::clone(&warehouse), Arc::clone(&table));
        writers.spawn(async move {
            let opened = warehouse.open().await?;
            let ident = parse_table_ident(&table)?;
            let handle = TableHandle::open(opened.catalog, opened.stores, ident, "main").await?;
            // A writer must not give up.
            let limits = CommitLimits { max_conflicts: u32::MAX, ..CommitLimits::default() };
            let process = Appender::new(handle.with_limits(limits), "firn")?;
            for offset in 0..each {
                process.append_of(partition, offset..offset + 1).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = writers.join_next().await {
        done??;
    }
    warehouse.check(&table, After::GracefulStop).await?;
    let (table, stores) = warehouse.table(&table).await?;
    let expected = (0..WRITERS).flat_map(|partition| (0..each).map(move |offset| (id(partition, offset), 1)));
    let found = rows::ids(&table, &stores).await?;
    ensure!(found == expected.collect::<BTreeMap<i64, u64>>(), "{} rows: {found:?}", found.len());
    let ledgers = Ledger::read_all(table.metadata().properties())?;
    let cursors: Vec<i64> =
        ledgers.iter().flat_map(|(_, _, ledger)| ledger.cursors.values().map(|cursor| cursor.next)).collect();
    assert_eq!(cursors, vec![each; usize::try_from(WRITERS)?]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a REST catalog: tests/run servers"]
async fn eight_writers_of_one_table_in_a_rest_catalog_lose_and_double_nothing() -> Result<()> {
    let options = CatalogOptions { uri: Kind::Rest.shared()?, ..CatalogOptions::default() };
    write_side_by_side(Warehouse::on("side-by-side-rest", options)?, 10).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Postgres: tests/run servers"]
async fn eight_writers_of_one_table_in_postgres_lose_and_double_nothing() -> Result<()> {
    let warehouse = Warehouse::new("side-by-side-postgres")?;
    let options = CatalogOptions { uri: Kind::Postgres.shared()?, ..warehouse.options() };
    write_side_by_side(warehouse.with(options), 20).await.context("in Postgres")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a while: tests/run servers"]
async fn eight_writers_of_one_table_in_sqlite_lose_and_double_nothing() -> Result<()> {
    write_side_by_side(Warehouse::new("side-by-side-sqlite")?, 20).await
}
