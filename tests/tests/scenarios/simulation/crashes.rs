//! A crash at every point: of a writer, and of a compactor.

use std::time::Duration;

use firn_tests::sim::life::Destiny;
use firn_tests::sim::records::Role;
use firn_tests::sim::stage::{self, Stage};

use super::rewrites::compaction;

/// A writer that may crash fills the table, and another one goes on. Returns the points that the first one passed.
fn write_and_crash(crash_at: Option<u64>) -> u64 {
    let points = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
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
        seen.store(process.life().points(), std::sync::atomic::Ordering::Relaxed);
        let second = stage.writer("second", stage.plan());
        stage.produce(0, 1);
        stage.committed(0, 13).await;
        stage.committed(1, 6).await;
        second.stop().await.unwrap();
    });
    points.load(std::sync::atomic::Ordering::Relaxed)
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
    let points = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let seen = points.clone();
    stage::play(|stage: Stage| async move {
        let writer = stage.writer("writer", stage.plan());
        for file in 1..=4 {
            stage.produce(0, 5);
            stage.committed(0, 5 * file).await;
        }
        let process = stage.process(Role::Compactor, "first", Destiny { crash_at, pause_at: None });
        let ended = stage.compact(process.clone(), &compaction()).await;
        assert_eq!(ended.is_none(), crash_at.is_some());
        seen.store(process.life().points(), std::sync::atomic::Ordering::Relaxed);
        stage.produce(0, 5);
        stage.committed(0, 25).await;
        writer.stop().await.unwrap();
        let second = stage.process(Role::Compactor, "second", Destiny::default());
        stage.compact(second, &compaction()).await.unwrap().unwrap();
    });
    points.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn a_compactor_that_crashes_at_any_point_changes_no_row() {
    let points = compact_and_crash(None);
    assert!(points > 30, "{points} points");
    for point in 1..=points {
        compact_and_crash(Some(point));
    }
}
