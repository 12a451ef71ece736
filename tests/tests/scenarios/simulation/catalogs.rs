//! Catalogs that are away, overloaded or forgetful, and tables that are not what they were.

use std::time::Duration;

use firn_table::ErrorKind;
use firn_table::commit::ExpireOptions;
use firn_tests::foreign::Append;
use firn_tests::sim::network::Kind;
use firn_tests::sim::records::{Role, Tale};
use firn_tests::sim::stage::{self, Stage};
use firn_writer::Event;

fn told(stage: &Stage, what: impl Fn(&Event) -> bool) -> usize {
    stage.world.read(|records| {
        let events = records.told.iter().filter_map(|told| match &told.what {
            Tale::Writer(event) => Some(event),
            _ => None,
        });
        events.filter(|event| what(event)).count()
    })
}

#[test]
fn a_writer_continues_at_its_cursor_after_its_snapshots_expired_and_another_engine_appended() {
    stage::play(|stage| async move {
        let writer = stage.writer("first", stage.plan());
        stage.produce(0, 30);
        stage.committed(0, 30).await;
        writer.stop().await.unwrap();
        stage.engine().must(&Append { ids: -10..-5 }).await.unwrap();
        let handle = stage.open(Role::Maintenance, "expirer").await;
        let all =
            ExpireOptions { older_than_ms: Some(i64::MAX), retain_last: Some(1), ..ExpireOptions::default() };
        assert_eq!(handle.expire(&all).await.unwrap().snapshot_ids.len(), 1);
        let writer = stage.writer("second", stage.plan());
        stage.produce(0, 5);
        stage.committed(0, 35).await;
        assert_eq!(stage.cursor(0).map(|cursor| (cursor.start, cursor.rows)), Some((0, 35)));
        writer.stop().await.unwrap();
    });
}

#[test]
fn a_catalog_that_never_answers_makes_the_table_unhealthy_until_it_does() {
    stage::play(|stage| async move {
        let writer = stage.writer("writer", stage.plan());
        stage.produce(0, 5);
        stage.committed(0, 5).await;
        stage.world.network().set_chance("hangs", 1.0);
        stage.produce(0, 5);
        stage
            .until("the table is unhealthy", |stage| {
                told(stage, |e| matches!(e, Event::Unhealthy { .. })) > 0
            })
            .await;
        assert_eq!(stage.cursor(0).map(|cursor| cursor.next), Some(5));
        stage.world.network().calm();
        stage.committed(0, 10).await;
        stage.until("it is healthy again", |stage| told(stage, |e| matches!(e, Event::Healthy)) > 0).await;
        writer.stop().await.unwrap();
    });
}

#[test]
fn while_the_catalog_throttles_flushes_wait_and_are_committed_together() {
    stage::play(|stage| async move {
        let writer = stage.writer("writer", stage.plan());
        stage.produce(0, 5);
        stage.committed(0, 5).await;
        stage.world.network().set_chance("throttled", 1.0);
        for _ in 0..30 {
            stage.produce(0, 10);
            stage.pass(Duration::from_secs(1)).await;
        }
        assert_eq!(stage.cursor(0).map(|cursor| cursor.next), Some(5), "nothing came through");
        stage.world.network().calm();
        let before = stage.table().metadata().snapshots().len();
        stage.committed(0, 305).await;
        let commits = stage.table().metadata().snapshots().len() - before;
        assert!(commits <= 5, "{commits} commits for 30 seconds of backlog");
        writer.stop().await.unwrap();
    });
}

#[test]
fn a_table_that_is_dropped_between_flush_and_commit_stops_the_writer() {
    stage::play(|stage| async move {
        let writer = stage.writer("writer", stage.plan());
        stage.produce(0, 5);
        stage.committed(0, 5).await;
        stage.drop_table();
        stage.produce(0, 5);
        let error = writer.ended().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        let offsets = stage.world.log().group_offsets("g");
        assert!(offsets.values().all(|offset| *offset <= 5), "{offsets:?}");
    });
}

#[test]
fn a_table_that_is_dropped_and_created_again_stops_the_writer() {
    stage::play(|stage| async move {
        let writer = stage.writer("writer", stage.plan());
        stage.produce(0, 5);
        stage.committed(0, 5).await;
        stage.drop_table();
        stage.create_table();
        stage.produce(0, 5);
        let error = writer.ended().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ledger, "{error}");
        assert!(error.to_string().contains("created again"), "{error}");
        assert_eq!(stage.table().metadata().snapshots().len(), 0, "nothing went to the new table");
    });
}

#[test]
fn a_catalog_that_drops_properties_is_refused_before_a_row_is_doubled() {
    stage::play_with(Vec::new(), |stage| async move {
        stage.world.network().order((Role::Writer, Kind::Commit), "", "dropped-properties");
        let writer = stage.writer("writer", stage.plan());
        stage.produce(0, 5);
        let error = writer.ended().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ledger, "{error}");
        assert_eq!(stage.table().metadata().snapshots().len(), 1);
        let again = stage.writer("again", stage.plan());
        assert_eq!(again.ended().await.unwrap_err().kind(), ErrorKind::Ledger);
        assert_eq!(stage.table().metadata().snapshots().len(), 1, "nothing was written again");
    });
}
