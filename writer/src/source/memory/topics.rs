//! Topics and the logs of their partitions.

use std::collections::{BTreeMap, VecDeque};

use firn_table::commit::SourceIdentity;
use firn_table::ledger::TopicPartition;

use super::MemoryRecord;
use crate::source::Bounds;

/// All topics of the cluster.
#[derive(Debug, Default)]
pub(super) struct Topics {
    pub(super) cluster_id: Option<String>,
    partitions: BTreeMap<TopicPartition, PartitionLog>,
    /// The incarnation of each topic.
    incarnations: BTreeMap<String, u64>,
    last_incarnation: u64,
}

/// The log of one partition.
#[derive(Debug, Default)]
pub(super) struct PartitionLog {
    incarnation: u64,
    low: i64,
    /// From `low` on; `None` is an offset that is not delivered.
    records: VecDeque<Option<MemoryRecord>>,
    /// Where the end was cut off, in order of time.
    cuts: Vec<i64>,
}

/// Where a reader stands in a log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) next: i64,
    /// The incarnation of the topic that is read.
    incarnation: u64,
    /// The cuts that were made before the reader came.
    cuts: usize,
}

impl Topics {
    pub(super) fn create(&mut self, topic: &str, partitions: i32) {
        let incarnation = *self.incarnations.entry(topic.to_owned()).or_insert_with(|| {
            self.last_incarnation += 1;
            self.last_incarnation
        });
        for partition in 0..partitions {
            let key = TopicPartition { topic: topic.to_owned(), partition };
            let new = || PartitionLog { incarnation, ..PartitionLog::default() };
            self.partitions.entry(key).or_insert_with(new);
        }
    }

    pub(super) fn delete(&mut self, topic: &str) {
        self.partitions.retain(|partition, _| partition.topic != topic);
        self.incarnations.remove(topic);
    }

    pub(super) fn has(&self, partition: &TopicPartition) -> bool {
        self.partitions.contains_key(partition)
    }

    pub(super) fn get(&self, partition: &TopicPartition) -> Option<&PartitionLog> {
        self.partitions.get(partition)
    }

    pub(super) fn partitions(&self) -> impl Iterator<Item = &TopicPartition> {
        self.partitions.keys()
    }

    pub(super) fn push(&mut self, partition: &TopicPartition, record: Option<MemoryRecord>) -> i64 {
        let log = self.partitions.entry(partition.clone()).or_default();
        log.records.push_back(record);
        log.high() - 1
    }

    pub(super) fn truncate_below(&mut self, partition: &TopicPartition, low: i64) {
        let Some(log) = self.partitions.get_mut(partition) else { return };
        let dropped = low.clamp(log.low, log.high()) - log.low;
        log.records.drain(..usize::try_from(dropped).unwrap_or(0));
        log.low += dropped;
    }

    pub(super) fn truncate_from(&mut self, partition: &TopicPartition, high: i64) {
        let Some(log) = self.partitions.get_mut(partition) else { return };
        let kept = high.clamp(log.low, log.high()) - log.low;
        log.records.truncate(usize::try_from(kept).unwrap_or(0));
        log.cuts.push(log.high());
    }

    /// The first offset of a partition and its end; zeros where there is none.
    pub(super) fn ends(&self, partition: &TopicPartition) -> (i64, i64) {
        self.get(partition).map_or((0, 0), |log| (log.low, log.high()))
    }

    pub(super) fn identity(&self) -> SourceIdentity {
        let id = |(topic, incarnation): (&String, &u64)| (topic.clone(), format!("{topic}.{incarnation}"));
        SourceIdentity {
            cluster_id: self.cluster_id.clone(),
            topic_ids: self.incarnations.iter().map(id).collect(),
        }
    }
}

impl PartitionLog {
    pub(super) fn high(&self) -> i64 {
        self.low + self.records.len() as i64
    }

    /// The message at an offset; `None` where there is none.
    pub(super) fn record(&self, offset: i64) -> Option<&MemoryRecord> {
        self.records.get(usize::try_from(offset - self.low).ok()?)?.as_ref()
    }

    pub(super) fn bounds(&self, group: Option<i64>, timestamp_ms: Option<i64>) -> Bounds {
        let at_timestamp = timestamp_ms.and_then(|at| {
            let is_later = |r: &Option<MemoryRecord>| r.as_ref().is_some_and(|r| r.timestamp_ms >= at);
            self.records.iter().position(is_later).map(|index| self.low + index as i64)
        });
        Bounds { low: self.low, high: self.high(), group, at_timestamp }
    }

    /// Where a reader stands that begins at `next`.
    pub(super) fn place(&self, next: i64) -> Place {
        Place { next, incarnation: self.incarnation, cuts: self.cuts.len() }
    }

    /// Whether the log does not have what comes next for a reader, or would give it other messages than those that
    /// follow what it has read.
    pub(super) fn has_lost(&self, place: &Place) -> bool {
        let cut_off = self.cuts.iter().skip(place.cuts).any(|cut| *cut < place.next);
        let recreated = place.incarnation != self.incarnation;
        recreated || cut_off || place.next < self.low || place.next > self.high()
    }
}
