//! Where messages come from, as the pipeline sees it.
//!
//! A source hands over topic partitions and takes them back, as a consumer group does, and each such step waits for
//! the pipeline's answer:
//!
//! ```text
//! Assigned(partitions)  → the pipeline asks the table, then Source::start(positions)
//! Messages(fetched)       in offset order for each topic partition, tagged with the epoch of its last start or seek
//! Revoked(partitions)   → the pipeline commits or discards what it holds, then Source::release(partitions)
//! ```
//!
//! [`KafkaSource`](crate::kafka::source::KafkaSource) reads Kafka; [`memory`] is a log in memory with the same rules.

pub mod memory;

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use firn_table::commit::SourceIdentity;
use firn_table::ledger::TopicPartition;
use tokio::time::Instant;

use crate::Result;
use crate::batch::MessageBatch;
use crate::budget::Charge;

/// A source of messages.
#[async_trait]
pub trait Source: fmt::Debug + Send {
    /// The next event. Safe to cancel: an event is either returned or still there. An error ends the source.
    async fn next(&mut self) -> Result<SourceEvent>;

    /// Which cluster and topics these are.
    async fn identity(&mut self) -> Result<SourceIdentity>;

    /// The offsets that the source holds of each partition, and where `start` would begin.
    async fn bounds(&mut self, request: BoundsRequest) -> Result<BTreeMap<TopicPartition, Bounds>>;

    /// Answers [`SourceEvent::Assigned`]: messages follow from these positions. An empty list is an answer too.
    fn start(&mut self, positions: Vec<Position>);

    /// Goes to other positions in partitions that are assigned. Messages of earlier epochs may still arrive.
    fn seek(&mut self, positions: Vec<Position>);

    /// Answers [`SourceEvent::Revoked`].
    fn release(&mut self, partitions: Vec<TopicPartition>);

    /// Tells the consumer group how far the table is. For dashboards; a failure is logged, nothing more.
    fn record(&mut self, offsets: Vec<(TopicPartition, i64)>);

    /// Leaves the group and ends.
    async fn close(&mut self);
}

/// Something from a source.
#[derive(Debug)]
pub enum SourceEvent {
    /// Partitions were handed over; nothing comes from them before [`Source::start`].
    Assigned(Vec<TopicPartition>),
    /// Partitions are to be given up; others wait for them until [`Source::release`].
    Revoked(Vec<TopicPartition>),
    /// Messages.
    Messages(Vec<Fetched>),
    /// Everything up to the end of a partition has been handed over, whatever its next offset.
    End(TopicPartition),
    /// The offset that was asked for is not there: the topic's retention was faster, or it was re-created.
    OffsetLost,
    /// A passing trouble, for the log.
    Trouble(String),
}

/// Messages of one topic partition with the offsets that they cover.
#[derive(Debug)]
pub struct Fetched {
    /// The messages; may be empty where only holes were passed.
    pub messages: MessageBatch,
    /// The first offset covered: where the one before it ended.
    pub start: i64,
    /// The first offset after it. Offsets in between that are no message are holes.
    pub next: i64,
    /// The epoch of the partition's last start or seek.
    pub epoch: u64,
    /// When the first message was taken from the source.
    pub fetched_at: Instant,
    /// The memory held.
    pub charge: Charge,
}

/// Where to read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The topic partition.
    pub partition: TopicPartition,
    /// The next offset.
    pub offset: i64,
    /// The epoch with which messages from here on are tagged.
    pub epoch: u64,
}

/// A question about offsets.
#[derive(Debug, Clone)]
pub struct BoundsRequest {
    /// Of which partitions.
    pub partitions: Vec<TopicPartition>,
    /// Look up the first offset of this time or later as well. Milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
    /// Look up the group's committed offsets as well.
    pub group: GroupOffsets,
}

/// Whether the group's offsets are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupOffsets {
    /// They are.
    Ask,
    /// They are not.
    Ignore,
}

/// The offsets that a source holds of one partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The oldest.
    pub low: i64,
    /// That of the next message.
    pub high: i64,
    /// The group's committed offset.
    pub group: Option<i64>,
    /// The first offset of the time that was asked for; `None` where all messages are older.
    pub at_timestamp: Option<i64>,
}
