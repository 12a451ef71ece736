//! Answers of catalogs that are not what they seem: 400 after a commit on another branch, 409 for what was applied, 429
//! with a wait, 401 for an old token.

use std::sync::Arc;
use std::time::Duration;

use firn_table::catalog::{CommitCatalog, CommitOutcome};
use firn_table::ledger::{Ledger, WriterName};
use firn_tests::sim::actors::{Teller, partition, writer_parts_on};
use firn_tests::sim::check;
use firn_tests::sim::client_catalog::ClientCatalog;
use firn_tests::sim::client_store::client_stores;
use firn_tests::sim::life::Destiny;
use firn_tests::sim::network::{Answer, Failure, Kind};
use firn_tests::sim::records::{Role, Struck};
use firn_tests::sim::stage::{self, Stage};
use firn_writer::pipeline::run_pipeline;
use iceberg::TableUpdate;
use iceberg::spec::{Operation, SnapshotReference, SnapshotRetention};
use tokio_util::sync::CancellationToken;

/// A person makes the head of `main` the head of a branch.
async fn create_branch(stage: &Stage, branch: &str) {
    let link = stage.world.own_link();
    let stores = client_stores(&link);
    let head = stage.table().metadata().current_snapshot_id().unwrap();
    let reference = SnapshotReference::new(head, SnapshotRetention::branch(None, None, None));
    let update = TableUpdate::SetSnapshotRef { ref_name: branch.to_owned(), reference };
    let outcome = ClientCatalog::new(link, stores).commit(&stage.table(), Vec::new(), vec![update]).await;
    assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
}

/// Commits that the catalog refused for their sequence number, which another branch had taken.
fn stale_sequence_numbers(stage: &Stage) -> usize {
    let history = stage.world.history();
    let stale = |what: &str| what.contains("refused") && what.contains("sequence number");
    history.last(usize::MAX).iter().filter(|entry| stale(&entry.what)).count()
}

#[test]
fn a_sequence_number_that_another_branch_took_is_taken_anew() {
    stage::play(|stage| async move {
        stage.produce(0, 5);
        let main = stage.writer("main", stage.plan());
        stage.committed(0, 5).await;
        create_branch(&stage, "dev").await;
        let name = WriterName::new("other").unwrap();
        let process = stage.process(Role::Writer, "dev", Destiny::default());
        let handle = process.open_branch("dev").await.unwrap();
        let plan = firn_tests::sim::actors::WriterPlan { name: name.clone(), ..stage.plan() };
        let parts = writer_parts_on(handle, &process, plan.config(), "others");
        let (stop, own) = (CancellationToken::new(), process.clone());
        let token = stop.clone();
        let dev = tokio::spawn(async move {
            let work = async { run_pipeline(parts, Arc::new(Teller(own.clone())), token).await.map(drop) };
            own.live(work).await
        });
        for _ in 0..40 {
            stage.produce(0, 3);
            stage.pass(Duration::from_millis(100)).await;
        }
        stage.committed(0, 125).await;
        let on_dev = |stage: &Stage| {
            let table = stage.table();
            let ledger = Ledger::read(table.metadata().properties(), "dev", &name).unwrap();
            ledger.and_then(|ledger| ledger.cursors.get(&partition(0)).cloned())
        };
        stage.until("all is on the branch", |stage| on_dev(stage).is_some_and(|c| c.next == 125)).await;
        assert!(stale_sequence_numbers(&stage) >= 3, "{} were refused", stale_sequence_numbers(&stage));
        assert_eq!(stage.cursor(0).map(|cursor| cursor.rows), Some(125));
        assert_eq!(on_dev(&stage).map(|cursor| cursor.rows), Some(125));
        stop.cancel();
        dev.await.unwrap().unwrap().unwrap();
        main.stop().await.unwrap();
    });
}

/// A rewrite whose commit meets a fault lands, and lands once.
fn one_replace_despite(fault: &'static str) {
    for seed in 0..10 {
        let played = stage::play_under(seed, check::all(), |stage| async move {
            stage.files(5).await;
            stage.world.network().order((Role::Compactor, Kind::Commit), "", fault);
            let process = stage.process(Role::Compactor, "compactor", Destiny::default());
            let report = stage.compact(process, &stage.compaction()).await.unwrap().unwrap();
            assert_eq!((report.groups_landed, report.files_in, report.files_out), (1, 5, 1), "{report:?}");
            assert_eq!(stage.world.network().outstanding_orders(), 0, "the fault came");
            let table = stage.table();
            let replaces = table.metadata().snapshots();
            let replaces = replaces.filter(|snapshot| snapshot.summary().operation == Operation::Replace);
            assert_eq!(replaces.count(), 1, "{fault}");
        });
        assert!(played.is_ok(), "{fault}, seed {seed}:\n{}", played.unwrap_err());
    }
}

#[test]
fn a_rewrite_that_landed_under_a_409_is_found_and_its_files_stay() {
    one_replace_despite("applied-then-409");
}

#[test]
fn a_rewrite_is_sent_again_with_another_token() {
    one_replace_despite("expired-token");
}

#[test]
fn a_rewrite_that_is_told_to_wait_is_sent_again() {
    one_replace_despite("throttled");
}

/// The wait that the catalog asked for.
fn asked_for(struck: &Struck) -> Duration {
    match struck.answer {
        Answer::Failure(Failure::Throttled(wait)) => wait,
        _ => Duration::ZERO,
    }
}

#[test]
fn a_commit_that_is_told_when_to_come_again_does_not_come_earlier() {
    let mut waits = Duration::ZERO;
    for seed in 0..20 {
        let mut asked = Duration::ZERO;
        let played = stage::play_under(seed, check::all(), |stage| {
            let asked = &mut asked;
            async move {
                stage.world.network().order((Role::Writer, Kind::Commit), "", "throttled");
                let writer = stage.writer("writer", stage.plan());
                stage.produce(0, 10);
                stage.committed(0, 10).await;
                let of_commits = |struck: &&Struck| struck.request.starts_with("commit");
                stage.world.read(|records| {
                    for struck in records.struck.iter().filter(of_commits) {
                        let wait = asked_for(struck);
                        let next = records.commits.iter().find(|commit| commit.at > struck.at).unwrap();
                        assert!(next.at >= struck.at + wait, "{struck:?}, and a commit at {:?}", next.at);
                        *asked += wait;
                    }
                });
                writer.stop().await.unwrap();
            }
        });
        assert!(played.is_ok(), "seed {seed}:\n{}", played.unwrap_err());
        waits += asked;
    }
    assert!(waits >= Duration::from_secs(10), "{waits:?} were asked for in all");
}

#[test]
fn a_token_that_expires_again_and_again_costs_no_row() {
    for seed in 0..5 {
        let played = stage::play_under(seed, check::all(), |stage| async move {
            stage.world.network().set_chance("expired-token", 0.3);
            let writer = stage.writer("writer", stage.plan());
            for _ in 0..30 {
                stage.produce(0, 4);
                stage.pass(Duration::from_millis(200)).await;
            }
            stage.committed(0, 120).await;
            assert_eq!(stage.cursor(0).map(|cursor| cursor.rows), Some(120));
            let met = stage.world.read(|records| records.struck.len());
            assert!(met >= 5, "{met} requests met an expired token");
            writer.stop().await.unwrap();
        });
        assert!(played.is_ok(), "seed {seed}:\n{}", played.unwrap_err());
    }
}
