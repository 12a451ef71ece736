//! A log in memory with consumer groups: the source of tests and simulations. No thread, no clock of its own.
//!
//! Groups rebalance cooperatively: a partition that moves is revoked from its owner and assigned to the next one only
//! when the owner has released it. Two groups read the same partitions independently, as two deployments do.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use firn_table::commit::SourceIdentity;
use firn_table::ledger::TopicPartition;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Bounds, BoundsRequest, Fetched, Position, Source, SourceEvent};
use crate::Result;
use crate::batch::{Headers, MessageBatch};
use crate::budget::Budget;
use crate::decode::Message;

/// A message in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryRecord {
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value.
    pub value: Option<Vec<u8>>,
    /// Milliseconds since the epoch.
    pub timestamp_ms: i64,
}

/// Topics and consumer groups in memory. Cheap to clone; clones share everything.
#[derive(Debug, Clone, Default)]
pub struct MemoryLog {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    identity: SourceIdentity,
    partitions: BTreeMap<TopicPartition, PartitionLog>,
    groups: BTreeMap<String, Group>,
    next_member: u64,
}

#[derive(Debug, Default)]
struct PartitionLog {
    low: i64,
    /// By offset; `None` is an offset that is not delivered.
    records: Vec<Option<MemoryRecord>>,
}

#[derive(Debug, Default)]
struct Group {
    topics: BTreeSet<String>,
    members: BTreeMap<u64, Member>,
    offsets: BTreeMap<TopicPartition, i64>,
}

#[derive(Debug, Default)]
struct Member {
    owned: BTreeSet<TopicPartition>,
    leaving: BTreeSet<TopicPartition>,
    events: VecDeque<SourceEvent>,
}

impl MemoryLog {
    /// Creates a topic, or adds partitions to it.
    pub fn create_topic(&self, topic: &str, partitions: i32) {
        self.change(|state| {
            for partition in 0..partitions {
                let key = TopicPartition { topic: topic.to_owned(), partition };
                state.partitions.entry(key).or_default();
            }
        });
    }

    /// Removes a topic with its messages.
    pub fn delete_topic(&self, topic: &str) {
        self.change(|state| state.partitions.retain(|p, _| p.topic != topic));
    }

    /// Appends a message and returns its offset. The partition is made where it is new.
    pub fn append(&self, partition: &TopicPartition, record: MemoryRecord) -> i64 {
        self.push(partition, Some(record))
    }

    /// Appends an offset that is not delivered, as a transaction marker is.
    pub fn append_hole(&self, partition: &TopicPartition) -> i64 {
        self.push(partition, None)
    }

    fn push(&self, partition: &TopicPartition, record: Option<MemoryRecord>) -> i64 {
        self.change(|state| {
            let log = state.partitions.entry(partition.clone()).or_default();
            log.records.push(record);
            log.high() - 1
        })
    }

    /// Drops messages below `low`, as retention does.
    pub fn truncate_below(&self, partition: &TopicPartition, low: i64) {
        self.change(|state| {
            if let Some(log) = state.partitions.get_mut(partition) {
                log.low = low;
            }
        });
    }

    /// Sets the identity that sources report.
    pub fn set_identity(&self, identity: SourceIdentity) {
        self.change(|state| state.identity = identity);
    }

    /// Sets a group's committed offset.
    pub fn set_group_offset(&self, group: &str, partition: &TopicPartition, offset: i64) {
        self.change(|state| {
            state.groups.entry(group.to_owned()).or_default().offsets.insert(partition.clone(), offset);
        });
    }

    /// A group's committed offsets.
    #[must_use]
    pub fn group_offsets(&self, group: &str) -> BTreeMap<TopicPartition, i64> {
        self.lock().groups.get(group).map(|g| g.offsets.clone()).unwrap_or_default()
    }

    /// The end of a partition.
    #[must_use]
    pub fn high(&self, partition: &TopicPartition) -> i64 {
        self.lock().partitions.get(partition).map_or(0, PartitionLog::high)
    }

    /// Joins a group and reads topics. Nothing arrives before the first [`Source::next`].
    #[must_use]
    pub fn join(&self, group: &str, topics: &[String], budget: Arc<Budget>) -> MemorySource {
        let member = self.change(|state| {
            state.next_member += 1;
            let member = state.next_member;
            let entry = state.groups.entry(group.to_owned()).or_default();
            entry.topics.extend(topics.iter().cloned());
            entry.members.insert(member, Member::default());
            member
        });
        MemorySource {
            log: self.clone(),
            group: group.to_owned(),
            member,
            budget,
            positions: BTreeMap::new(),
            fetch_messages: 500,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, lets the groups rebalance and wakes the sources.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = {
            let mut state = self.lock();
            let result = change(&mut state);
            let State { partitions, groups, .. } = &mut *state;
            for group in groups.values_mut() {
                group.rebalance(partitions);
            }
            result
        };
        self.shared.changed.notify_waiters();
        result
    }
}

impl PartitionLog {
    fn high(&self) -> i64 {
        self.records.len() as i64
    }
}

impl Group {
    /// Spreads partitions over members: revokes what has to move, assigns what nobody owns.
    fn rebalance(&mut self, partitions: &BTreeMap<TopicPartition, PartitionLog>) {
        let ids: Vec<u64> = self.members.keys().copied().collect();
        if ids.is_empty() {
            return;
        }
        let wanted: BTreeMap<&TopicPartition, u64> = partitions
            .keys()
            .filter(|p| self.topics.contains(&p.topic))
            .enumerate()
            .map(|(i, p)| (p, ids[i % ids.len()]))
            .collect();
        for (id, member) in &mut self.members {
            let moving: Vec<_> = member
                .owned
                .iter()
                .filter(|p| wanted.get(p) != Some(id) && !member.leaving.contains(p))
                .cloned()
                .collect();
            if !moving.is_empty() {
                member.leaving.extend(moving.iter().cloned());
                member.events.push_back(SourceEvent::Revoked(moving));
            }
        }
        let owned: BTreeSet<TopicPartition> =
            self.members.values().flat_map(|m| m.owned.iter().cloned()).collect();
        let mut gained: BTreeMap<u64, Vec<TopicPartition>> = BTreeMap::new();
        for (partition, id) in wanted {
            if !owned.contains(partition) {
                gained.entry(id).or_default().push(partition.clone());
            }
        }
        for (id, gained) in gained {
            if let Some(member) = self.members.get_mut(&id) {
                member.owned.extend(gained.iter().cloned());
                member.events.push_back(SourceEvent::Assigned(gained));
            }
        }
    }
}

/// A member of a group of a [`MemoryLog`].
#[derive(Debug)]
pub struct MemorySource {
    log: MemoryLog,
    group: String,
    member: u64,
    budget: Arc<Budget>,
    positions: BTreeMap<TopicPartition, Reading>,
    fetch_messages: usize,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    next: i64,
    epoch: u64,
    /// The end that was last reported.
    ended_at: Option<i64>,
}

/// What there is to do for a source.
enum Step {
    Event(SourceEvent),
    Fetch(TopicPartition, usize),
    Wait,
}

impl MemorySource {
    /// Messages in one fetch of one partition.
    #[must_use]
    pub fn with_fetch_messages(mut self, messages: usize) -> Self {
        self.fetch_messages = messages.max(1);
        self
    }

    fn step(&mut self) -> Step {
        let mut state = self.log.lock();
        let member = state.groups.get_mut(&self.group).and_then(|g| g.members.get_mut(&self.member));
        if let Some(event) = member.and_then(|m| m.events.pop_front()) {
            return Step::Event(event);
        }
        for (partition, reading) in &mut self.positions {
            let (low, high) = state.partitions.get(partition).map_or((0, 0), |log| (log.low, log.high()));
            if reading.next < low || reading.next > high {
                return Step::Event(SourceEvent::OffsetLost);
            }
            if reading.next < high {
                return Step::Fetch(partition.clone(), (high - reading.next) as usize);
            }
            if reading.ended_at != Some(high) {
                reading.ended_at = Some(high);
                return Step::Event(SourceEvent::End(partition.clone()));
            }
        }
        Step::Wait
    }

    fn fetch(&mut self, partition: &TopicPartition) -> Option<(MessageBatch, Reading, i64)> {
        let state = self.log.lock();
        let log = state.partitions.get(partition)?;
        let reading = self.positions.get_mut(partition)?;
        let before = *reading;
        let mut batch = MessageBatch::new(partition.clone(), Headers::Keep);
        while reading.next < log.high() && batch.len() < self.fetch_messages {
            if let Some(Some(record)) = log.records.get(reading.next as usize) {
                batch.push_message(&Message {
                    offset: reading.next,
                    timestamp_ms: Some(record.timestamp_ms),
                    key: record.key.as_deref(),
                    payload: record.value.as_deref(),
                    ..Message::default()
                });
            }
            reading.next += 1;
        }
        Some((batch, before, reading.next))
    }

    fn place(&mut self, positions: Vec<Position>) {
        for Position { partition, offset, epoch } in positions {
            self.positions.insert(partition, Reading { next: offset, epoch, ended_at: None });
        }
        self.log.shared.changed.notify_waiters();
    }
}

/// Memory that is reserved for a message before it is copied.
const RESERVE_BYTES: usize = 1024;

#[async_trait]
impl Source for MemorySource {
    async fn next(&mut self) -> Result<SourceEvent> {
        let log = self.log.clone();
        loop {
            let changed = log.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.step() {
                Step::Event(event) => return Ok(event),
                Step::Wait => changed.await,
                Step::Fetch(partition, available) => {
                    let reserve = available.min(self.fetch_messages) * RESERVE_BYTES;
                    // A revoke must not wait for memory: it is what frees it.
                    let mut charge = tokio::select! {
                        charge = self.budget.admit(reserve) => charge,
                        () = changed => continue,
                    };
                    let Some((messages, before, next)) = self.fetch(&partition) else { continue };
                    charge.set(messages.memory_bytes());
                    let (start, epoch) = (before.next, before.epoch);
                    let fetched_at = Instant::now();
                    let fetched = Fetched { messages, start, next, epoch, fetched_at, charge };
                    return Ok(SourceEvent::Messages(vec![fetched]));
                }
            }
        }
    }

    async fn identity(&mut self) -> Result<SourceIdentity> {
        Ok(self.log.lock().identity.clone())
    }

    async fn bounds(&mut self, request: BoundsRequest) -> Result<BTreeMap<TopicPartition, Bounds>> {
        let state = self.log.lock();
        let offsets = state.groups.get(&self.group).map(|g| &g.offsets);
        let bounds_of = |partition: TopicPartition| {
            let log = state.partitions.get(&partition)?;
            let group = offsets.and_then(|o| o.get(&partition)).copied();
            let at_timestamp = request.timestamp_ms.and_then(|at| {
                let found = log.records.iter().position(|r| r.as_ref().is_some_and(|r| r.timestamp_ms >= at));
                found.map(|offset| (offset as i64).max(log.low))
            });
            Some((partition, Bounds { low: log.low, high: log.high(), group, at_timestamp }))
        };
        Ok(request.partitions.into_iter().filter_map(bounds_of).collect())
    }

    fn start(&mut self, positions: Vec<Position>) {
        self.place(positions);
    }

    fn seek(&mut self, positions: Vec<Position>) {
        self.place(positions);
    }

    fn release(&mut self, partitions: Vec<TopicPartition>) {
        self.positions.retain(|p, _| !partitions.contains(p));
        let (group, id) = (self.group.clone(), self.member);
        self.log.change(|state| {
            if let Some(member) = state.groups.get_mut(&group).and_then(|g| g.members.get_mut(&id)) {
                for partition in &partitions {
                    member.owned.remove(partition);
                    member.leaving.remove(partition);
                }
            }
        });
    }

    fn record(&mut self, offsets: Vec<(TopicPartition, i64)>) {
        let mut state = self.log.lock();
        if let Some(group) = state.groups.get_mut(&self.group) {
            group.offsets.extend(offsets);
        }
    }

    async fn close(&mut self) {
        self.positions.clear();
        let (group, id) = (self.group.clone(), self.member);
        self.log.change(|state| {
            if let Some(group) = state.groups.get_mut(&group) {
                group.members.remove(&id);
            }
        });
    }
}

impl Drop for MemorySource {
    fn drop(&mut self) {
        let (group, id) = (self.group.clone(), self.member);
        self.log.change(|state| {
            if let Some(group) = state.groups.get_mut(&group) {
                group.members.remove(&id);
            }
        });
    }
}
