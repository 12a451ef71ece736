//! Rewrites that meet other commits, rollbacks, expiry and crashes.

use std::time::Duration;

use firn_table::commit::ExpireOptions;
use firn_tests::foreign::RollBack;
use firn_tests::sim::life::Destiny;
use firn_tests::sim::network::Kind;
use firn_tests::sim::records::Role;
use firn_tests::sim::stage::{self, Stage};
use iceberg::spec::Operation;

fn operations(stage: &Stage) -> Vec<Operation> {
    let table = stage.table();
    let mut snapshots: Vec<_> = table.metadata().snapshots().cloned().collect();
    snapshots.sort_by_key(|snapshot| snapshot.sequence_number());
    snapshots.iter().map(|snapshot| snapshot.summary().operation.clone()).collect()
}

fn live_files(stage: &Stage) -> Option<String> {
    let table = stage.table();
    let head = table.metadata().current_snapshot()?;
    head.summary().additional_properties.get("total-data-files").cloned()
}

#[test]
fn a_rewrite_that_loses_to_an_append_lands_on_top_of_it() {
    stage::play(|stage| async move {
        stage.files(5).await;
        // The rewrite is slow; the append comes while it is under way.
        stage.world.network().order((Role::Compactor, Kind::Put), "compact-", "slow-put");
        let process = stage.process(Role::Compactor, "compactor", Destiny::default());
        let rewriting = tokio::spawn({
            let stage = stage.clone();
            async move { stage.compact(process, &stage.compaction()).await }
        });
        let writer = stage.writer("writer", stage.plan());
        stage.produce(0, 10);
        stage.committed(0, 60).await;
        writer.stop().await.unwrap();
        let report = rewriting.await.unwrap().unwrap().unwrap();
        assert_eq!((report.groups_landed, report.files_in), (1, 5));
        assert_eq!(operations(&stage).last(), Some(&Operation::Replace));
        assert_eq!(live_files(&stage).as_deref(), Some("2"));
    });
}

#[test]
fn a_rewrite_lands_although_its_planning_snapshot_expired() {
    stage::play(|stage| async move {
        stage.files(5).await;
        stage.world.network().order((Role::Compactor, Kind::Put), "compact-", "slow-put");
        let process = stage.process(Role::Compactor, "compactor", Destiny::default());
        let rewriting = tokio::spawn({
            let stage = stage.clone();
            async move { stage.compact(process, &stage.compaction()).await }
        });
        let writer = stage.writer("writer", stage.plan());
        stage.produce(0, 10);
        stage.committed(0, 60).await;
        writer.stop().await.unwrap();
        let handle = stage.open(Role::Maintenance, "expirer").await;
        let all =
            ExpireOptions { older_than_ms: Some(i64::MAX), retain_last: Some(1), ..ExpireOptions::default() };
        assert_eq!(handle.expire(&all).await.unwrap().snapshot_ids.len(), 5);
        let report = rewriting.await.unwrap().unwrap().unwrap();
        assert_eq!(report.groups_landed, 1, "{report:?}");
        assert_eq!(live_files(&stage).as_deref(), Some("2"));
    });
}

#[test]
fn a_rewrite_is_dropped_where_the_table_was_rolled_back_below_it() {
    // The rollback takes rows out of the table that the ledger covers: the checkers would say so.
    stage::play_with(Vec::new(), |stage| async move {
        stage.files(5).await;
        let first =
            stage.table().metadata().snapshots().min_by_key(|s| s.sequence_number()).unwrap().snapshot_id();
        stage.world.network().order((Role::Compactor, Kind::Put), "compact-", "slow-put");
        let process = stage.process(Role::Compactor, "compactor", Destiny::default());
        let rewriting = tokio::spawn({
            let stage = stage.clone();
            async move { stage.compact(process, &stage.compaction()).await }
        });
        stage.pass(Duration::from_millis(150)).await;
        stage.engine().must(&RollBack::To(first)).await.unwrap();
        let report = rewriting.await.unwrap().unwrap().unwrap();
        assert_eq!((report.groups_landed, report.dropped.len()), (0, 1), "{report:?}");
        assert!(report.dropped[0].reason.contains("not in the table any more"), "{report:?}");
        assert_eq!(live_files(&stage).as_deref(), Some("1"));
    });
}

#[test]
fn a_rewrite_whose_commits_fail_ten_times_lands() {
    stage::play(|stage| async move {
        stage.files(5).await;
        for _ in 0..10 {
            stage.world.network().order((Role::Compactor, Kind::Commit), "", "server-error");
        }
        let process = stage.process(Role::Compactor, "compactor", Destiny::default());
        let report = stage.compact(process, &stage.compaction()).await.unwrap().unwrap();
        assert_eq!(report.groups_landed, 1);
        assert_eq!(stage.world.network().outstanding_orders(), 0);
    });
}
