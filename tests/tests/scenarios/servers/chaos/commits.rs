//! Commits through the proxy, by processes that need no broker.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use firn_table::ErrorKind;
use firn_tests::checks::After;
use iceberg::TableUpdate;
use iceberg::spec::{SnapshotReference, SnapshotRetention};

use super::fixture::{Behind, COMMITS};
use crate::tables;

/// What becomes of a commit that landed and whose reply did not arrive. The last is what a proxy makes of it that sends
/// a request again by itself: the answer to the second.
const LOST_REPLIES: [&str; 7] = [
    "apply-then 500",
    "apply-then 502",
    "apply-then 504",
    "apply-then reset",
    "apply-then 409",
    "apply-then 409 iceberg CommitFailedException",
    "duplicate",
];

/// K1, K21: each second commit, of appends and of the compaction between them.
#[tokio::test]
#[ignore = "needs a REST catalog: tests/run servers"]
async fn a_commit_whose_reply_is_lost_is_found_and_nothing_of_it_is_deleted() -> Result<()> {
    for fault in LOST_REPLIES {
        each_second_commit_is_lost(fault).await.with_context(|| fault.to_owned())?;
    }
    Ok(())
}

async fn each_second_commit_is_lost(fault: &str) -> Result<()> {
    let behind = Behind::catalog("lost-replies", &[&format!("{COMMITS} : {fault} every 2")]).await?;
    let process = behind.process().await?;
    for at in 0..7 {
        process.append(at * 10..at * 10 + 10).await?;
    }
    // The eighth commit.
    let report = behind.compact(&process).await?;
    assert_eq!((report.groups_landed, report.dropped.len()), (1, 0), "{report:?}");
    for at in 7..10 {
        process.append(at * 10..at * 10 + 10).await?;
    }
    behind.holds(0..100, 10, After::GracefulStop).await?;
    let touched = behind.chaos.touched()?;
    assert!(touched.len() >= 5, "{touched:?}");
    Ok(())
}

/// K2: the request of a process that died is held back, and comes when its successor has written the same offsets.
#[tokio::test]
#[ignore = "needs a REST catalog: tests/run servers"]
async fn a_commit_that_arrives_after_its_writer_was_replaced_is_refused() -> Result<()> {
    let behind = Behind::catalog("held", &[&format!("{COMMITS} : delay 2s once after 1")]).await?;
    let process = behind.process().await?;
    process.append(0..10).await?;
    let flush = process.flush(10..20).await?;
    process.die_while_committing(flush).await?;
    let successor = behind.process().await?;
    successor.append(10..20).await?;
    let touched = behind.chaos.wait_for_touched(1).await?;
    assert_eq!(touched[0].upstream_status, Some(409), "the late request");
    successor.append(20..30).await?;
    // The file of the process that died is left.
    behind.holds(0..30, 3, After::Fault).await
}

/// K22: the late request lands before the successor commits.
#[tokio::test]
#[ignore = "needs a REST catalog: tests/run servers"]
async fn a_commit_that_lands_late_overtakes_the_flush_of_the_successor() -> Result<()> {
    let behind = Behind::catalog("late", &[&format!("{COMMITS} : delay 800ms once after 1")]).await?;
    let process = behind.process().await?;
    process.append(0..10).await?;
    let successor = behind.process().await?;
    let flush = process.flush(10..20).await?;
    process.die_while_committing(flush).await?;
    let flush = successor.flush(10..25).await?;
    let touched = behind.chaos.wait_for_touched(1).await?;
    assert_eq!(touched[0].upstream_status, Some(200), "the late request");
    assert_eq!(successor.overtaken(flush).await?, Some(20));
    successor.append(20..25).await?;
    behind.holds(0..25, 3, After::GracefulStop).await
}

/// K10: neither commits nor loads are answered for a while.
#[tokio::test]
#[ignore = "needs a REST catalog: tests/run servers"]
async fn a_catalog_that_never_answers_is_left_at_a_deadline_and_tried_again() -> Result<()> {
    let rules =
        [format!("{COMMITS} : hang once after 1"), "GET /v1/**/tables/* : hang once after 1".to_owned()];
    let behind = Behind::catalog("hang", &[&rules[0], &rules[1]]).await?;
    let process = behind.process().await?;
    process.append(0..10).await?;
    process.append(10..20).await?;
    process.append(20..30).await?;
    assert_eq!(behind.chaos.touched()?.len(), 2, "a commit and a load hung");
    behind.holds(0..30, 3, After::GracefulStop).await
}

/// A gateway gives up, and the request arrives all the same, between the tries that follow.
#[tokio::test]
#[ignore = "needs a REST catalog: tests/run servers"]
async fn a_commit_that_a_gateway_gave_up_and_forwarded_later_lands_once() -> Result<()> {
    for time in ["5ms", "60ms", "400ms"] {
        let rule = format!("{COMMITS} : late {time} every 2");
        let behind = Behind::catalog("gateway", &[&rule]).await?;
        let process = behind.process().await?;
        for at in 0..6 {
            process.append(at * 10..at * 10 + 10).await.with_context(|| rule.clone())?;
        }
        let fitted = behind.chaos.touched()?.len();
        behind.chaos.wait_for_touched(fitted).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        behind.holds(0..60, 6, After::Fault).await.with_context(|| rule)?;
    }
    Ok(())
}

/// K11, K21: throttling is waited for as long as it was told.
#[tokio::test]
#[ignore = "needs a REST catalog: tests/run servers"]
async fn a_catalog_that_throttles_is_asked_again_when_it_said_so() -> Result<()> {
    let rule = format!("{COMMITS} : status 429 retry-after 1s iceberg TooManyRequestsException first 2");
    let behind = Behind::catalog("throttled", &[&rule]).await?;
    let process = behind.process().await?;
    let began = Instant::now();
    process.append(0..10).await?;
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    behind.holds(0..10, 1, After::GracefulStop).await
}

/// Definite and indefinite failures that were never applied.
#[tokio::test]
#[ignore = "needs a REST catalog: tests/run servers"]
async fn a_commit_that_was_never_applied_is_sent_again() -> Result<()> {
    let rules = [
        "status 500",
        "status 503",
        "status 504",
        "reset",
        "status 400",
        "truncate 10",
        "truncate-request 40",
    ];
    for fault in rules {
        let behind = Behind::catalog("not-applied", &[&format!("{COMMITS} : {fault} every 2")]).await?;
        let process = behind.process().await?;
        for at in 0..4 {
            process.append(at * 10..at * 10 + 10).await.with_context(|| fault.to_owned())?;
        }
        behind.holds(0..40, 4, After::GracefulStop).await.with_context(|| fault.to_owned())?;
    }
    Ok(())
}

/// K19: the ledger is a property; without it no row would ever be recognised.
#[tokio::test]
#[ignore = "needs a REST catalog: tests/run servers"]
async fn a_catalog_that_drops_properties_stops_the_writer_at_its_first_commit() -> Result<()> {
    let behind =
        Behind::catalog("dropped-properties", &[&format!("{COMMITS} : drop-properties firn.")]).await?;
    let process = behind.process().await?;
    let error = process.append(0..10).await.unwrap_err();
    let error = error.downcast::<firn_table::Error>()?;
    assert_eq!(error.kind(), ErrorKind::Ledger, "{error}");
    // What landed stays, once: it stopped before it wrote anything again.
    behind.holds(0..10, 1, After::Fault).await
}

/// K21: the reference implementation answers 400 to a sequence number that a commit on another branch made stale.
#[tokio::test]
#[ignore = "needs a REST catalog: tests/run servers"]
async fn a_commit_on_another_branch_makes_no_commit_on_main_fail() -> Result<()> {
    let behind = Behind::catalog("branches", &[]).await?;
    let on_main = behind.process().await?;
    on_main.append(0..10).await?;
    let head = on_main.handle.table().metadata().current_snapshot_id().context("a head")?;
    let reference = SnapshotReference::new(head, SnapshotRetention::branch(None, None, None));
    let branch = TableUpdate::SetSnapshotRef { ref_name: "other".to_owned(), reference };
    tables::update(&behind.direct, &behind.table, vec![branch]).await?;
    let on_branch = behind.process_on("other", "other").await?;
    on_branch.append(0..5).await?;
    // Its table is as it was before the branch got a commit.
    on_main.append(10..20).await?;
    behind.holds(0..20, 3, After::GracefulStop).await
}
