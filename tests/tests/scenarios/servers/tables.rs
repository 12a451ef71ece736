//! Tables on every pair of catalog and store: written by two writers at once, compacted, expired, and read back by
//! engines that share no code with firn.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use firn_compactor::plan::PlanOptions;
use firn_compactor::{CompactOptions, Silent, compact};
use firn_table::commit::ExpireOptions;
use firn_tests::appender::{self, Appender, STRIDE, id};
use firn_tests::checks::After;
use firn_tests::readers::{ENGINES, Engine, Filter, Question, agree_of};
use firn_tests::rows;
use firn_tests::servers::Place;
use firn_tests::warehouse::Warehouse;
use tokio_util::sync::CancellationToken;

const TABLE: &str = "db.t";
/// DuckDB from PyPI has no access to S3.
const READERS_OF_S3: [Engine; 2] = [Engine::PyIceberg, Engine::Java];

/// Two processes of one writer append side by side; the table is compacted and expired while they do, and after.
async fn lives(warehouse: Warehouse, readers: &[Engine]) -> Result<()> {
    const EACH: i64 = 12;
    let opened = warehouse.create().await?;
    appender::create(opened.catalog.as_ref(), TABLE).await?;
    let appending = async |partition: i32| {
        let process = Appender::new(warehouse.handle(TABLE).await?, "firn")?;
        for first in (0..EACH * 10).step_by(10) {
            process.append_of(partition, first..first + 10).await?;
        }
        anyhow::Ok(())
    };
    let compacting = async {
        for _ in 0..3 {
            compacts(&warehouse).await?;
        }
        anyhow::Ok(())
    };
    let (one, other, compacted) = tokio::join!(appending(0), appending(1), compacting);
    one.and(other).and(compacted)?;
    compacts(&warehouse).await?;
    let all_but_the_last =
        ExpireOptions { older_than_ms: Some(i64::MAX), retain_last: Some(1), ..ExpireOptions::default() };
    warehouse.handle(TABLE).await?.expire(&all_but_the_last).await?;

    warehouse.check(TABLE, After::GracefulStop).await?;
    let (table, stores) = warehouse.table(TABLE).await?;
    ensure!(table.metadata().snapshots().len() == 1, "{} snapshots", table.metadata().snapshots().len());
    let head = table.metadata().current_snapshot_id().context("a snapshot")?;
    let files = firn_table::layout::live_files(&table, head).await?.len();
    ensure!(files == 1, "{files} files are left");
    let expected = (0..2).flat_map(|partition| (0..EACH * 10).map(move |offset| (id(partition, offset), 1)));
    ensure!(rows::ids(&table, &stores).await? == expected.collect::<BTreeMap<i64, u64>>(), "other rows");
    let filters = vec![Filter::new("id", "lt", 10, 10), Filter::new("id", "gteq", STRIDE, 120)];
    agree_of(readers, &[Question { warehouse: &warehouse, table: TABLE.to_owned(), filters }]).await.map(drop)
}

async fn compacts(warehouse: &Warehouse) -> Result<()> {
    let overrides = [("target-file-size-bytes", "67108864"), ("min-input-files", "2")];
    let overrides = overrides.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let plan = PlanOptions { overrides, ..PlanOptions::default() };
    let options = CompactOptions { plan, ..CompactOptions::default() };
    let handle = warehouse.handle(TABLE).await?;
    compact(&handle, &options, Arc::new(Silent), CancellationToken::new()).await?;
    Ok(())
}

fn on(place: Place) -> Result<Warehouse> {
    Warehouse::on(&format!("lives-{}", place.name()), place.catalog("lives")?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Java and Python: tests/run servers"]
async fn a_table_lives_on_sqlite_with_local_files() -> Result<()> {
    lives(Warehouse::new("lives-sqlite")?, &ENGINES).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Postgres, Java and Python: tests/run servers"]
async fn a_table_lives_on_postgres_with_local_files() -> Result<()> {
    lives(on(Place::PostgresLocal)?, &ENGINES).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Postgres, an S3 server, Java and Python: tests/run servers"]
async fn a_table_lives_on_postgres_with_s3() -> Result<()> {
    lives(on(Place::PostgresS3)?, &READERS_OF_S3).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a REST catalog, Java and Python: tests/run servers"]
async fn a_table_lives_on_a_rest_catalog_with_local_files() -> Result<()> {
    lives(on(Place::RestLocal)?, &ENGINES).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a REST catalog, an S3 server, Java and Python: tests/run servers"]
async fn a_table_lives_on_a_rest_catalog_with_s3() -> Result<()> {
    lives(on(Place::RestS3)?, &READERS_OF_S3).await
}
