//! A writer moves to a branch, and back.

use std::sync::Arc;

use firn_table::catalog::{CommitCatalog, CommitOutcome};
use firn_table::commit::{CursorChange, TableHandle};
use firn_table::ledger::{CommitId, Cursor, Ledger};
use firn_table::{ErrorKind, Result};
use firn_tests::sim::actors::{Teller, partition, writer_parts_on};
use firn_tests::sim::client_catalog::ClientCatalog;
use firn_tests::sim::client_store::client_stores;
use firn_tests::sim::life::Destiny;
use firn_tests::sim::records::Role;
use firn_tests::sim::stage::{self, Stage};
use firn_writer::pipeline::run_pipeline;
use iceberg::TableUpdate;
use iceberg::spec::{SnapshotReference, SnapshotRetention};
use tokio_util::sync::CancellationToken;

/// A person makes a snapshot the head of a branch.
async fn set_branch(stage: &Stage, branch: &str, snapshot_id: i64) {
    let link = stage.world.own_link();
    let stores = client_stores(&link);
    let retention = SnapshotRetention::branch(None, None, None);
    let reference = SnapshotReference::new(snapshot_id, retention);
    let update = TableUpdate::SetSnapshotRef { ref_name: branch.to_owned(), reference };
    let outcome = ClientCatalog::new(link, stores).commit(&stage.table(), Vec::new(), vec![update]).await;
    assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
}

fn head(stage: &Stage, branch: &str) -> i64 {
    stage.table().metadata().snapshot_for_ref(branch).unwrap().snapshot_id()
}

fn ledger(stage: &Stage, branch: &str) -> Option<Ledger> {
    let table = stage.table();
    Ledger::read(table.metadata().properties(), branch, &stage.plan().name).unwrap()
}

/// A person takes the cursors of one branch over to another.
async fn adopt(handle: &TableHandle, ledger: Ledger) {
    let change = CursorChange {
        commit_id: CommitId { instance: handle.surroundings().uuid(), counter: 1 },
        writer: firn_table::ledger::WriterName::new("w").unwrap(),
        cursors: ledger.cursors,
        source: None,
        replace_all: true,
    };
    handle.set_cursors(change).await.unwrap();
}

/// Runs a writer on a branch until its cursor is at `next`, or it stops by itself.
async fn write_to(stage: &Stage, (branch, name): (&str, &str), next: i64) -> Result<()> {
    let process = stage.process(Role::Writer, name, Destiny::default());
    let handle = process.open_branch(branch).await?;
    let plan = stage.plan();
    let parts = writer_parts_on(handle, &process, plan.config(), &plan.group);
    let (stop, own) = (CancellationToken::new(), process.clone());
    let token = stop.clone();
    let writer = tokio::spawn(async move {
        let work = async { run_pipeline(parts, Arc::new(Teller(own.clone())), token).await.map(drop) };
        own.live(work).await
    });
    let there = |cursor: Option<&Cursor>| cursor.is_some_and(|cursor| cursor.next >= next);
    stage
        .until(&format!("{next} on {branch}"), |stage| {
            let ledger = ledger(stage, branch);
            writer.is_finished() || there(ledger.as_ref().and_then(|l| l.cursors.get(&partition(0))))
        })
        .await;
    stop.cancel();
    writer.await.unwrap().unwrap()
}

/// Each branch has cursors of its own. Where a branch holds rows of the writer that its cursors do not cover, the
/// writer stops before it doubles them, and a person takes the other branch's cursors over.
#[test]
fn a_writer_moves_to_a_branch_and_back_when_main_became_it() {
    stage::play(|stage| async move {
        stage.produce(0, 10);
        write_to(&stage, ("main", "writer-1"), 10).await.unwrap();
        set_branch(&stage, "dev", head(&stage, "main")).await;

        stage.produce(0, 10);
        let error = write_to(&stage, ("dev", "writer-2"), 20).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ledger, "{error}");
        let person = stage.process(Role::World, "person", Destiny::default());
        adopt(&person.open_branch("dev").await.unwrap(), ledger(&stage, "main").unwrap()).await;
        write_to(&stage, ("dev", "writer-3"), 20).await.unwrap();
        assert_eq!(stage.cursor(0).map(|cursor| cursor.next), Some(10), "main stays where it was");

        set_branch(&stage, "main", head(&stage, "dev")).await;
        let error = write_to(&stage, ("main", "writer-4"), 20).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ledger, "{error}");
        adopt(&person.open().await.unwrap(), ledger(&stage, "dev").unwrap()).await;
        stage.produce(0, 10);
        write_to(&stage, ("main", "writer-5"), 30).await.unwrap();
    });
}
