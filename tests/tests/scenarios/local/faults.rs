//! Commits whose replies are lost, late or wrong.

use std::time::Duration;

use anyhow::Result;
use firn_table::ledger::{Standing, WriterName};
use firn_tests::appender::topic_partition;
use firn_tests::checks::After;
use firn_tests::faults::CommitFault;
use firn_tests::scratch;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fixture::{Fixture, TABLE};
use crate::tables;

/// K1, K21: whatever became of the request, there is one snapshot of each flush, and the writer goes on.
#[tokio::test]
async fn a_flush_is_there_once_whatever_the_answer_was() -> Result<()> {
    for fault in [
        CommitFault::ReplyLost,
        CommitFault::AppliedThenConflict,
        CommitFault::AppliedThenHangs,
        CommitFault::ServerError,
        CommitFault::Hangs,
        CommitFault::Throttled { retry_after: None },
        CommitFault::Throttled { retry_after: Some(Duration::from_millis(20)) },
        CommitFault::AppliedLate { after: 0 },
        CommitFault::AppliedLate { after: 1 },
        CommitFault::AppliedLate { after: 2 },
    ] {
        let fixture = Fixture::new("answers").await?;
        let process = fixture.process().await?;
        process.append(0..10).await?;
        fixture.faults.then(fault.clone());
        process.append(10..20).await?;
        process.append(20..30).await?;
        fixture.catalog.release_late().await;
        assert_eq!(fixture.faults.injected(), std::slice::from_ref(&fault));
        assert_eq!(tables::ancestry(&fixture.warehouse, TABLE).await?.len(), 3, "{fault:?}");
        fixture.holds(0..30, After::Fault).await?;
    }
    Ok(())
}

/// K1, many times over, with compactions in between.
#[tokio::test]
async fn a_storm_of_faults_loses_and_doubles_nothing() -> Result<()> {
    let seed = scratch::seed()?;
    println!("FIRN_TEST_SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let fixture = Fixture::new("storm").await?;
    let process = fixture.process().await?;
    let faults = [
        CommitFault::ReplyLost,
        CommitFault::AppliedThenConflict,
        CommitFault::ServerError,
        CommitFault::Throttled { retry_after: None },
        CommitFault::AppliedLate { after: 1 },
    ];
    let mut next = 0;
    for _ in 0..60 {
        for _ in 0..random.random_range(0..3) {
            fixture.faults.then(faults[random.random_range(0..faults.len())].clone());
        }
        let count = random.random_range(1..20);
        process.append(next..next + count).await?;
        next += count;
        if random.random_ratio(1, 8) {
            fixture.compact(&process).await?;
        }
    }
    fixture.faults.quiet();
    fixture.catalog.release_late().await;
    println!("{} faults", fixture.faults.injected().len());
    fixture.holds(0..next, After::Fault).await
}

/// K3: between a commit whose reply nobody heard and the restart, a compaction commits.
#[tokio::test]
async fn a_commit_is_recognised_after_a_compaction_took_its_files_away() -> Result<()> {
    let fixture = Fixture::new("compacted-since").await?;
    let first = fixture.process().await?;
    first.append(0..10).await?;
    let flush = first.flush(10..20).await?;
    fixture.faults.then(CommitFault::AppliedThenHangs);
    first.die_while_committing(flush.clone()).await?;

    let compactor = fixture.process().await?;
    assert_eq!(fixture.compact(&compactor).await?.files_in, 2);
    let restarted = fixture.process().await?;
    let Standing::Current(ledger) = restarted.handle.standing(&WriterName::new("firn")?).await? else {
        panic!("the ledger is that of the head")
    };
    assert_eq!(ledger.cursors[&topic_partition(0)].next, 20);
    restarted.append(20..30).await?;
    fixture.holds(0..30, After::Fault).await
}

/// K22: a new owner begins while the old owner's request is still on its way, and it lands.
#[tokio::test]
async fn a_new_owner_is_overtaken_by_the_old_ones_late_request() -> Result<()> {
    let fixture = Fixture::new("late-landing").await?;
    let old = fixture.process().await?;
    old.append(0..100).await?;
    let flush = old.flush(100..110).await?;
    fixture.faults.then(CommitFault::AppliedLate { after: 1_000 });
    fixture.faults.then(CommitFault::Hangs);
    old.die_while_committing(flush).await?;

    let new = fixture.process().await?;
    let flush = new.flush(100..105).await?;
    fixture.catalog.release_late().await;
    assert_eq!(new.overtaken(flush).await?, Some(110));
    new.append(110..120).await?;
    fixture.holds(0..120, After::Fault).await
}

/// K2: the old owner's request arrives after the new owner has committed the same offsets.
#[tokio::test]
async fn a_late_request_is_refused_after_the_new_owner_has_committed() -> Result<()> {
    let fixture = Fixture::new("late-refused").await?;
    let old = fixture.process().await?;
    old.append(0..100).await?;
    let flush = old.flush(100..110).await?;
    fixture.faults.then(CommitFault::AppliedLate { after: 1_000 });
    fixture.faults.then(CommitFault::Hangs);
    old.die_while_committing(flush).await?;

    let new = fixture.process().await?;
    new.append(100..110).await?;
    new.append(110..120).await?;
    fixture.catalog.release_late().await;
    fixture.holds(0..120, After::Fault).await
}

/// K5: A is paused with offsets that B then commits; A wakes, and its unsent file goes.
#[tokio::test]
async fn an_overtaken_flush_leaves_neither_rows_nor_files() -> Result<()> {
    let fixture = Fixture::new("overtaken").await?;
    let (a, b) = (fixture.process().await?, fixture.process().await?);
    a.append(0..100).await?;
    let paused = a.flush(100..105).await?;
    b.append(100..105).await?;
    assert_eq!(a.overtaken(paused).await?, Some(105));
    a.append(105..110).await?;
    b.overtaken(b.flush(105..110).await?).await?;
    fixture.holds(0..110, After::GracefulStop).await
}

/// K19: a catalog that drops properties in silence is found out at the first commit.
#[tokio::test]
async fn a_catalog_that_drops_the_ledger_is_refused() -> Result<()> {
    let fixture = Fixture::new("dropped-ledger").await?;
    let process = fixture.process().await?;
    fixture.faults.then(CommitFault::DropsProperties { prefix: "firn.cursor.".to_owned() });
    let error = process.handle.append(process.flush(0..10).await?).await.unwrap_err();
    assert!(error.to_string().contains("firn.cursor.firn"), "{error}");
    // Whoever starts next does not write the ten offsets again.
    let next = fixture.process().await?;
    let standing = next.handle.standing(&WriterName::new("firn")?).await?;
    assert!(matches!(standing, Standing::Missing { .. }), "{standing:?}");
    Ok(())
}

/// K15.
#[tokio::test]
async fn a_table_that_vanishes_under_a_commit_is_an_error() -> Result<()> {
    let fixture = Fixture::new("vanished").await?;
    let process = fixture.process().await?;
    process.append(0..10).await?;
    fixture.faults.then(CommitFault::TableDropped);
    let error = process.handle.append(process.flush(10..20).await?).await.unwrap_err();
    assert_eq!(error.kind(), firn_table::ErrorKind::NotFound, "{error}");
    Ok(())
}
