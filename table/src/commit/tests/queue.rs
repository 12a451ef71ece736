//! Many callers at once.

use super::world::{Ids, World, committed};
use crate::ledger::WriterName;

/// One request is in flight per table, branch and process; commits land in the order in which they came.
#[tokio::test]
async fn commits_of_one_handle_pass_one_at_a_time_in_order() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let mut appends = Vec::new();
    for n in 0..20 {
        let mut flush = world.flush(ids.next(), 0, n + 1).await;
        flush.writer = WriterName::new(format!("w{n}")).unwrap();
        appends.push(handle.append(flush));
    }
    let outcomes = futures::future::join_all(appends).await;
    let numbers: Vec<i64> =
        outcomes.into_iter().map(|outcome| committed(outcome.unwrap()).sequence_number).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    assert_eq!(world.catalog.most_in_flight(), 1);
    assert_eq!(world.rows().await, (1..=20).sum::<u64>());
}

/// K9, in small: eight processes of one name on one table, each with its own partition.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_processes_on_eight_partitions_lose_and_double_nothing() {
    const APPENDS: i64 = 25;
    let world = std::sync::Arc::new(World::new());
    let mut tasks = Vec::new();
    for partition in 0..8 {
        let world = world.clone();
        tasks.push(tokio::spawn(async move {
            let handle = world.open().await;
            let mut ids = Ids::new();
            for at in 0..APPENDS {
                let flush = world.flush_of(ids.next(), &[(partition, at * 3, at * 3 + 3)]).await;
                committed(handle.append(flush).await.unwrap());
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(world.catalog.metadata().snapshots().len(), 8 * 25);
    assert_eq!(world.rows().await, 8 * 25 * 3);
    for partition in 0..8 {
        assert_eq!(world.cursor(partition), Some(3 * APPENDS));
    }
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}
