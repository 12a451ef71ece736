//! Replies that are lost, or say something else than what became of the request.

use std::time::Duration;

use firn_tests::sim::life::Destiny;
use firn_tests::sim::network::Kind;
use firn_tests::sim::records::Role;
use firn_tests::sim::stage::{self, Stage};
use iceberg::spec::Operation;

/// Snapshots of the table that add rows.
fn appends(stage: &Stage) -> usize {
    let table = stage.table();
    table.metadata().snapshots().filter(|s| s.summary().operation == Operation::Append).count()
}

/// A commit of one flush meets a fault; the rows are there once, in one snapshot, and the writer goes on.
fn one_snapshot_despite(fault: &'static str) {
    stage::play(|stage| async move {
        stage.world.network().order((Role::Writer, Kind::Commit), "", fault);
        let writer = stage.writer("writer", stage.plan());
        stage.produce(0, 10);
        stage.committed(0, 10).await;
        assert_eq!(stage.world.network().outstanding_orders(), 0, "the fault came");
        assert_eq!(appends(&stage), 1, "{fault}");
        stage.produce(0, 5);
        stage.committed(0, 15).await;
        assert_eq!(appends(&stage), 2, "{fault}: the writer went on");
        writer.stop().await.unwrap();
    });
}

#[test]
fn a_commit_whose_reply_is_lost_is_found() {
    one_snapshot_despite("reply-lost");
}

#[test]
fn a_commit_that_landed_under_a_5xx_is_found() {
    one_snapshot_despite("applied-then-5xx");
}

#[test]
fn a_commit_that_landed_under_a_409_is_found() {
    one_snapshot_despite("applied-then-409");
}

#[test]
fn a_commit_that_landed_without_any_answer_is_found_after_the_deadline() {
    one_snapshot_despite("applied-then-hangs");
}

#[test]
fn a_commit_that_lands_after_the_next_attempt_lands_once() {
    one_snapshot_despite("applied-late");
}

#[test]
fn a_commit_that_never_arrived_is_sent_again() {
    for fault in ["lost-on-the-way", "server-error", "throttled", "hangs"] {
        one_snapshot_despite(fault);
    }
}

#[test]
fn a_request_that_lands_after_its_sender_was_killed_and_restarted_counts_once() {
    stage::play(|stage| async move {
        for _ in 0..3 {
            stage.world.network().order((Role::Writer, Kind::Commit), "", "applied-late");
        }
        let first = stage.writer("first", stage.plan());
        stage.produce(0, 20);
        stage.until("a request is under way", |stage| stage.world.network().outstanding_orders() < 3).await;
        first.process.life().crash();
        assert!(first.end().await.is_none(), "it was killed");
        let second = stage.writer("second", stage.plan());
        stage.committed(0, 20).await;
        stage.pass(Duration::from_secs(60)).await;
        stage.produce(0, 1);
        stage.committed(0, 21).await;
        assert_eq!(stage.cursor(0).map(|cursor| cursor.rows), Some(21));
        second.stop().await.unwrap();
    });
}

#[test]
fn a_compaction_between_a_commit_and_the_check_after_a_crash_hides_nothing() {
    stage::play(|stage| async move {
        let writer = stage.writer("first", stage.plan());
        for offset in 1..=4 {
            stage.produce(0, 10);
            stage.committed(0, 10 * offset).await;
        }
        stage.world.network().order((Role::Writer, Kind::Commit), "", "applied-then-hangs");
        stage.produce(0, 10);
        // It lands, and the writer does not know.
        stage.committed(0, 50).await;
        writer.process.life().crash();
        assert!(writer.end().await.is_none());
        let compactor = stage.process(Role::Compactor, "compactor", Destiny::default());
        let report = stage.compact(compactor, &stage.compaction()).await;
        assert_eq!(report.unwrap().unwrap().files_in, 5);
        let writer = stage.writer("second", stage.plan());
        stage.produce(0, 10);
        stage.committed(0, 60).await;
        assert_eq!(stage.cursor(0).map(|cursor| (cursor.rows, cursor.start)), Some((60, 0)));
        writer.stop().await.unwrap();
    });
}
