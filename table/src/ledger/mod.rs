//! The record, in the table itself, of which Kafka offsets each commit holds, and the fence built on it.
//!
//! The property `firn.cursor.<writer>` (`firn.cursor.<branch>.<writer>` off `main`) is set in the same metadata
//! update that adds the snapshot. It is cumulative: it survives expiry, foreign commits and a lost consumer group.
//! The snapshot's summary names the writer, the commit id, and, up to 64 partitions, the ranges of that commit.
//!
//! | file | what it decides |
//! | --- | --- |
//! | `property` | how a [`Ledger`] is written into the property, and read back |
//! | `record` | how a commit describes itself in its snapshot's summary: [`CommitRecord`] |
//! | `replayed` | which dead letters became rows after all: [`Replayed`] |
//! | `standing` | whether the ledger is that of the head's ancestry: [`standing`] |
//! | `claims` | which process may go on from a cursor, where dead letters are written beside the rows: [`Claims`] |
//! | `fence` | whether a flush may be committed on a base, and the ledger after it |
//! | `verify` | whether offsets are contiguous, from the table alone: [`verify`] |
//!
//! Everything here is pure: no I/O, no clock.

mod claims;
mod fence;
mod property;
mod record;
mod replayed;
mod standing;
#[cfg(test)]
mod tests;
mod verify;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Error, ErrorKind, Result};

pub use claims::Claims;
pub(crate) use claims::claim_property;
pub(crate) use fence::{Advance, Fenced, fence, take_letters};
pub(crate) use property::PREFIX;
pub use property::property_name;
pub use record::CommitRecord;
pub use replayed::Replayed;
pub(crate) use replayed::replayed_property;
pub use standing::standing;
pub(crate) use standing::{ancestors, commit_record};
pub use verify::{Verification, verify};

/// The name under which the processes of one deployment share cursors: letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WriterName(String);

impl WriterName {
    /// Checks and takes a name: 1 to 64 letters, digits, `-` and `_`.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!("writer name `{name}` is not allowed: use 1 to 64 letters, digits, `-` and `_`"),
            ));
        }
        Ok(Self(name))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WriterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for WriterName {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        Self::new(name)
    }
}

impl From<WriterName> for String {
    fn from(name: WriterName) -> Self {
        name.0
    }
}

/// A Kafka topic partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TopicPartition {
    /// The topic.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.topic, self.partition)
    }
}

/// Identifies a sealed commit: the instance (UUIDv7, one per process start) and a counter in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId {
    /// The process that sealed it.
    pub instance: Uuid,
    /// The number of the commit in that process.
    pub counter: u64,
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.instance, self.counter)
    }
}

impl FromStr for CommitId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (instance, counter) = text.rsplit_once('-')?;
            Some(Self { instance: Uuid::parse_str(instance).ok()?, counter: counter.parse().ok()? })
        };
        parse().ok_or_else(|| {
            Error::new(
                ErrorKind::Ledger,
                format!("commit id `{text}` is not a UUID, a dash and a number: who wrote it was not firn"),
            )
        })
    }
}

impl CommitId {
    /// The id of the snapshot that this commit adds: random, positive, and the same in every attempt, also of a
    /// later call with the same commit, so that a commit that landed is recognised and cannot land twice.
    #[must_use]
    pub fn snapshot_id(self) -> i64 {
        let (high, low) = self.instance.as_u64_pair();
        let mixed = mix(mix(mix(high) ^ low) ^ self.counter) >> 1;
        i64::try_from(mixed).unwrap_or(i64::MAX).max(1)
    }
}

/// The finaliser of SplitMix64: a bijection in which each bit of the input moves half of the output's bits.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// What a writer promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guarantee {
    /// Each message is in the table once: the fence decides.
    #[default]
    ExactlyOnce,
    /// Each message is in the table at least once.
    AtLeastOnce,
}

/// The Kafka cluster and topics that a writer reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceIdentity {
    /// The cluster's id, where the broker tells it.
    pub cluster_id: Option<String>,
    /// Topic ids by topic, where the broker tells them.
    pub topic_ids: BTreeMap<String, String>,
}

/// The half-open range `[start, next)` of offsets of one topic partition that a flush holds.
/// Always `rows + rejected + holes == next - start`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetRange {
    /// The topic partition.
    pub partition: TopicPartition,
    /// The first offset.
    pub start: i64,
    /// The first offset after the range.
    pub next: i64,
    /// Messages that became rows.
    pub rows: u64,
    /// Messages that were rejected and counted.
    pub rejected: u64,
    /// Offsets that Kafka itself does not deliver: transaction markers, compacted or aborted records.
    pub holes: u64,
}

impl OffsetRange {
    /// Offsets in the range.
    #[must_use]
    pub fn len(&self) -> u64 {
        u64::try_from(self.next.saturating_sub(self.start)).unwrap_or(0)
    }

    /// Whether it holds no offset.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether rows, rejected messages and holes account for every offset.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.next >= self.start && self.rows + self.rejected + self.holes == self.len()
    }
}

/// The cursor of one topic partition, cumulative since `start`.
/// Always `rows + rejected + holes + gaps == next - start`; under [`Guarantee::AtLeastOnce`] it may be more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The first offset that was ever taken.
    pub start: i64,
    /// The next offset that is not yet in the table.
    pub next: i64,
    /// Rows in the table.
    pub rows: u64,
    /// Messages rejected and counted.
    pub rejected: u64,
    /// Offsets that Kafka does not deliver.
    pub holes: u64,
    /// Offsets that were lost to the topic's retention and recorded (`--on-gap record`).
    pub gaps: u64,
}

impl Cursor {
    /// The cursor of a partition of which nothing was taken yet.
    #[must_use]
    pub fn starting_at(start: i64) -> Self {
        Self { start, next: start, rows: 0, rejected: 0, holes: 0, gaps: 0 }
    }

    /// Offsets between `start` and `next`.
    #[must_use]
    pub fn covered(&self) -> u64 {
        u64::try_from(self.next.saturating_sub(self.start)).unwrap_or(0)
    }

    /// Offsets that the counts account for.
    #[must_use]
    pub fn accounted(&self) -> u64 {
        self.rows + self.rejected + self.holes + self.gaps
    }
}

/// All cursors of one writer name on one branch, as the property holds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// The commit that wrote it.
    pub commit_id: CommitId,
    /// The snapshot that was added with it.
    pub snapshot_id: i64,
    /// That snapshot's sequence number: tells an ancestor that was expired from one that never was an ancestor.
    pub sequence_number: i64,
    /// What its writer promised; once at least once, always at least once.
    pub guarantee: Guarantee,
    /// The Kafka cluster's id, where the broker tells it.
    pub cluster_id: Option<String>,
    /// The topics' ids (as Kafka prints them), where the broker tells them.
    pub topic_ids: BTreeMap<String, String>,
    /// The cursors.
    pub cursors: BTreeMap<TopicPartition, Cursor>,
}

/// What the table says about a writer when it starts or resumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The table never saw this writer on this branch.
    Absent,
    /// The ledger is that of the head's ancestry: go on from its cursors.
    Current(Ledger),
    /// The snapshot that the ledger names is not an ancestor of the head: someone rolled back or replaced the table.
    RolledBack {
        /// What the property says.
        ledger: Ledger,
        /// What the newest commit of this writer in the head's ancestry covers, where one is left.
        ancestry: Option<Ledger>,
        /// Partitions of which the history that is left does not tell how far it covers them: its commits are
        /// expired, or do not name their ranges. They cannot be replayed without a person's word.
        unknown: Vec<TopicPartition>,
    },
    /// The ancestry has commits of this writer that no ledger of this branch covers: the property is absent (the
    /// catalog dropped it, someone unset it), or another branch with later commits was fast-forwarded into this one.
    Missing {
        /// The newest commit of this writer in the ancestry.
        last_snapshot_id: i64,
    },
}
