//! Many commits, and who else commits.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use firn_table::commit::{CommitLimits, ExpireOptions};
use firn_table::layout::manifests;
use firn_table::ledger::{Standing, WriterName};
use firn_tests::appender::topic_partition;
use firn_tests::checks::After;

use super::fixture::{Fixture, TABLE};

/// K4: every snapshot of the writer has expired, and another writer has appended since.
#[tokio::test]
async fn the_cursor_outlives_every_snapshot_of_its_writer() -> Result<()> {
    let fixture = Fixture::new("expired").await?;
    let process = fixture.process().await?;
    for first in (0..50).step_by(10) {
        process.append(first..first + 10).await?;
    }
    let other = fixture.process_of("other").await?;
    other.append_of(7, 0..10).await?;
    other.append_of(7, 10..20).await?;
    let all_but_the_last =
        ExpireOptions { older_than_ms: Some(i64::MAX), retain_last: Some(1), ..ExpireOptions::default() };
    let report = other.handle.expire(&all_but_the_last).await?;
    assert_eq!(report.snapshot_ids.len(), 6);

    let restarted = fixture.process().await?;
    let Standing::Current(ledger) = restarted.handle.standing(&WriterName::new("firn")?).await? else {
        panic!("the ledger is that of the head")
    };
    assert_eq!(ledger.cursors[&topic_partition(0)].next, 50);
    restarted.append(50..60).await?;
    let ranges = BTreeMap::from([(0, 0..60), (7, 0..20)]);
    fixture.holds_all(&ranges, After::GracefulStop).await
}

/// K9, smaller: processes of one writer, each with a partition of its own, at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_with_partitions_of_their_own_commit_side_by_side() -> Result<()> {
    const EACH: i64 = 25;
    let fixture = std::sync::Arc::new(Fixture::new("side-by-side").await?);
    let mut processes = tokio::task::JoinSet::new();
    for partition in 0..4 {
        let fixture = fixture.clone();
        processes.spawn(async move {
            let mut process = fixture.process().await?;
            // As many conflicts as a writer takes.
            process.handle = process.handle.with_limits(CommitLimits::default());
            for offset in 0..EACH {
                process.append_of(partition, offset..offset + 1).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = processes.join_next().await {
        done??;
    }
    let ranges = (0..4).map(|partition| (partition, 0..EACH)).collect();
    fixture.holds_all(&ranges, After::GracefulStop).await
}

/// K12, as far as it can be counted: what a commit writes and what the head consists of stay bounded.
#[tokio::test]
async fn the_head_stays_small_over_many_appends() -> Result<()> {
    const APPENDS: i64 = 400;
    let fixture = Fixture::new("many-appends").await?;
    let process = fixture.process().await?;
    let mut most_manifests = 0;
    for offset in 0..APPENDS {
        process.append(offset..offset + 1).await?;
        let table = process.handle.table();
        let head = table.metadata().current_snapshot().context("a snapshot")?;
        most_manifests = most_manifests.max(manifests(&table, head.snapshot_id()).await?.len());
        let summary: usize =
            head.summary().additional_properties.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert!(summary < 700, "a summary of {summary} bytes");
    }
    assert!(most_manifests <= 120, "{most_manifests} manifests");
    fixture.holds(0..APPENDS, After::GracefulStop).await?;
    let expire =
        ExpireOptions { older_than_ms: Some(i64::MAX), retain_last: Some(1), ..ExpireOptions::default() };
    process.handle.expire(&expire).await?;
    let (table, _) = fixture.warehouse.table(TABLE).await?;
    assert_eq!(table.metadata().snapshots().len(), 1);
    fixture.holds(0..APPENDS, After::GracefulStop).await
}
