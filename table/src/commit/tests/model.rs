//! A random model of the protocol: real handles against a catalog whose answers are drawn.
//!
//! Processes read offsets of two topic partitions, seal flushes and append them through their own handles. Requests
//! are applied late, applied with the reply lost, lost, refused, throttled. Processes go away in the middle of a
//! commit, come back with the same flush or start anew, share partitions, and hold later flushes. A compactor
//! replaces files, another writer appends, snapshots expire, commits are rolled back (which stops the processes; the
//! next one replays). After each step the rows in the table must be exactly
//! the offsets below the cursors, and no file that a snapshot names may be gone.

use std::collections::{BTreeMap, VecDeque};

use iceberg::TableUpdate;
use iceberg::spec::{SnapshotReference, SnapshotRetention};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::world::{Ids, World, topic_partition, writer};
use crate::commit::{CursorChange, Flush, FlushOutcome, Replace, ReplaceGroup, TableHandle};
use crate::ledger::{Ledger, Standing, WriterName, commit_record, standing, verify};
use crate::{ErrorKind, Result};

const PARTITIONS: [i32; 2] = [0, 1];

struct Process {
    handle: TableHandle,
    ids: Ids,
    position: BTreeMap<i32, i64>,
    pending: VecDeque<Flush>,
}

impl Process {
    async fn start(world: &World, seed: u64) -> Self {
        let handle = world.open().await;
        let mut process =
            Self { handle, ids: Ids::of(seed), position: BTreeMap::new(), pending: VecDeque::new() };
        let cursors = loop {
            match process.handle.standing(&writer()).await.unwrap() {
                Standing::Absent => break BTreeMap::new(),
                Standing::Current(ledger) => break ledger.cursors,
                Standing::RolledBack { ancestry, .. } => process.replay(ancestry).await,
                Standing::Missing { last_snapshot_id } => panic!("nothing covers {last_snapshot_id}"),
            }
        };
        for partition in PARTITIONS {
            let next = cursors.get(&topic_partition(partition)).map_or(0, |cursor| cursor.next);
            process.position.insert(partition, next);
        }
        process
    }

    /// What `--after-rollback replay` does: the cursors go back to what is left in the table.
    async fn replay(&mut self, ancestry: Option<Ledger>) {
        let change = CursorChange {
            commit_id: self.ids.next(),
            writer: writer(),
            cursors: ancestry.map(|ledger| ledger.cursors).unwrap_or_default(),
            source: None,
            replace_all: true,
        };
        match self.handle.set_cursors(change).await {
            Ok(_) => {}
            // A late request has landed on what was rolled back to: look again.
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
    }

    async fn read(&mut self, world: &World, random: &mut StdRng) {
        if self.pending.len() >= 3 {
            return;
        }
        let mut ranges = Vec::new();
        for partition in PARTITIONS {
            if random.random_bool(0.7) {
                let start = self.position[&partition];
                let next = start + random.random_range(1..=4);
                self.position.insert(partition, next);
                ranges.push((partition, start, next));
            }
        }
        if !ranges.is_empty() {
            // Partition 0 and partition 1 share the flush's file, as they do where rows are hashed by a key.
            let flush = world.flush_of(self.ids.next(), &ranges).await;
            self.pending.push_back(flush);
        }
    }

    /// Whether the process goes on: a rollback stops it.
    async fn commit(&mut self, random: &mut StdRng) -> bool {
        let Some(flush) = self.pending.front().cloned() else { return true };
        let mut append = Box::pin(self.handle.append(flush));
        if random.random_bool(0.15) {
            // The caller goes away somewhere in the middle; the flush stays and is tried again.
            for _ in 0..random.random_range(0..12) {
                if let Some(outcome) = futures::future::poll_immediate(&mut append).await {
                    drop(append);
                    return self.finished(outcome);
                }
            }
            return true;
        }
        let outcome = append.await;
        self.finished(outcome)
    }

    fn finished(&mut self, outcome: Result<FlushOutcome>) -> bool {
        let flush = self.pending.pop_front().unwrap();
        let cursors = match outcome {
            Ok(FlushOutcome::Committed(_)) => return true,
            Ok(FlushOutcome::Overtaken { cursors, .. }) => cursors,
            Err(error) => {
                // A rollback; or one in which what it took away expired, so that nobody knows what landed.
                let told = [ErrorKind::Ledger, ErrorKind::UnknownOutcome];
                assert!(told.contains(&error.kind()), "{error}");
                return false;
            }
        };
        let mut touched: Vec<i32> = flush.ranges.iter().map(|range| range.partition.partition).collect();
        self.pending.retain(|later| {
            let touches = later.ranges.iter().any(|range| touched.contains(&range.partition.partition));
            if touches {
                touched.extend(later.ranges.iter().map(|range| range.partition.partition));
            }
            !touches
        });
        for partition in touched {
            let known = cursors.get(&topic_partition(partition)).map(|cursor| cursor.next);
            // A partition that only a discarded later flush held is where that flush began, or where the table says.
            let table = self.handle.table();
            let ledger = Ledger::read(table.metadata().properties(), "main", &writer()).unwrap();
            let cursor =
                ledger.and_then(|ledger| ledger.cursors.get(&topic_partition(partition)).map(|c| c.next));
            self.position.insert(partition, known.or(cursor).unwrap_or(0));
        }
        true
    }
}

async fn compact(world: &World, handle: &TableHandle, ids: &mut Ids, random: &mut StdRng) {
    if world.catalog.metadata().current_snapshot().is_none() {
        return;
    }
    let planned_on = world.head();
    let mut files = world.live().await;
    files.truncate(random.random_range(2..6));
    if files.len() < 2 {
        return;
    }
    let commit_id = ids.next();
    let split = random.random_range(1..files.len());
    let mut groups = Vec::new();
    for (id, removed) in [files[..split].to_vec(), files[split..].to_vec()].into_iter().enumerate() {
        let rows = removed.iter().map(|input| input.file.record_count()).sum();
        let added = vec![world.file(&format!("{commit_id}-{id}"), rows).await];
        groups.push(ReplaceGroup { id, removed, added, applied_deletes: Vec::new(), deleted_rows: 0 });
    }
    if random.random_bool(0.3) {
        // Someone commits between plan and commit.
        other_writer(world, ids, random).await;
    }
    let replace = Replace { commit_id, planned_on, groups, summary: BTreeMap::new() };
    known_or_expired(handle.replace(replace).await);
}

/// A request without an answer after which snapshots expired: nobody knows whether it landed.
fn known_or_expired<T>(outcome: Result<T>) {
    if let Err(error) = outcome {
        assert_eq!(error.kind(), ErrorKind::UnknownOutcome, "{error}");
        assert!(error.to_string().contains("expired"), "{error}");
    }
}

async fn other_writer(world: &World, ids: &mut Ids, random: &mut StdRng) {
    let handle = world.open().await;
    let mut flush = world.flush_of(ids.next(), &[(9, 0, 1)]).await;
    flush.writer = WriterName::new(format!("other-{}", random.random::<u32>())).unwrap();
    known_or_expired(handle.append(flush).await);
}

/// Expires all snapshots but the newest few, as another process would: with the files that only they reach.
async fn expire(world: &World, random: &mut StdRng) {
    let metadata = world.catalog.metadata();
    let Some(head) = metadata.current_snapshot_id() else { return };
    let keep: i64 = random.random_range(0..3);
    let mut ids: Vec<(i64, i64)> =
        metadata.snapshots().map(|snapshot| (snapshot.sequence_number(), snapshot.snapshot_id())).collect();
    ids.sort_unstable();
    let gone = ids.len().saturating_sub(1 + usize::try_from(keep).unwrap());
    let snapshot_ids: Vec<i64> = ids[..gone].iter().map(|(_, id)| *id).filter(|id| *id != head).collect();
    world.catalog.update(vec![TableUpdate::RemoveSnapshots { snapshot_ids }]);
}

/// Takes the newest commit of the writer, or a rewrite, out of the history.
fn roll_back(world: &World) {
    let metadata = world.catalog.metadata();
    let Some(head) = metadata.current_snapshot() else { return };
    let Some(parent) = head.parent_snapshot_id().filter(|id| metadata.snapshot_by_id(*id).is_some()) else {
        return;
    };
    let record = commit_record(head);
    let undoable = record.as_ref().is_none_or(|record| record.writer == writer() && !record.sets_cursors);
    // A second rollback of what a person already decided on would need a person again.
    let standing = standing(&metadata, "main", &writer()).unwrap();
    if undoable && matches!(standing, Standing::Current(_)) {
        let reference = SnapshotReference::new(parent, SnapshotRetention::branch(None, None, None));
        world.catalog.update(vec![TableUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference }]);
    }
}

/// The rows in the table are the offsets below the cursors, once each.
async fn check(world: &World) {
    world.check().await;
    let metadata = world.catalog.metadata();
    if world.ledger().is_none() {
        return;
    }
    if let Standing::RolledBack { .. } = standing(&metadata, "main", &writer()).unwrap() {
        // Until somebody decides, nothing is committed.
        return;
    }
    let verification = verify(&metadata, "main", &writer()).unwrap();
    assert_eq!(verification.problems, Vec::<String>::new());
    let others = metadata.properties().keys().filter(|name| name.starts_with("firn.cursor.other")).count();
    assert_eq!(world.rows().await, verification.rows + others as u64, "rows in the table");
    assert_eq!(verification.offsets, verification.rows);
}

async fn run(seed: u64, steps: usize) {
    let world = World::new();
    let mut random = StdRng::seed_from_u64(seed);
    world.catalog.randomise(seed ^ 0xF1);
    let mut processes: Vec<Process> = Vec::new();
    let compactor = world.open().await;
    let mut ids = Ids::of((seed << 32) | 1 << 63);
    for step in 0..steps {
        if processes.is_empty() || (random.random_bool(0.02) && processes.len() < 3) {
            processes.push(Process::start(&world, (seed << 20) | step as u64).await);
        }
        let index = random.random_range(0..processes.len());
        match random.random_range(0..100) {
            0..40 => processes[index].read(&world, &mut random).await,
            40..83 => {
                if !processes[index].commit(&mut random).await {
                    processes.remove(index);
                }
            }
            83 => roll_back(&world),
            84..86 => {
                processes.remove(index);
            }
            86..90 => compact(&world, &compactor, &mut ids, &mut random).await,
            90..92 => other_writer(&world, &mut ids, &mut random).await,
            92..94 => expire(&world, &mut random).await,
            _ => {
                world.catalog.land_late();
            }
        }
        if step % 16 == 0 {
            check(&world).await;
        }
    }
    world.catalog.calm();
    let mut last = Process::start(&world, u64::MAX - seed).await;
    last.read(&world, &mut random).await;
    assert!(last.commit(&mut random).await, "a process that just looked goes on");
    check(&world).await;
    assert!(world.cursor(0).unwrap_or(0) + world.cursor(1).unwrap_or(0) > 0, "something was committed");
}

#[tokio::test]
async fn rows_are_the_offsets_below_the_cursors_whatever_the_catalog_does() {
    // FIRN_SEED repeats one run, FIRN_SEEDS makes more of them.
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let seeds = match number("FIRN_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FIRN_SEEDS").unwrap_or(8),
    };
    for seed in seeds {
        let outcome = tokio::spawn(run(seed, 150)).await;
        assert!(outcome.is_ok(), "seed {seed}: {outcome:?}");
    }
}
