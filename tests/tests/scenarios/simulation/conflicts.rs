//! Commits that lose again and again, for certain, and what is left of them.

use std::collections::BTreeSet;

use firn_table::catalog::{CommitCatalog, CommitOutcome};
use firn_tests::foreign::Append;
use firn_tests::sim::client_catalog::ClientCatalog;
use firn_tests::sim::client_store::client_stores;
use firn_tests::sim::life::Destiny;
use firn_tests::sim::network::Kind;
use firn_tests::sim::records::Role;
use firn_tests::sim::stage::{self, Stage};
use iceberg::TableUpdate;

/// Conflicts in a row.
const CONFLICTS: usize = 10;

/// A person sets a property of the table.
async fn set_property(stage: &Stage, name: &str, value: &str) {
    let link = stage.world.own_link();
    let stores = client_stores(&link);
    let update = TableUpdate::SetProperties { updates: [(name.to_owned(), value.to_owned())].into() };
    let outcome = ClientCatalog::new(link, stores).commit(&stage.table(), Vec::new(), vec![update]).await;
    assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
}

/// Each of the next commits of a role is slow, and another engine commits before it arrives. Ends when the last of them
/// has lost.
async fn lose(stage: &Stage, role: Role) {
    let network = stage.world.network();
    for _ in 0..CONFLICTS {
        network.order((role, Kind::Commit), "", "slow-commit");
    }
    let mut engine = stage.engine();
    for round in 1..=CONFLICTS {
        let left = CONFLICTS - round;
        stage
            .until("the next commit is on its way", |stage| {
                stage.world.network().outstanding_orders() == left
            })
            .await;
        let id = i64::try_from(round).unwrap();
        engine.must(&Append { ids: -id..1 - id }).await.unwrap();
    }
    let refused = |stage: &Stage| refusals(stage) >= CONFLICTS;
    stage.until("the last of them lost", refused).await;
    assert_eq!(refusals(stage), CONFLICTS, "no other commit was refused");
}

/// Commits that the catalog refused, all for certain.
fn refusals(stage: &Stage) -> usize {
    let history = stage.world.history();
    history.last(usize::MAX).iter().filter(|entry| entry.what.starts_with("commit refused")).count()
}

/// The files that processes of a role wrote, and those of them that are still there.
async fn files_of(stage: &Stage, role: Role) -> (BTreeSet<String>, BTreeSet<String>) {
    let written: BTreeSet<String> = stage.world.read(|records| {
        let of_role = records.written.iter().filter(|touched| touched.by.role == role);
        of_role.map(|touched| touched.location.clone()).collect()
    });
    let mut there = BTreeSet::new();
    for location in &written {
        if stage.world.stores().exists(location).await.unwrap() {
            there.insert(location.clone());
        }
    }
    (written, there)
}

/// The checker of litter accepts nothing here: no request met a fault that leaves anything in doubt.
#[test]
fn a_rewrite_that_loses_ten_times_lands_and_leaves_nothing_behind() {
    stage::play(|stage| async move {
        stage.files(5).await;
        let process = stage.process(Role::Compactor, "compactor", Destiny::default());
        let rewriting = tokio::spawn({
            let stage = stage.clone();
            async move { stage.compact(process, &stage.compaction()).await }
        });
        lose(&stage, Role::Compactor).await;
        let report = rewriting.await.unwrap().unwrap().unwrap();
        assert_eq!((report.groups_landed, report.files_in), (1, 5), "{report:?}");
        let (written, there) = files_of(&stage, Role::Compactor).await;
        let lists = |files: &BTreeSet<String>| files.iter().filter(|path| path.contains("/snap-")).count();
        assert_eq!((lists(&written), lists(&there)), (CONFLICTS + 1, 1), "lists of manifests: {there:?}");
        let outputs =
            |files: &BTreeSet<String>| files.iter().filter(|path| path.contains("compact-")).count();
        assert_eq!((outputs(&written), outputs(&there)), (1, 1), "{there:?}");
    });
}

#[test]
fn a_rewrite_that_gives_up_after_ten_conflicts_leaves_nothing_behind() {
    stage::play(|stage| async move {
        stage.files(5).await;
        set_property(&stage, "commit.retry.num-retries", "9").await;
        let process = stage.process(Role::Compactor, "compactor", Destiny::default());
        let rewriting = tokio::spawn({
            let stage = stage.clone();
            async move { stage.compact(process, &stage.compaction()).await }
        });
        lose(&stage, Role::Compactor).await;
        let report = rewriting.await.unwrap().unwrap().unwrap();
        assert_eq!((report.groups_landed, report.dropped.len()), (0, 1), "{report:?}");
        assert!(report.dropped[0].reason.contains("10 of them conflicts"), "{report:?}");
        let (written, there) = files_of(&stage, Role::Compactor).await;
        assert!(written.iter().any(|path| path.ends_with(".parquet")), "{written:?}");
        assert_eq!(there, BTreeSet::new());
    });
}

#[test]
fn a_flush_that_loses_ten_times_lands_and_leaves_nothing_behind() {
    stage::play(|stage| async move {
        stage.produce(0, 10);
        let writer = stage.writer("writer", stage.plan());
        lose(&stage, Role::Writer).await;
        stage.committed(0, 10).await;
        writer.stop().await.unwrap();
        let (written, there) = files_of(&stage, Role::Writer).await;
        let lists = |files: &BTreeSet<String>| files.iter().filter(|path| path.contains("/snap-")).count();
        assert_eq!((lists(&written), lists(&there)), (CONFLICTS + 1, 1), "lists of manifests: {there:?}");
        assert_eq!(stage.cursor(0).map(|cursor| cursor.rows), Some(10));
    });
}
