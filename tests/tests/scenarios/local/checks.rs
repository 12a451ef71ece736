//! The checks find what they are for.

use anyhow::{Context, Result};
use bytes::Bytes;
use firn_tests::appender::Appender;
use firn_tests::checks::{After, problems};

use super::fixture::{Fixture, TABLE};

async fn three_files(test: &str) -> Result<(Fixture, Appender)> {
    let fixture = Fixture::new(test).await?;
    let process = fixture.process().await?;
    for first in [0, 10, 20] {
        process.append(first..first + 10).await?;
    }
    fixture.holds(0..30, After::GracefulStop).await?;
    Ok((fixture, process))
}

async fn found(fixture: &Fixture, after: After) -> Result<Vec<String>> {
    let (table, stores) = fixture.warehouse.table(TABLE).await?;
    problems(&table, &stores, after).await
}

#[tokio::test]
async fn a_data_file_that_is_gone_is_found() -> Result<()> {
    let (fixture, process) = three_files("check-data").await?;
    let table = process.handle.table();
    let head = table.metadata().current_snapshot_id().context("a snapshot")?;
    let files = firn_table::layout::live_files(&table, head).await?;
    let path = files[1].file.file_path();
    fixture.stores.delete(path).await?;
    assert_eq!(found(&fixture, After::Fault).await?, [format!("{path} is needed and is not there")]);
    Ok(())
}

#[tokio::test]
async fn a_manifest_that_is_gone_is_found() -> Result<()> {
    let (fixture, process) = three_files("check-manifest").await?;
    let table = process.handle.table();
    let list = table.metadata().current_snapshot().context("a snapshot")?.manifest_list().to_owned();
    fixture.stores.delete(&list).await?;
    let found = found(&fixture, After::Fault).await?;
    assert!(found.len() == 1 && found[0].contains(&list), "{found:?}");
    Ok(())
}

#[tokio::test]
async fn a_file_that_nothing_references_is_found_after_a_graceful_stop_only() -> Result<()> {
    let (fixture, process) = three_files("check-orphan").await?;
    let stray = format!("{}/data/stray.parquet", process.handle.table().metadata().location());
    fixture.stores.write(&stray, Bytes::from_static(b"stray")).await?;
    assert_eq!(found(&fixture, After::Fault).await?, Vec::<String>::new());
    let found = found(&fixture, After::GracefulStop).await?;
    assert!(found.len() == 1 && found[0].contains("stray.parquet"), "{found:?}");
    Ok(())
}

#[tokio::test]
async fn a_flush_that_was_not_committed_is_found() -> Result<()> {
    let (fixture, process) = three_files("check-flush").await?;
    process.flush(30..40).await?;
    assert_eq!(found(&fixture, After::GracefulStop).await?.len(), 1);
    Ok(())
}
