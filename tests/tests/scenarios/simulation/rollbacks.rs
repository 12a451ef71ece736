//! What a rollback leaves of the ledger.

use firn_table::commit::ExpireOptions;
use firn_tests::foreign::RollBack;
use firn_tests::sim::actors::WriterPlan;
use firn_tests::sim::check::W1;
use firn_tests::sim::check::lake::Lake;
use firn_tests::sim::records::Role;
use firn_tests::sim::stage::{self, Stage};
use firn_writer::config::AfterRollback;

/// A writer that replays what a rollback took away, until it has committed everything below an offset.
async fn replay(stage: &Stage, name: &str, next: i64) {
    let plan = WriterPlan { after_rollback: AfterRollback::Replay, ..stage.plan() };
    let writer = stage.writer(name, plan);
    stage.committed(0, next).await;
    writer.stop().await.unwrap();
}

/// What the first rollback left was set as cursors, and so the second one cannot be undone commit by commit: the history
/// that is left tells where the cursor stands, and no longer where it began.
#[test]
fn after_two_rollbacks_and_an_expiry_every_row_is_there_once_though_the_ledger_begins_later() {
    stage::play_with(vec![Box::new(W1::new(&Lake::default()))], |stage| async move {
        let mut heads = Vec::new();
        for next in [10, 20, 30] {
            stage.produce(0, 10);
            replay(&stage, &format!("filler-{next}"), next).await;
            heads.push(stage.table().metadata().current_snapshot_id().unwrap());
        }
        let handle = stage.open(Role::Maintenance, "expirer").await;
        let two =
            ExpireOptions { older_than_ms: Some(i64::MAX), retain_last: Some(2), ..ExpireOptions::default() };
        assert_eq!(handle.expire(&two).await.unwrap().snapshot_ids, [heads[0]]);
        for (name, next) in [("first", 31), ("second", 32)] {
            stage.engine().must(&RollBack::To(heads[1])).await.unwrap();
            stage.produce(0, 1);
            replay(&stage, name, next).await;
        }
        let cursor = stage.cursor(0).unwrap();
        assert_eq!((cursor.start, cursor.rows), (10, 22), "{cursor:?}");
    });
}
