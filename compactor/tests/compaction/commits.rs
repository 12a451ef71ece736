//! Rewrites that meet other commits.

use std::sync::Arc;
use std::time::Duration;

use firn_compactor::{CompactOptions, PlanOptions, Silent, compact, plan, run_plan};
use firn_table::catalog::CommitOutcome;
use firn_table::commit::{CommitLimits, ExpireOptions};
use futures::FutureExt;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::faults::HookedCatalog;
use crate::rewriting::assert_nothing_left;
use crate::support::{Lake, TestTable, schema};

async fn filled(lake: &Lake, files: u64) -> TestTable {
    let table = lake.create(schema(), &[], &[]).await;
    for seed in 1..=files {
        table.append_random(50, seed).await;
    }
    table
}

async fn run(table: &TestTable) -> firn_compactor::RunReport {
    let options = CompactOptions::default();
    compact(&table.handle, &options, Arc::new(Silent), CancellationToken::new()).await.expect("a compaction")
}

#[tokio::test]
async fn an_append_before_the_commit_costs_one_conflict_and_loses_nothing() {
    let lake = Lake::new().await;
    let writer = filled(&lake, 8).await;
    let hooked = HookedCatalog::new(lake.catalog());
    let table = lake.open_through(hooked.clone()).await;
    let before = writer.rows().await;
    let appended = Arc::new(writer);
    let hook = appended.clone();
    hooked.before_commit(Box::new(move || {
        async move {
            hook.append_random(7, 100).await;
            None
        }
        .boxed()
    }));

    let report = run(&table).await;

    assert_eq!((report.groups_landed, report.files_in, report.conflicts), (1, 8, 1));
    assert_eq!(hooked.left(), 0);
    let rows = table.rows().await;
    assert_eq!(rows.len(), 8 * 50 + 7);
    assert!(before.iter().all(|row| rows.binary_search(row).is_ok()));
    assert_eq!(table.live().await.len(), 2);
}

#[tokio::test]
async fn conflicts_without_end_leave_no_file_behind() {
    let lake = Lake::new().await;
    let table = filled(&lake, 8).await;
    let hooked = HookedCatalog::new(lake.catalog());
    let mut through = lake.open_through(hooked.clone()).await;
    through.handle = through.handle.with_limits(CommitLimits {
        max_conflicts: 10,
        min_wait: Duration::from_millis(1),
        max_wait: Duration::from_millis(5),
        ..CommitLimits::default()
    });
    for _ in 0..200 {
        hooked.before_commit(Box::new(|| async { Some(CommitOutcome::Conflict) }.boxed()));
    }
    let before = table.files();
    let report = run(&through).await;
    assert_eq!((report.groups_landed, report.dropped.len()), (0, 1));
    assert_eq!(200 - hooked.left(), 11, "the first attempt and ten more");
    assert_eq!(table.files(), before);
}

#[tokio::test]
async fn a_second_rewrite_of_the_same_files_is_dropped_and_leaves_no_file() {
    let lake = Lake::new().await;
    let table = filled(&lake, 8).await;
    let before = table.rows().await;
    let first = plan(&table.table().await, &PlanOptions::default()).await.expect("a plan");
    run(&table).await;
    let files = table.data_files();
    let options = CompactOptions::default();
    let second = run_plan(&table.handle, &first, &options, Arc::new(Silent), CancellationToken::new()).await;
    let second = second.expect("a report");
    assert_eq!((second.groups_landed, second.dropped.len()), (0, 1));
    assert_eq!(table.data_files(), files);
    assert_eq!(table.rows().await, before);
}

#[tokio::test]
async fn a_kept_plan_runs_although_the_table_has_moved_on() {
    let lake = Lake::new().await;
    let table = filled(&lake, 8).await;
    let kept = plan(&table.table().await, &PlanOptions::default()).await.expect("a plan");
    let kept = serde_json::from_str(&serde_json::to_string(&kept).expect("json")).expect("a plan");
    table.append_random(5, 50).await;
    let before = table.rows().await;
    let options = CompactOptions::default();
    let report = run_plan(&table.handle, &kept, &options, Arc::new(Silent), CancellationToken::new()).await;
    assert_eq!(report.expect("a report").groups_landed, 1);
    assert_eq!(table.rows().await, before);
    assert_eq!(table.live().await.len(), 2);
}

#[tokio::test]
async fn expiry_of_the_planned_snapshot_does_not_hinder_the_rewrite() {
    let lake = Lake::new().await;
    let table = filled(&lake, 8).await;
    let hooked = HookedCatalog::new(lake.catalog());
    let through = lake.open_through(hooked.clone()).await;
    let planned_on = table.table().await.metadata().current_snapshot_id().expect("a snapshot");
    let other = Arc::new(table);
    let hook = other.clone();
    let append_and_expire = move || {
        Handle::current().block_on(async {
            hook.append_random(7, 100).await;
            let options = ExpireOptions { snapshot_ids: vec![planned_on], ..ExpireOptions::default() };
            let expired = hook.handle.expire(&options).await.expect("an expiry");
            assert_eq!(expired.snapshot_ids, [planned_on]);
        });
    };
    hooked.before_commit(Box::new(move || {
        async move {
            tokio::task::spawn_blocking(append_and_expire).await.expect("an append and an expiry");
            None
        }
        .boxed()
    }));
    let report = run(&through).await;
    assert_eq!((report.groups_landed, report.planned_on), (1, Some(planned_on)));
    assert_eq!(other.rows().await.len(), 8 * 50 + 7);
}

#[tokio::test]
async fn a_rollback_below_the_planned_snapshot_drops_the_group() {
    let lake = Lake::new().await;
    let table = filled(&lake, 4).await;
    let earlier = table.table().await.metadata().current_snapshot_id().expect("a snapshot");
    let before = table.rows().await;
    for seed in 5..=8 {
        table.append_random(50, seed).await;
    }
    let hooked = HookedCatalog::new(lake.catalog());
    let through = lake.open_through(hooked.clone()).await;
    let other = Arc::new(table);
    let hook = other.clone();
    hooked.before_commit(Box::new(move || {
        async move {
            hook.roll_back_to(earlier).await;
            None
        }
        .boxed()
    }));
    let inputs = other.data_files();
    let report = run(&through).await;
    assert_eq!((report.groups_landed, report.dropped.len()), (0, 1));
    assert_eq!(other.rows().await, before);
    assert_eq!(other.data_files(), inputs);
}

#[tokio::test]
async fn groups_are_committed_in_at_most_as_many_commits_as_allowed() {
    let lake = Lake::new().await;
    let partition = [("name", iceberg::spec::Transform::Identity)];
    let table = lake.create(schema(), &partition, &[]).await;
    for seed in 1..=6 {
        table.append_random(200, seed).await;
    }
    let before = table.rows().await;
    let report = table.compact(&[("partial-progress.max-commits", "4")]).await;
    assert!(report.groups_landed > 15, "{report:?}");
    assert_eq!(report.groups_landed, report.groups_planned);
    assert!((2..=4).contains(&report.snapshot_ids.len()), "{report:?}");
    assert_eq!(table.rows().await, before);
    assert_nothing_left(&table, &[]).await;

    for seed in 7..=12 {
        table.append_random(200, seed).await;
    }
    let report = table.compact(&[("partial-progress.enabled", "false")]).await;
    assert_eq!(report.snapshot_ids.len(), 1);
}
