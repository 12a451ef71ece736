//! Catalogs that stop answering, or die, under writers and a compactor.

#![expect(clippy::print_stdout, reason = "a script of a test fails by a panic, and says what it found")]

use std::time::Duration;

use anyhow::Result;
use firn_tests::kafka::Brokers;
use firn_tests::scratch;
use firn_tests::torment::{CatalogKind, Harm, Harms, Setting, run};

async fn take_away(test: &str, catalog: CatalogKind, harms: Vec<Harm>) -> Result<()> {
    let setting = Setting {
        seed: scratch::seed()?,
        catalog,
        brokers: Brokers::One,
        harms: Harms::Each(harms),
        lengths: (Duration::from_secs(4), Duration::from_secs(6)),
    };
    println!("FIRN_TEST_SEED={}", setting.seed);
    println!("{}", run(test, setting).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Kafka and a REST catalog: tests/run servers"]
async fn a_rest_catalog_that_loses_replies_and_sleeps_or_dies_costs_time_and_no_row() -> Result<()> {
    let harms = vec![Harm::PauseCatalog, Harm::RestartCatalog, Harm::KillBoth];
    take_away("torment-rest", CatalogKind::Chaos, harms).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Kafka and Postgres: tests/run servers"]
async fn postgres_that_dies_costs_time_and_no_row() -> Result<()> {
    take_away("torment-postgres", CatalogKind::Postgres, vec![Harm::RestartCatalog, Harm::KillBoth]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Kafka and Python: tests/run servers"]
async fn a_sqlite_file_that_another_process_locks_costs_time_and_no_row() -> Result<()> {
    take_away("torment-sqlite", CatalogKind::Sqlite, vec![Harm::PauseCatalog]).await
}
