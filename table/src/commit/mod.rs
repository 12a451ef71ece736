//! Appends, replaces and expiry of one table and branch, one at a time.
//!
//! | file | subject |
//! | --- | --- |
//! | `handle` | [`TableHandle`]: the table as this process knows it, and the queue through which its commits pass |
//! | `protocol` | the loop of attempts: base, validation, request, and what follows from each outcome |
//! | `append`, `cursors`, `known_ledger` | flushes with the fence; cursors set by a person; what a table says about a writer |
//! | `replace`, `filter` | rewrites: groups validated on each base, and the manifests that lose files |
//! | `deletes`, `dangling` | the deletes of a rewrite's inputs, and those that go with them |
//! | `update` | commits that add no snapshot |
//! | `request`, `merging`, `summary` | what a snapshot is made of: list and updates, merged manifests, summary |
//! | `guard` | what is refused before anything is written |
//! | `tries`, `backoff`, `limits` | what follows from an answer; how long to wait; how often and how long to try |
//! | `times` | what a commit's time was spent on |
//! | `written` | the files of a commit, and which of them may be deleted |
//!
//! An append writes its files' manifest once, before its turn; on each attempt it checks the fence against the base,
//! writes a manifest list and sends one request. No data manifest is read, unless small ones are merged.

mod append;
mod backoff;
mod cursors;
mod dangling;
mod deletes;
mod filter;
mod guard;
mod handle;
mod known_ledger;
mod limits;
mod merging;
mod protocol;
mod replace;
mod request;
mod summary;
#[cfg(test)]
mod tests;
mod times;
mod tries;
mod update;
mod written;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use iceberg::table::Table;

use crate::Surroundings;
use crate::files::NewFile;
use crate::layout::{LiveDelete, LiveFile};
use crate::ledger::{CommitId, Cursor, OffsetRange, TopicPartition, WriterName};

use handle::Inner;
pub use handle::Trouble;

pub use crate::expire::{ExpireOptions, ExpireReport};
pub use crate::ledger::{Guarantee, SourceIdentity};
pub use limits::CommitLimits;
pub use times::CommitTimes;
pub(crate) use update::{MetadataChange, Submitted};

/// One table and branch, as this process knows it. Cheap to clone; clones share the queue through which all commits
/// of this process pass in order of arrival, and the table as last committed.
#[derive(Debug, Clone)]
pub struct TableHandle {
    inner: Arc<Inner>,
    limits: CommitLimits,
    surroundings: Surroundings,
}

/// A sealed flush: offset ranges with all files that hold their rows. Nothing is added to it after it was made.
#[derive(Debug, Clone)]
pub struct Flush {
    /// Its identity, the same in all attempts.
    pub commit_id: CommitId,
    /// Whose cursors it moves.
    pub writer: WriterName,
    /// The ranges; each topic partition at most once.
    pub ranges: Vec<OffsetRange>,
    /// The files; may be empty (offsets without rows).
    pub files: Vec<NewFile>,
    /// Where the messages come from, checked against the ledger at the start and recorded with it.
    pub source: SourceIdentity,
    /// Whether the fence holds (exactly once) or ranges are only recorded (at least once).
    pub guarantee: Guarantee,
}

/// What became of a flush.
#[derive(Debug)]
pub enum FlushOutcome {
    /// It is in the table.
    Committed(Box<Committed>),
    /// It was overtaken and its files were removed where that is safe: seek to these cursors.
    Overtaken {
        /// The table's cursors of the flush's partitions; a partition the ledger does not know is absent.
        cursors: BTreeMap<TopicPartition, Cursor>,
        /// The commit that moved the ledger last.
        by: Option<CommitId>,
    },
}

/// Topic partitions that a process claims (see [`Claims`](crate::ledger::Claims)).
#[derive(Debug, Clone)]
pub struct Claim {
    /// The commit's identity: its snapshot id is the claim.
    pub commit_id: CommitId,
    /// Under whose name.
    pub writer: WriterName,
    /// The topic partitions.
    pub partitions: Vec<TopicPartition>,
    /// Where the messages come from.
    pub source: SourceIdentity,
}

/// A commit that landed.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The table after it.
    pub table: Table,
    /// Its snapshot.
    pub snapshot_id: i64,
    /// Its sequence number.
    pub sequence_number: i64,
    /// Requests to the catalog that it took.
    pub attempts: u32,
    /// Conflicts among them.
    pub conflicts: u32,
    /// From the first attempt to the reply.
    pub elapsed: Duration,
    /// What the time was spent on.
    pub times: CommitTimes,
}

/// A rewrite ready to be committed: groups of removed inputs and added outputs.
#[derive(Debug, Clone)]
pub struct Replace {
    /// Its identity, the same in all attempts.
    pub commit_id: CommitId,
    /// The snapshot that was planned on.
    pub planned_on: i64,
    /// The groups; each lands or is dropped alone.
    pub groups: Vec<ReplaceGroup>,
    /// Further entries for the snapshot's summary (`firn.*`).
    pub summary: BTreeMap<String, String>,
}

/// Files of one partition and spec that are rewritten together.
#[derive(Debug, Clone)]
pub struct ReplaceGroup {
    /// The plan's number of the group.
    pub id: usize,
    /// The inputs, as planned.
    pub removed: Vec<LiveFile>,
    /// The outputs; empty where the inputs had no rows.
    pub added: Vec<NewFile>,
    /// The deletes that were applied when the inputs were read: all that applied to them then.
    pub applied_deletes: Vec<LiveDelete>,
    /// The rows that these took away: rows of the inputs less those of the outputs.
    pub deleted_rows: u64,
}

/// What became of a rewrite.
#[derive(Debug)]
pub struct ReplaceOutcome {
    /// The commit; `None` where every group was dropped.
    pub committed: Option<Committed>,
    /// Groups that landed.
    pub landed: Vec<usize>,
    /// Groups that were dropped, with the reason; their outputs were removed where that is safe.
    pub dropped: Vec<(usize, String)>,
}

/// Cursors to be set by a person's decision.
#[derive(Debug, Clone)]
pub struct CursorChange {
    /// The commit's identity.
    pub commit_id: CommitId,
    /// Whose cursors.
    pub writer: WriterName,
    /// The new cursors, complete.
    pub cursors: BTreeMap<TopicPartition, Cursor>,
    /// The source they belong to; `None` keeps what the ledger has.
    pub source: Option<SourceIdentity>,
    /// Forget all other cursors of the writer.
    pub replace_all: bool,
}
