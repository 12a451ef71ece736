//! A log in memory with consumer groups: the source of tests and simulations. No thread; time is tokio's.
//!
//! | file | subject |
//! | --- | --- |
//! | `topics` | topics and the logs of their partitions |
//! | `group` | who owns which partition: rebalances, sessions |
//! | `member` | [`MemorySource`]: a member of a group, as the pipeline sees it |
//!
//! What happens to topics in Kafka can be done to these: messages and offsets that are not delivered are appended,
//! retention drops the oldest, a leader that knew less cuts the end off, topics are deleted, created again under
//! another id, and given more partitions.
//!
//! Groups rebalance cooperatively: a partition that moves is revoked from its owner and assigned to the next one only
//! when the owner has released it. Two groups read the same partitions independently, as two deployments do.
//!
//! Under a [session timeout](MemoryLog::set_session_timeout) a member must call its source that often. One that does
//! not is evicted: its partitions go to others at once, and when it wakes it is told that they are revoked, joins
//! again, and is given new ones. A source that is dropped without [`close`](super::Source::close) has crashed: its
//! partitions are free after the timeout. Kafka counts the heartbeats of a thread instead, so a member that waits
//! long for its catalog, but is alive, is evicted here and not there.

mod group;
mod member;
#[cfg(test)]
mod tests;
mod topics;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use firn_table::commit::SourceIdentity;
use firn_table::ledger::TopicPartition;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::budget::Budget;
use group::Group;
pub use member::MemorySource;
use topics::Topics;

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
    topics: Topics,
    groups: BTreeMap<String, Group>,
    next_member: u64,
    session_timeout: Option<Duration>,
}

impl MemoryLog {
    /// Creates a topic under an id of its own, or adds partitions to one that is there.
    pub fn create_topic(&self, topic: &str, partitions: i32) {
        self.reshape(|state| state.topics.create(topic, partitions));
    }

    /// Removes a topic with its messages.
    pub fn delete_topic(&self, topic: &str) {
        self.reshape(|state| state.topics.delete(topic));
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
        if !self.lock().topics.has(partition) {
            self.create_topic(&partition.topic, partition.partition + 1);
        }
        self.change(|state| state.topics.push(partition, record))
    }

    /// Drops messages below `low`, as retention does: at most all that are there.
    pub fn truncate_below(&self, partition: &TopicPartition, low: i64) {
        self.change(|state| state.topics.truncate_below(partition, low));
    }

    /// Drops messages from `high` on, as a new leader does that did not have them. Other messages will take their
    /// offsets; who has read beyond `high` is told that its offset is lost.
    pub fn truncate_from(&self, partition: &TopicPartition, high: i64) {
        self.change(|state| state.topics.truncate_from(partition, high));
    }

    /// Sets the id of the cluster that sources report.
    pub fn set_cluster_id(&self, id: &str) {
        self.change(|state| state.topics.cluster_id = Some(id.to_owned()));
    }

    /// The cluster, and the topics that there are with their ids.
    #[must_use]
    pub fn identity(&self) -> SourceIdentity {
        self.lock().topics.identity()
    }

    /// How long a member may be silent before its partitions go to others. `None`, as at first: for ever.
    pub fn set_session_timeout(&self, timeout: Option<Duration>) {
        self.change(|state| state.session_timeout = timeout);
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

    /// The first offset that a partition holds.
    #[must_use]
    pub fn low(&self, partition: &TopicPartition) -> i64 {
        self.lock().topics.ends(partition).0
    }

    /// The end of a partition.
    #[must_use]
    pub fn high(&self, partition: &TopicPartition) -> i64 {
        self.lock().topics.ends(partition).1
    }

    /// Joins a group and reads topics. Nothing arrives before the first [`Source::next`](super::Source::next).
    #[must_use]
    pub fn join(&self, group: &str, topics: &[String], budget: Arc<Budget>) -> MemorySource {
        let member = self.reshape(|state| {
            state.next_member += 1;
            let member = state.next_member;
            state.groups.entry(group.to_owned()).or_default().join(member, topics, Instant::now());
            member
        });
        MemorySource::new(self.clone(), group.to_owned(), member, budget)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the sources.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.shared.changed.notify_waiters();
        result
    }

    /// Changes what there is to share out, or who shares it: the groups rebalance.
    fn reshape<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        self.change(|state| {
            let result = change(state);
            state.rebalance();
            result
        })
    }
}

impl State {
    fn rebalance(&mut self) {
        let now = Instant::now();
        for group in self.groups.values_mut() {
            group.evict_silent(now, self.session_timeout);
            group.rebalance(&self.topics);
        }
    }
}
