//! A crash at every point, of a writer and of a compactor; a writer that sleeps at every point.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_table::ErrorKind;
use firn_tests::sim::life::Destiny;
use firn_tests::sim::records::Role;
use firn_tests::sim::stage::{self, Stage};

/// A writer that may crash fills the table, and another one goes on. Returns the points that the first one passed.
fn write_and_crash(crash_at: Option<u64>) -> u64 {
    let points = Arc::new(AtomicU64::new(0));
    let seen = points.clone();
    stage::play(|stage| async move {
        let destiny = Destiny { crash_at, pause_at: None };
        let plan = stage.plan();
        let process = stage.process(Role::Writer, "first", destiny);
        let first = stage.writer_with(process.clone(), plan.config(), &plan.group);
        for _ in 0..3 {
            stage.produce(0, 4);
            stage.produce(1, 2);
            stage.pass(Duration::from_millis(300)).await;
        }
        let crashed = if crash_at.is_some() {
            stage.pass(Duration::from_secs(5)).await;
            first.process.life().crash();
            first.end().await.is_none()
        } else {
            stage.committed(0, 12).await;
            first.stop().await.unwrap();
            false
        };
        assert_eq!(crashed, crash_at.is_some());
        seen.store(process.life().points(), Ordering::Relaxed);
        let second = stage.writer("second", stage.plan());
        stage.produce(0, 1);
        stage.committed(0, 13).await;
        stage.committed(1, 6).await;
        second.stop().await.unwrap();
    });
    points.load(Ordering::Relaxed)
}

#[test]
fn a_writer_that_crashes_at_any_point_leaves_each_row_once() {
    let points = write_and_crash(None);
    assert!(points > 40, "{points} points");
    for point in 1..=points {
        write_and_crash(Some(point));
    }
}

/// Fills a table and compacts it with a process that may crash, then compacts it with another one.
fn compact_and_crash(crash_at: Option<u64>) -> u64 {
    let points = Arc::new(AtomicU64::new(0));
    let seen = points.clone();
    stage::play(|stage: Stage| async move {
        let writer = stage.writer("writer", stage.plan());
        for file in 1..=4 {
            stage.produce(0, 5);
            stage.committed(0, 5 * file).await;
        }
        let process = stage.process(Role::Compactor, "first", Destiny { crash_at, pause_at: None });
        let ended = stage.compact(process.clone(), &stage.compaction()).await;
        assert_eq!(ended.is_none(), crash_at.is_some());
        seen.store(process.life().points(), Ordering::Relaxed);
        stage.produce(0, 5);
        stage.committed(0, 25).await;
        writer.stop().await.unwrap();
        let second = stage.process(Role::Compactor, "second", Destiny::default());
        stage.compact(second, &stage.compaction()).await.unwrap().unwrap();
    });
    points.load(Ordering::Relaxed)
}

#[test]
fn a_compactor_that_crashes_at_any_point_changes_no_row() {
    let points = compact_and_crash(None);
    assert!(points > 30, "{points} points");
    for point in 1..=points {
        compact_and_crash(Some(point));
    }
}

/// Two writers of one group fill the table; the first is not scheduled for a while from a point on, and the second
/// takes over meanwhile. Returns the points that the first one passed.
fn write_and_sleep(sleep_at: Option<u64>) -> u64 {
    let points = Arc::new(AtomicU64::new(0));
    let seen = points.clone();
    stage::play(|stage| async move {
        let pause_at = sleep_at.map(|point| (point, Duration::from_secs(40)));
        let plan = stage.plan();
        let process = stage.process(Role::Writer, "first", Destiny { crash_at: None, pause_at });
        let first = stage.writer_with(process.clone(), plan.config(), &plan.group);
        let second = stage.writer("second", stage.plan());
        for _ in 0..4 {
            (0..4).for_each(|of| stage.produce(of, 2));
            stage.pass(Duration::from_millis(300)).await;
        }
        for of in 0..4 {
            stage.committed(of, 8).await;
        }
        seen.store(process.life().points(), Ordering::Relaxed);
        stage.pass(Duration::from_secs(60)).await;
        (0..4).for_each(|of| stage.produce(of, 1));
        for of in 0..4 {
            stage.committed(of, 9).await;
        }
        // Who sleeps through the answer to its very first request finds that nobody answers in time, and ends.
        if let Err(error) = first.stop().await {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
        second.stop().await.unwrap();
    });
    points.load(Ordering::Relaxed)
}

#[test]
fn a_writer_that_sleeps_at_any_point_while_another_takes_over_doubles_no_row() {
    let points = write_and_sleep(None);
    assert!(points > 40, "{points} points");
    for point in 1..=points {
        write_and_sleep(Some(point));
    }
}
