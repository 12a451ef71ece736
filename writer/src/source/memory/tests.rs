use tokio::time::advance;

use super::*;
use crate::source::{BoundsRequest, GroupOffsets, Position, Source, SourceEvent};

const SESSION: Duration = Duration::from_secs(10);

fn tp(partition: i32) -> TopicPartition {
    TopicPartition { topic: "t".to_owned(), partition }
}

fn log(partitions: i32) -> MemoryLog {
    let log = MemoryLog::default();
    log.create_topic("t", partitions);
    log
}

fn join(log: &MemoryLog) -> MemorySource {
    log.join("g", &["t".to_owned()], Budget::new(1 << 20))
}

fn produce(log: &MemoryLog, partition: i32, count: usize) {
    for _ in 0..count {
        log.append(&tp(partition), MemoryRecord::default());
    }
}

/// The next event; `None` where the source has nothing to say for a while.
async fn next(source: &mut MemorySource) -> Option<SourceEvent> {
    let patience = Duration::from_millis(1);
    tokio::time::timeout(patience, source.next()).await.ok().map(|event| event.unwrap())
}

/// Takes the next event, which is an assignment, and starts at the beginning.
async fn assigned(source: &mut MemorySource) -> Vec<i32> {
    let Some(SourceEvent::Assigned(partitions)) = next(source).await else { panic!("no assignment") };
    let epoch = 1;
    let at = |partition: &TopicPartition| Position { partition: partition.clone(), offset: 0, epoch };
    source.start(partitions.iter().map(at).collect());
    partitions.into_iter().map(|p| p.partition).collect()
}

async fn revoked(source: &mut MemorySource) -> Vec<i32> {
    match next(source).await {
        Some(SourceEvent::Revoked(partitions)) => partitions.into_iter().map(|p| p.partition).collect(),
        other => panic!("no revoke: {other:?}"),
    }
}

/// The next messages: partition, first offset covered, next offset, messages.
async fn messages(source: &mut MemorySource) -> (i32, i64, i64, usize) {
    loop {
        match next(source).await {
            Some(SourceEvent::End(_)) => {}
            Some(SourceEvent::Messages(all)) => {
                let [fetched] = &all[..] else { panic!("one partition at a time") };
                let partition = fetched.messages.partition().partition;
                return (partition, fetched.start, fetched.next, fetched.messages.len());
            }
            other => panic!("no messages: {other:?}"),
        }
    }
}

/// What comes instead of messages, ends aside.
async fn told(source: &mut MemorySource) -> Option<SourceEvent> {
    loop {
        match next(source).await {
            Some(SourceEvent::End(_)) => {}
            other => return other,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn holes_are_covered_and_no_messages() {
    let log = log(1);
    produce(&log, 0, 2);
    log.append_hole(&tp(0));
    produce(&log, 0, 1);
    log.append_hole(&tp(0));
    let mut source = join(&log);
    assigned(&mut source).await;
    assert_eq!(messages(&mut source).await, (0, 0, 5, 3));
}

#[tokio::test(start_paused = true)]
async fn no_partition_keeps_the_others_waiting() {
    let log = log(3);
    (0..3).for_each(|partition| produce(&log, partition, 10));
    let mut source = join(&log).with_fetch_messages(2);
    assigned(&mut source).await;
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(messages(&mut source).await.0);
        produce(&log, 0, 10);
    }
    assert_eq!(seen, [0, 1, 2, 0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn retention_drops_the_oldest_and_whoever_is_behind_has_lost_its_offset() {
    let log = log(1);
    produce(&log, 0, 10);
    let mut source = join(&log);
    assigned(&mut source).await;
    log.truncate_below(&tp(0), 4);
    assert_eq!((log.low(&tp(0)), log.high(&tp(0))), (4, 10));
    assert!(matches!(told(&mut source).await, Some(SourceEvent::OffsetLost)));
    assert!(next(&mut source).await.is_none(), "it is told once");
    source.seek(vec![Position { partition: tp(0), offset: 4, epoch: 2 }]);
    assert_eq!(messages(&mut source).await, (0, 4, 10, 6));
    log.truncate_below(&tp(0), 99);
    assert_eq!((log.low(&tp(0)), log.high(&tp(0))), (10, 10), "there is no more to drop");
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_cut_off_is_noticed_by_whoever_has_read_it_even_when_it_has_grown_again() {
    let log = log(1);
    produce(&log, 0, 10);
    let (mut behind, mut ahead) = (join(&log), log.join("other", &["t".to_owned()], Budget::new(1 << 20)));
    assigned(&mut behind).await;
    assigned(&mut ahead).await;
    assert_eq!(messages(&mut ahead).await.2, 10);
    behind.seek(vec![Position { partition: tp(0), offset: 6, epoch: 2 }]);
    log.truncate_from(&tp(0), 6);
    assert_eq!(log.high(&tp(0)), 6);
    produce(&log, 0, 20);
    assert!(matches!(told(&mut ahead).await, Some(SourceEvent::OffsetLost)));
    assert_eq!(messages(&mut behind).await, (0, 6, 26, 20));
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_is_created_again_has_another_id_and_is_not_read_on() {
    let log = log(1);
    log.set_cluster_id("c");
    produce(&log, 0, 3);
    let mut source = join(&log);
    assigned(&mut source).await;
    assert_eq!(messages(&mut source).await.2, 3);
    let before = source.identity().await.unwrap();
    assert_eq!(before.cluster_id.as_deref(), Some("c"));

    log.delete_topic("t");
    assert_eq!(revoked(&mut source).await, [0]);
    assert!(source.identity().await.unwrap().topic_ids.is_empty());
    log.create_topic("t", 1);
    produce(&log, 0, 50);
    assert!(told(&mut source).await.is_none(), "what was asked for is released first");
    source.release(vec![tp(0)]);
    assigned(&mut source).await;
    assert_eq!(messages(&mut source).await, (0, 0, 50, 50));
    assert_ne!(source.identity().await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn a_position_of_the_topic_before_is_lost() {
    let log = log(1);
    produce(&log, 0, 3);
    let mut source = join(&log);
    let Some(SourceEvent::Assigned(_)) = next(&mut source).await else { panic!("no assignment") };
    source.start(vec![Position { partition: tp(0), offset: 3, epoch: 1 }]);
    let place = log.lock().topics.get(&tp(0)).unwrap().place(3);
    log.delete_topic("t");
    log.create_topic("t", 1);
    produce(&log, 0, 5);
    assert!(log.lock().topics.get(&tp(0)).unwrap().has_lost(&place));
}

#[tokio::test(start_paused = true)]
async fn partitions_that_are_added_are_shared_out() {
    let log = log(2);
    let (mut a, mut b) = (join(&log), join(&log));
    // The first one had all until the second came.
    assert_eq!(assigned(&mut a).await, [0, 1]);
    assert_eq!(revoked(&mut a).await, [1]);
    assert!(next(&mut b).await.is_none(), "nobody has released it");
    a.release(vec![tp(1)]);
    assert_eq!(assigned(&mut b).await, [1]);
    log.create_topic("t", 4);
    assert_eq!(assigned(&mut a).await, [2]);
    assert_eq!(assigned(&mut b).await, [3]);
    b.close().await;
    assert_eq!(assigned(&mut a).await, [1, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_silent_for_too_long_loses_its_partitions_and_is_told_when_it_wakes() {
    let log = log(2);
    log.set_session_timeout(Some(SESSION));
    let (mut sleeper, mut other) = (join(&log), join(&log));
    assert_eq!(assigned(&mut sleeper).await, [0, 1]);
    assert_eq!(revoked(&mut sleeper).await, [1]);
    sleeper.release(vec![tp(1)]);
    assert_eq!(assigned(&mut other).await, [1]);

    for _ in 0..3 {
        advance(SESSION / 2).await;
        told(&mut other).await;
    }
    assert!(log.lock().groups["g"].is_evicted(1));
    sleeper.record(vec![(tp(0), 7)]);
    assert!(log.group_offsets("g").is_empty(), "it does not own the partition any more");
    assert_eq!(revoked(&mut sleeper).await, [0]);
    assert!(next(&mut sleeper).await.is_none(), "it is no member before it has released what it had");
    sleeper.release(vec![tp(0)]);
    assert!(next(&mut sleeper).await.is_none());
    let gone = revoked(&mut other).await;
    other.release(gone.iter().map(|p| tp(*p)).collect());
    assert_eq!(assigned(&mut sleeper).await, gone, "it is a member again");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_waits_for_messages_is_not_silent() {
    let log = log(1);
    log.set_session_timeout(Some(SESSION));
    let mut source = join(&log);
    assigned(&mut source).await;
    assert!(matches!(next(&mut source).await, Some(SourceEvent::End(_))));
    let waited = tokio::time::timeout(SESSION * 5, source.next()).await;
    assert!(waited.is_err(), "{waited:?}");
    produce(&log, 0, 1);
    assert_eq!(messages(&mut source).await, (0, 0, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_member_alone_is_evicted_too() {
    let log = log(1);
    log.set_session_timeout(Some(SESSION));
    let mut source = join(&log);
    assigned(&mut source).await;
    advance(SESSION * 2).await;
    assert_eq!(revoked(&mut source).await, [0]);
    source.release(vec![tp(0)]);
    assert_eq!(assigned(&mut source).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_before_the_session_ended_is_not_asked_for_again() {
    let log = log(2);
    log.set_session_timeout(Some(SESSION));
    let mut a = join(&log);
    assert_eq!(assigned(&mut a).await, [0, 1]);
    let mut b = join(&log);
    assert_eq!(revoked(&mut a).await, [1]);
    advance(SESSION * 2).await;
    assert_eq!(assigned(&mut b).await, [0, 1]);
    assert_eq!(revoked(&mut a).await, [0]);
    a.release(vec![tp(0), tp(1)]);
    assert!(next(&mut a).await.is_none());
    assert_eq!(revoked(&mut b).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn partitions_of_a_crashed_member_are_free_after_its_session() {
    let log = log(1);
    log.set_session_timeout(Some(SESSION));
    let mut crashing = join(&log);
    assigned(&mut crashing).await;
    drop(crashing);
    let mut other = join(&log);
    assert!(next(&mut other).await.is_none());
    let began = Instant::now();
    let event = tokio::time::timeout(SESSION * 3, other.next()).await.unwrap().unwrap();
    assert!(matches!(event, SourceEvent::Assigned(_)), "{event:?}");
    assert!(began.elapsed() <= SESSION + SESSION / 2);

    let without_sessions = self::log(1);
    let mut crashing = join(&without_sessions);
    assigned(&mut crashing).await;
    drop(crashing);
    assert_eq!(assigned(&mut join(&without_sessions)).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn bounds_tell_ends_group_offsets_and_times() {
    let log = log(1);
    for timestamp_ms in [10, 20, 30] {
        log.append(&tp(0), MemoryRecord { timestamp_ms, ..MemoryRecord::default() });
    }
    log.truncate_below(&tp(0), 1);
    log.set_group_offset("g", &tp(0), 2);
    let mut source = join(&log);
    let request = |timestamp_ms| BoundsRequest {
        partitions: vec![tp(0), tp(7)],
        timestamp_ms: Some(timestamp_ms),
        group: GroupOffsets::Ask,
    };
    let bounds = source.bounds(request(25)).await.unwrap();
    assert_eq!(bounds.len(), 1, "there is no partition 7");
    let found = bounds[&tp(0)];
    assert_eq!((found.low, found.high, found.group, found.at_timestamp), (1, 3, Some(2), Some(2)));
    assert_eq!(source.bounds(request(5)).await.unwrap()[&tp(0)].at_timestamp, Some(1));
    assert_eq!(source.bounds(request(31)).await.unwrap()[&tp(0)].at_timestamp, None);
}
