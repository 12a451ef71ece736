//! The messages that were produced, by their place.

use std::collections::BTreeMap;
use std::ops::Range;

use firn_table::ledger::TopicPartition;

use super::super::records::{At, Content, Records};

/// What an offset was to become, and when it was produced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// What.
    pub content: Content,
    /// When.
    pub at: At,
}

/// All messages, by partition, incarnation of the topic, and offset.
#[derive(Debug, Default)]
pub struct Messages {
    taken: usize,
    by_place: BTreeMap<TopicPartition, BTreeMap<u32, BTreeMap<i64, Message>>>,
}

/// What a range of offsets is to become.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// The ids of its rows, in order of offsets.
    pub ids: Vec<i64>,
    /// Messages to be rejected.
    pub rejected: u64,
    /// Offsets that are not delivered.
    pub holes: u64,
    /// Offsets that nobody produced.
    pub unknown: u64,
}

impl Messages {
    /// Takes in what was produced since the last call.
    pub fn take(&mut self, records: &Records) {
        for produced in &records.produced[self.taken..] {
            let of_partition = self.by_place.entry(produced.partition.clone()).or_default();
            let message = Message { content: produced.content, at: produced.at };
            of_partition.entry(produced.incarnation).or_default().insert(produced.offset, message);
        }
        self.taken = records.produced.len();
    }

    /// The incarnations of a partition, newest first.
    pub fn incarnations(&self, partition: &TopicPartition) -> impl Iterator<Item = u32> + '_ {
        self.by_place.get(partition).into_iter().flat_map(|all| all.keys().rev().copied())
    }

    /// What a range is to become.
    #[must_use]
    pub fn expected(&self, partition: &TopicPartition, incarnation: u32, range: Range<i64>) -> Expected {
        let mut expected = Expected::default();
        let log = self.by_place.get(partition).and_then(|all| all.get(&incarnation));
        for offset in range {
            match log.and_then(|log| log.get(&offset)).map(|message| message.content) {
                Some(Content::Row(id)) => expected.ids.push(id),
                Some(Content::Bad) => expected.rejected += 1,
                Some(Content::Hole) => expected.holes += 1,
                None => expected.unknown += 1,
            }
        }
        expected
    }

    /// Whether a row's message is of a topic that was created again since.
    #[must_use]
    pub fn is_of_an_older_incarnation(&self, id: i64) -> bool {
        let older = self.by_place.values().flat_map(|all| all.values().rev().skip(1));
        older.flat_map(BTreeMap::values).any(|message| message.content == Content::Row(id))
    }

    /// The messages of the newest incarnation of each partition.
    pub fn newest(&self) -> impl Iterator<Item = (&TopicPartition, &BTreeMap<i64, Message>)> {
        self.by_place.iter().filter_map(|(partition, all)| Some((partition, all.values().next_back()?)))
    }

    /// When the messages of a range were produced: those of the newest incarnation that has them.
    pub fn times(&self, partition: &TopicPartition, range: Range<i64>) -> Vec<At> {
        let logs = self.by_place.get(partition).into_iter().flat_map(|all| all.values().rev());
        let mut with_range = logs.filter(|log| log.range(range.clone()).next().is_some());
        let delivered = |message: &&Message| message.content != Content::Hole;
        let log = with_range.next().into_iter().flat_map(|log| log.range(range.clone()));
        log.map(|(_, message)| message).filter(delivered).map(|message| message.at).collect()
    }
}
