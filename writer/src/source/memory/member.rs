//! [`MemorySource`]: a member of a group, as the pipeline sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use firn_table::commit::SourceIdentity;
use firn_table::ledger::TopicPartition;
use tokio::time::Instant;

use super::topics::Place;
use super::{MemoryLog, State};
use crate::Result;
use crate::batch::{Headers, MessageBatch};
use crate::budget::Budget;
use crate::decode::Message;
use crate::source::{Bounds, BoundsRequest, Fetched, Position, Source, SourceEvent};

/// A member of a group of a [`MemoryLog`].
#[derive(Debug)]
pub struct MemorySource {
    log: MemoryLog,
    group: String,
    member: u64,
    budget: Arc<Budget>,
    positions: BTreeMap<TopicPartition, Reading>,
    /// The partition that was read last: the others come before it again.
    last: Option<TopicPartition>,
    /// It was told; told again only after the next start or seek.
    offset_lost: bool,
    fetch_messages: usize,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    place: Place,
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

/// Messages that were taken from the log.
struct Taken {
    messages: MessageBatch,
    before: Reading,
    next: i64,
}

/// Signs of life in a session.
const HEARTBEATS: u32 = 4;

impl MemorySource {
    pub(super) fn new(log: MemoryLog, group: String, member: u64, budget: Arc<Budget>) -> Self {
        Self {
            log,
            group,
            member,
            budget,
            positions: BTreeMap::new(),
            last: None,
            offset_lost: false,
            fetch_messages: 500,
        }
    }

    /// Messages in one fetch of one partition.
    #[must_use]
    pub fn with_fetch_messages(mut self, messages: usize) -> Self {
        self.fetch_messages = messages.max(1);
        self
    }

    /// Tells the group that this member is alive, and notices sessions that have ended.
    fn hear(&self) {
        let (now, log) = (Instant::now(), &self.log);
        let changed = {
            let state = &mut *log.lock();
            let timeout = state.session_timeout;
            state.groups.get_mut(&self.group).is_some_and(|group| group.hear(self.member, now, timeout))
        };
        if changed {
            log.reshape(|_| ());
        }
    }

    /// Ends when the next sign of life is due.
    async fn heartbeat(log: &MemoryLog) {
        let timeout = log.lock().session_timeout;
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout / HEARTBEATS).await,
            None => std::future::pending().await,
        }
    }

    fn step(&mut self) -> Step {
        let mut state = self.log.lock();
        if let Some(event) = state.groups.get_mut(&self.group).and_then(|g| g.next_event(self.member)) {
            if let SourceEvent::Revoked(partitions) = &event {
                self.positions.retain(|partition, _| !partitions.contains(partition));
            }
            return Step::Event(event);
        }
        for partition in in_turn(&self.positions, self.last.as_ref()) {
            let Some(reading) = self.positions.get_mut(&partition) else { continue };
            // What there is of a topic that was deleted is told by a rebalance.
            let Some(log) = state.topics.get(&partition) else { continue };
            if log.has_lost(&reading.place) {
                if std::mem::replace(&mut self.offset_lost, true) {
                    continue;
                }
                return Step::Event(SourceEvent::OffsetLost);
            }
            let high = log.high();
            if reading.place.next < high {
                return Step::Fetch(partition, (high - reading.place.next) as usize);
            }
            if reading.ended_at != Some(high) {
                reading.ended_at = Some(high);
                return Step::Event(SourceEvent::End(partition));
            }
        }
        Step::Wait
    }

    fn fetch(&mut self, partition: &TopicPartition) -> Option<Taken> {
        let state = self.log.lock();
        let log = state.topics.get(partition)?;
        let reading = self.positions.get_mut(partition).filter(|reading| !log.has_lost(&reading.place))?;
        let before = *reading;
        let mut messages = MessageBatch::new(partition.clone(), Headers::Keep);
        let next = &mut reading.place.next;
        while *next < log.high() && messages.len() < self.fetch_messages {
            if let Some(record) = log.record(*next) {
                messages.push_message(&Message {
                    offset: *next,
                    timestamp_ms: Some(record.timestamp_ms),
                    key: record.key.as_deref(),
                    payload: record.value.as_deref(),
                    ..Message::default()
                });
            }
            *next += 1;
        }
        let next = *next;
        self.last = Some(partition.clone());
        Some(Taken { messages, before, next })
    }

    fn place(&mut self, positions: Vec<Position>) {
        {
            let state = self.log.lock();
            for Position { partition, offset, epoch } in positions {
                if let Some(log) = state.topics.get(&partition) {
                    let reading = Reading { place: log.place(offset), epoch, ended_at: None };
                    self.positions.insert(partition, reading);
                }
            }
        }
        self.offset_lost = false;
        self.log.shared.changed.notify_waiters();
    }

    fn reshape_group(&self, change: impl FnOnce(&mut super::Group, u64)) {
        self.log.reshape(|state: &mut State| {
            if let Some(group) = state.groups.get_mut(&self.group) {
                change(group, self.member);
            }
        });
    }
}

/// Partitions in order, those first that come after the one that was read last.
fn in_turn(
    positions: &BTreeMap<TopicPartition, Reading>,
    last: Option<&TopicPartition>,
) -> Vec<TopicPartition> {
    let (before, after): (Vec<_>, Vec<_>) =
        positions.keys().cloned().partition(|p| last.is_some_and(|last| p <= last));
    after.into_iter().chain(before).collect()
}

/// Memory that is reserved for a message before it is copied.
const RESERVE_BYTES: usize = 1024;

#[async_trait]
impl Source for MemorySource {
    async fn next(&mut self) -> Result<SourceEvent> {
        let log = self.log.clone();
        loop {
            self.hear();
            let changed = log.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.step() {
                Step::Event(event) => return Ok(event),
                Step::Wait => tokio::select! {
                    biased;
                    () = changed => {}
                    () = Self::heartbeat(&log) => {}
                },
                Step::Fetch(partition, available) => {
                    let reserve = available.min(self.fetch_messages) * RESERVE_BYTES;
                    // A revoke must not wait for memory: it is what frees it.
                    let mut charge = tokio::select! {
                        biased;
                        charge = self.budget.admit(reserve) => charge,
                        () = changed => continue,
                        () = Self::heartbeat(&log) => continue,
                    };
                    let Some(Taken { messages, before, next }) = self.fetch(&partition) else { continue };
                    charge.set(messages.memory_bytes());
                    let (start, epoch) = (before.place.next, before.epoch);
                    let fetched_at = Instant::now();
                    let fetched = Fetched { messages, start, next, epoch, fetched_at, charge };
                    return Ok(SourceEvent::Messages(vec![fetched]));
                }
            }
        }
    }

    async fn identity(&mut self) -> Result<SourceIdentity> {
        self.hear();
        Ok(self.log.identity())
    }

    async fn bounds(&mut self, request: BoundsRequest) -> Result<BTreeMap<TopicPartition, Bounds>> {
        self.hear();
        let state = self.log.lock();
        let offsets = state.groups.get(&self.group).map(|g| &g.offsets);
        let bounds_of = |partition: TopicPartition| {
            let group = offsets.and_then(|o| o.get(&partition)).copied();
            let bounds = state.topics.get(&partition)?.bounds(group, request.timestamp_ms);
            Some((partition, bounds))
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
        self.reshape_group(|group, member| group.release(member, &partitions));
    }

    fn record(&mut self, offsets: Vec<(TopicPartition, i64)>) {
        if let Some(group) = self.log.lock().groups.get_mut(&self.group) {
            group.record(self.member, offsets);
        }
    }

    async fn close(&mut self) {
        self.positions.clear();
        self.reshape_group(super::Group::leave);
    }
}

/// Without [`Source::close`], a process is gone without a word: the group notices at the end of the session.
impl Drop for MemorySource {
    fn drop(&mut self) {
        let waits = self.log.lock().session_timeout.is_some();
        self.reshape_group(if waits { super::Group::lose } else { super::Group::leave });
    }
}
