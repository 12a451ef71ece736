//! A consumer group: who owns which partition.
//!
//! ```text
//! join ─▶ Member ──silent for too long──▶ Evicted ──wakes, has released all──▶ Member
//!            └──dropped─▶ Gone ──session timeout──▶ removed
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use firn_table::ledger::TopicPartition;
use tokio::time::Instant;

use super::topics::Topics;
use crate::source::SourceEvent;

type Partitions = BTreeSet<TopicPartition>;

#[derive(Debug, Default)]
pub(super) struct Group {
    topics: BTreeSet<String>,
    members: BTreeMap<u64, Member>,
    pub(super) offsets: BTreeMap<TopicPartition, i64>,
}

#[derive(Debug)]
struct Member {
    standing: Standing,
    last_seen: Instant,
    /// What nobody else is given.
    owned: Partitions,
    /// What of it has to go: the member was asked for it, or will be at its next call.
    leaving: Partitions,
    /// What the member was told to have, and has not released.
    held: Partitions,
    /// What of it the member was asked for.
    asked: Partitions,
    events: VecDeque<SourceEvent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Member,
    /// Its session ended and it does not know yet, or has not released everything.
    Evicted,
    /// Its process is gone, which the group does not know yet.
    Gone,
}

impl Group {
    pub(super) fn join(&mut self, id: u64, topics: &[String], now: Instant) {
        self.topics.extend(topics.iter().cloned());
        let member = Member {
            standing: Standing::Member,
            last_seen: now,
            owned: Partitions::new(),
            leaving: Partitions::new(),
            held: Partitions::new(),
            asked: Partitions::new(),
            events: VecDeque::new(),
        };
        self.members.insert(id, member);
    }

    pub(super) fn leave(&mut self, id: u64) {
        self.members.remove(&id);
    }

    /// A member's process is gone without a word.
    pub(super) fn lose(&mut self, id: u64) {
        if let Some(member) = self.members.get_mut(&id) {
            member.standing = Standing::Gone;
        }
    }

    /// A sign of life of a member. Returns whether the group has changed by it.
    pub(super) fn hear(&mut self, id: u64, now: Instant, timeout: Option<Duration>) -> bool {
        let mut changed = self.evict_silent(now, timeout);
        let Some(member) = self.members.get_mut(&id) else { return changed };
        member.last_seen = now;
        if member.standing == Standing::Evicted && member.held.is_empty() {
            member.standing = Standing::Member;
            changed = true;
        }
        changed
    }

    /// Evicts members that were silent for longer than `timeout`. Returns whether there were any.
    pub(super) fn evict_silent(&mut self, now: Instant, timeout: Option<Duration>) -> bool {
        let Some(timeout) = timeout else { return false };
        let is_silent = |member: &Member| {
            member.standing != Standing::Evicted && now.saturating_duration_since(member.last_seen) > timeout
        };
        let silent: Vec<u64> =
            self.members.iter().filter(|(_, member)| is_silent(member)).map(|(id, _)| *id).collect();
        for id in &silent {
            match self.members.get_mut(id) {
                Some(member) if member.standing == Standing::Member => member.evict(),
                _ => self.leave(*id),
            }
        }
        !silent.is_empty()
    }

    /// The next event of a member.
    pub(super) fn next_event(&mut self, id: u64) -> Option<SourceEvent> {
        let member = self.members.get_mut(&id)?;
        let event = member.events.pop_front()?;
        match &event {
            SourceEvent::Assigned(partitions) => member.held.extend(partitions.iter().cloned()),
            SourceEvent::Revoked(partitions) => member.asked.extend(partitions.iter().cloned()),
            _ => {}
        }
        Some(event)
    }

    /// A member has given partitions up.
    pub(super) fn release(&mut self, id: u64, partitions: &[TopicPartition]) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let Member { owned, leaving, held, asked, .. } = member;
        for set in [owned, leaving, held, asked] {
            set.retain(|partition| !partitions.contains(partition));
        }
    }

    /// Records offsets; those of partitions that the member does not own are refused.
    pub(super) fn record(&mut self, id: u64, offsets: Vec<(TopicPartition, i64)>) {
        let Some(member) = self.members.get(&id) else { return };
        self.offsets.extend(offsets.into_iter().filter(|(partition, _)| member.owned.contains(partition)));
    }

    /// Spreads partitions over members: revokes what has to move, assigns what nobody owns.
    pub(super) fn rebalance(&mut self, topics: &Topics) {
        let active = self.members.iter().filter(|(_, member)| member.standing != Standing::Evicted);
        let ids: Vec<u64> = active.map(|(id, _)| *id).collect();
        if ids.is_empty() {
            return;
        }
        let shared = topics.partitions().filter(|p| self.topics.contains(&p.topic));
        let wanted: BTreeMap<&TopicPartition, u64> =
            shared.enumerate().map(|(i, p)| (p, ids[i % ids.len()])).collect();
        for (id, member) in &mut self.members {
            member.ask_for(|partition| wanted.get(partition) != Some(id));
        }
        let owned: Partitions = self.members.values().flat_map(|m| m.owned.iter().cloned()).collect();
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

#[cfg(test)]
impl Group {
    pub(super) fn is_evicted(&self, id: u64) -> bool {
        self.members.get(&id).is_some_and(|member| member.standing == Standing::Evicted)
    }
}

impl Member {
    /// Asks for the partitions that have to go.
    fn ask_for(&mut self, goes: impl Fn(&TopicPartition) -> bool) {
        let moving: Vec<_> =
            self.owned.iter().filter(|p| goes(p) && !self.leaving.contains(p)).cloned().collect();
        if !moving.is_empty() {
            self.leaving.extend(moving.iter().cloned());
            self.events.push_back(SourceEvent::Revoked(moving));
        }
    }

    /// Ends the session: everything is free for others. What the member believes to have it is told at its next call.
    fn evict(&mut self) {
        self.standing = Standing::Evicted;
        self.owned.clear();
        self.leaving.clear();
        self.events.clear();
        let lost: Vec<_> = self.held.difference(&self.asked).cloned().collect();
        if !lost.is_empty() {
            self.events.push_back(SourceEvent::Revoked(lost));
        }
    }
}
