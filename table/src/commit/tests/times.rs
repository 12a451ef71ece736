//! Where a commit's time went, on a paused clock.

use std::time::Duration;

use super::catalog::Fate;
use super::world::{Ids, World, committed, fast};
use crate::commit::{CommitLimits, CommitTimes};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn requests_without_an_answer_are_time_of_the_catalog() {
    let world = World::new();
    let limits = CommitLimits { request_timeout: 3 * SECOND, ..fast() };
    let handle = world.open().await.with_limits(limits);
    world.catalog.script([Fate::Hangs, Fate::Hangs]);
    let done = committed(handle.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap());
    assert_eq!(done.times, CommitTimes { catalog: 6 * SECOND, ..CommitTimes::default() });
    assert_eq!(done.elapsed, 6 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn waits_between_attempts_are_time_of_retries() {
    let world = World::new();
    let limits = CommitLimits { min_wait: SECOND, max_wait: SECOND, ..fast() };
    let handle = world.open().await.with_limits(limits);
    world.catalog.script([Fate::Dropped, Fate::Dropped]);
    let done = committed(handle.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap());
    assert!(done.times.retry > Duration::ZERO);
    assert_eq!(done.times, CommitTimes { retry: done.elapsed, ..CommitTimes::default() });
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_another_commit_tells_the_time_until_its_turn() {
    let world = World::new();
    let limits = CommitLimits { request_timeout: 3 * SECOND, ..fast() };
    let handle = world.open().await.with_limits(limits);
    let mut ids = Ids::new();
    world.catalog.script([Fate::HangsApplied]);
    let first = world.flush(ids.next(), 0, 10).await;
    let second = world.flush(ids.next(), 10, 12).await;
    let (first, second) = tokio::join!(handle.append(first), handle.append(second));
    assert_eq!(
        committed(first.unwrap()).times,
        CommitTimes { catalog: 3 * SECOND, ..CommitTimes::default() }
    );
    assert_eq!(committed(second.unwrap()).times, CommitTimes { turn: 3 * SECOND, ..CommitTimes::default() });
}
