//! Claims, and the dead letters that are appended under them.

use super::world::{Ids, World, committed, overtaken, range, topic_partition, writer};
use crate::commit::{Claim, Flush, SourceIdentity};
use crate::ledger::{Claims, CommitId, OffsetRange, verify};

fn claim(commit_id: CommitId, partitions: &[i32]) -> Claim {
    let partitions = partitions.iter().copied().map(topic_partition).collect();
    Claim { commit_id, writer: writer(), partitions, source: SourceIdentity::default() }
}

/// A flush of dead letters that were found in `[start, next)`.
async fn letters(world: &World, id: CommitId, (start, next): (i64, i64), found: u64) -> Flush {
    let ranges =
        vec![OffsetRange { rows: found, holes: (next - start) as u64 - found, ..range(0, start, next) }];
    let files = vec![world.file(&format!("letters-{id}"), found).await];
    Flush { ranges, files, ..world.flush(id, start, next).await }
}

#[tokio::test]
async fn a_flush_under_an_older_claim_is_overtaken_though_the_cursor_stands_still() {
    let world = World::new();
    let (a, b) = (world.open().await, world.open().await);
    let (mut of_a, mut of_b) = (Ids::new(), Ids::new());
    let (held, _) = a.claim(claim(of_a.next(), &[0, 1])).await.unwrap();
    committed(a.append_claimed(world.flush(of_a.next(), 0, 10).await, held.clone()).await.unwrap());
    let (newer, after) = b.claim(claim(of_b.next(), &[0])).await.unwrap();
    assert_eq!(after.table.metadata().current_snapshot_id(), Some(world.head()));
    let cursors =
        overtaken(a.append_claimed(world.flush(of_a.next(), 10, 20).await, held.clone()).await.unwrap());
    assert_eq!(cursors[&topic_partition(0)], 10);
    committed(a.append_claimed(world.flush_of(of_a.next(), &[(1, 0, 5)]).await, held).await.unwrap());
    committed(b.append_claimed(world.flush(of_b.next(), 10, 20).await, newer).await.unwrap());
    assert_eq!((world.cursor(0), world.cursor(1), world.rows().await), (Some(20), Some(5), 25));
    let verification = verify(&world.catalog.metadata(), "main", &writer()).unwrap();
    assert_eq!(verification.problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_flush_without_any_claim_in_the_table_is_overtaken() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let outcome =
        handle.append_claimed(world.flush(ids.next(), 0, 10).await, Claims::default()).await.unwrap();
    assert!(overtaken(outcome).is_empty());
    assert_eq!(world.ledger(), None);
}

#[tokio::test]
async fn dead_letters_before_the_cursor_are_counted_and_move_nothing() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let (held, _) = handle.claim(claim(ids.next(), &[0])).await.unwrap();
    let mut cursors = Vec::new();
    for (offsets, found) in [((100, 200), 3), ((500, 600), 1), ((120, 180), 2)] {
        let flush = letters(&world, ids.next(), offsets, found).await;
        committed(handle.append_letters(flush, held.clone()).await.unwrap());
        let cursor = world.ledger().unwrap().cursors[&topic_partition(0)].clone();
        cursors.push((cursor.start, cursor.next, cursor.rows, cursor.holes));
    }
    assert_eq!(cursors, [(100, 200, 3, 97), (100, 600, 4, 496), (100, 600, 6, 494)]);
    let verification = verify(&world.catalog.metadata(), "main", &writer()).unwrap();
    assert_eq!((verification.problems, verification.commits_without_ranges), (Vec::new(), 3));

    handle.claim(claim(ids.next(), &[0])).await.unwrap();
    let late = letters(&world, ids.next(), (600, 700), 1).await;
    assert_eq!(overtaken(handle.append_letters(late, held).await.unwrap())[&topic_partition(0)], 600);
}

#[tokio::test]
async fn dead_letters_of_a_topic_that_was_created_again_begin_anew() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let (held, _) = handle.claim(claim(ids.next(), &[0])).await.unwrap();
    for (topic_id, offsets, expected) in [("old", (100, 200), (100, 200, 3)), ("new", (0, 10), (0, 10, 3))] {
        let mut flush = letters(&world, ids.next(), offsets, 3).await;
        flush.source.topic_ids.insert("events".to_owned(), topic_id.to_owned());
        committed(handle.append_letters(flush, held.clone()).await.unwrap());
        let cursor = world.ledger().unwrap().cursors[&topic_partition(0)].clone();
        assert_eq!((cursor.start, cursor.next, cursor.rows), expected);
    }
}
