//! Rewrites beside appends, expiry and rollbacks.

use std::sync::Arc;

use anyhow::{Context, Result};
use firn_compactor::{Silent, plan, run_plan};
use firn_table::commit::ExpireOptions;
use firn_tests::appender::Appender;
use firn_tests::checks::After;
use firn_tests::faults::CommitFault;
use firn_tests::scratch;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio_util::sync::CancellationToken;

use super::fixture::{Fixture, MAX_CONFLICTS, TABLE, options};
use crate::tables;

/// A table of `files` small files.
async fn small_files(test: &str, files: i64) -> Result<(Fixture, Appender)> {
    let fixture = Fixture::new(test).await?;
    let process = fixture.process().await?;
    for number in 0..files {
        process.append(number * 10..number * 10 + 10).await?;
    }
    Ok((fixture, process))
}

async fn live_files(fixture: &Fixture) -> Result<usize> {
    let (table, _) = fixture.warehouse.table(TABLE).await?;
    let head = table.metadata().current_snapshot_id().context("a snapshot")?;
    Ok(firn_table::layout::live_files(&table, head).await?.len())
}

/// R2: appends land between plan and commit.
#[tokio::test]
async fn a_rewrite_lands_beside_appends_that_came_in_between() -> Result<()> {
    let (fixture, writer) = small_files("append-in-between", 6).await?;
    let compactor = fixture.process().await?;
    let plan = plan(&compactor.handle.table(), &options().plan).await?;
    writer.append(60..70).await?;
    writer.append(70..80).await?;
    let report =
        run_plan(&compactor.handle, &plan, &options(), Arc::new(Silent), CancellationToken::new()).await?;
    assert_eq!((report.groups_landed, report.files_in, report.files_out), (1, 6, 1));
    assert_eq!(live_files(&fixture).await?, 3);
    fixture.holds(0..80, After::GracefulStop).await
}

/// K1 for rewrites: whatever became of the request, the rewrite is there once.
#[tokio::test]
async fn a_rewrite_is_there_once_whatever_the_answer_was() -> Result<()> {
    for fault in [
        CommitFault::ReplyLost,
        CommitFault::AppliedThenConflict,
        CommitFault::ServerError,
        CommitFault::Throttled { retry_after: None },
        CommitFault::AppliedLate { after: 1 },
    ] {
        let (fixture, process) = small_files("rewrite-answers", 4).await?;
        fixture.faults.then(fault.clone());
        let report = fixture.compact(&process).await?;
        assert_eq!((report.groups_landed, report.files_out), (1, 1), "{fault:?}");
        fixture.catalog.release_late().await;
        assert_eq!(live_files(&fixture).await?, 1, "{fault:?}");
        fixture.holds(0..40, After::Fault).await?;
    }
    Ok(())
}

/// R5: a manifest that holds tombstones is rewritten, again and again.
#[tokio::test]
async fn what_was_removed_stays_removed_over_many_rewrites() -> Result<()> {
    let (fixture, process) = small_files("tombstones", 3).await?;
    for round in 3..12 {
        fixture.compact(&process).await?;
        process.append(round * 10..round * 10 + 10).await?;
    }
    fixture.compact(&process).await?;
    assert_eq!(live_files(&fixture).await?, 1);
    fixture.holds(0..120, After::GracefulStop).await
}

/// R7, C3: whatever the layout, a plan right after a rewrite is empty.
#[tokio::test]
async fn planning_right_after_a_rewrite_yields_nothing() -> Result<()> {
    let seed = scratch::seed()?;
    println!("FIRN_TEST_SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for _ in 0..6 {
        let fixture = Fixture::new("random-layout").await?;
        let process = fixture.process().await?;
        let mut next = 0;
        for _ in 0..random.random_range(1..25) {
            let rows = random.random_range(1..10_i64).pow(random.random_range(1..5));
            process.append(next..next + rows).await?;
            next += rows;
        }
        let mut options = options();
        let target = random.random_range(100_000..1_000_000).to_string();
        options.plan.overrides.insert("target-file-size-bytes".to_owned(), target.clone());
        let first = plan(&process.handle.table(), &options.plan).await?;
        let stop = CancellationToken::new();
        let report = run_plan(&process.handle, &first, &options, Arc::new(Silent), stop).await?;
        assert!(report.dropped.is_empty(), "seed {seed}: {report:?}");
        let again = plan(&process.handle.table(), &options.plan).await?;
        assert!(again.is_empty(), "seed {seed}, target {target}: {again:?}");
        fixture.holds(0..next, After::GracefulStop).await?;
    }
    Ok(())
}

/// R13: the snapshot that was planned on expires during the rewrite.
#[tokio::test]
async fn a_rewrite_lands_though_its_snapshot_expired_meanwhile() -> Result<()> {
    let (fixture, writer) = small_files("planned-expired", 4).await?;
    let compactor = fixture.process().await?;
    let plan = plan(&compactor.handle.table(), &options().plan).await?;
    writer.append(40..50).await?;
    let expire =
        ExpireOptions { older_than_ms: Some(i64::MAX), retain_last: Some(1), ..ExpireOptions::default() };
    writer.handle.expire(&expire).await?;
    let report =
        run_plan(&compactor.handle, &plan, &options(), Arc::new(Silent), CancellationToken::new()).await?;
    assert_eq!((report.groups_landed, report.files_in), (1, 4), "{report:?}");
    assert_eq!(live_files(&fixture).await?, 2);
    fixture.holds(0..50, After::GracefulStop).await
}

/// R13: the table is rolled back below the snapshot that was planned on.
#[tokio::test]
async fn a_rewrite_whose_inputs_were_rolled_back_is_dropped_and_leaves_nothing() -> Result<()> {
    let (fixture, _writer) = small_files("planned-rolled-back", 4).await?;
    let compactor = fixture.process().await?;
    let plan = plan(&compactor.handle.table(), &options().plan).await?;
    let ancestry = tables::ancestry(&fixture.warehouse, TABLE).await?;
    tables::roll_back(&fixture.warehouse, TABLE, ancestry[2]).await?;
    let report =
        run_plan(&compactor.handle, &plan, &options(), Arc::new(Silent), CancellationToken::new()).await?;
    assert_eq!((report.groups_landed, report.dropped.len()), (0, 1), "{report:?}");
    fixture.holds(0..20, After::GracefulStop).await
}

/// R15: definite conflicts until the tries are used up.
#[tokio::test]
async fn a_rewrite_that_gives_up_after_conflicts_leaves_no_file_behind() -> Result<()> {
    let (fixture, process) = small_files("conflicts", 4).await?;
    fixture.faults.storm(&CommitFault::Conflicts, 100);
    let outcome = fixture.compact(&process).await;
    fixture.faults.quiet();
    let landed = outcome.as_ref().map_or(0, |report| report.groups_landed);
    assert_eq!(landed, 0, "{outcome:?}");
    assert_eq!(fixture.faults.injected().len(), MAX_CONFLICTS as usize + 1, "the first try and ten more");
    fixture.holds(0..40, After::GracefulStop).await
}

/// Two compactors at once: what one has rewritten the other drops.
#[tokio::test]
async fn of_two_rewrites_of_one_group_one_lands() -> Result<()> {
    let (fixture, _writer) = small_files("two-compactors", 6).await?;
    let (one, other) = (fixture.process().await?, fixture.process().await?);
    let (first, second) = tokio::join!(fixture.compact(&one), fixture.compact(&other));
    let (first, second) = (first?, second?);
    assert_eq!(first.groups_landed + second.groups_landed, 1, "{first:?} {second:?}");
    assert_eq!(live_files(&fixture).await?, 1);
    fixture.holds(0..60, After::GracefulStop).await
}
