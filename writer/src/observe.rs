//! What a running writer tells: one stream of events, rendered by whoever listens (logs, progress, metrics, tests).

use std::time::Duration;

use firn_table::ledger::{CommitId, OffsetRange, TopicPartition};

use crate::{Error, ErrorKind};

/// Takes the events of a writer. Called from the writer's task: it must not block.
pub trait Observer: Send + Sync {
    /// One event.
    fn on_event(&self, event: &Event);

    /// How things stand: about four times a second while something happens, and once a second otherwise.
    fn on_status(&self, _status: &Status) {}
}

/// How things stand at a moment, for gauges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Age of the oldest decoded row that is not in the table; zero where there is none.
    pub oldest_row_age: Duration,
    /// Bytes that the memory budget holds.
    pub memory_bytes: usize,
    /// The budget.
    pub memory_limit_bytes: usize,
    /// Flushes that are sealed and not committed, without the one whose commit is out.
    pub waiting_flushes: usize,
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn on_event(&self, _event: &Event) {}
}

/// Something that a person or a metric may want to know.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The writer runs and waits for partitions.
    Started {
        /// The instance part of all its commit ids.
        instance: uuid::Uuid,
    },
    /// Partitions were assigned and are read from these offsets.
    Assigned {
        /// Where each begins.
        starts: Vec<(TopicPartition, i64)>,
    },
    /// Partitions were given up; what was read of them is committed or discarded.
    Revoked {
        /// Which.
        partitions: Vec<TopicPartition>,
    },
    /// A commit landed.
    Committed(Box<CommitEvent>),
    /// A flush was overtaken by another process and discarded.
    Overtaken {
        /// Offsets that were discarded and are read again from the table's cursor.
        ranges: Vec<OffsetRange>,
        /// The commit that moved the ledger last.
        by: Option<CommitId>,
    },
    /// A message was rejected and skipped.
    Rejected(Rejection),
    /// Offsets were lost to retention and recorded as a gap.
    Gap {
        /// Where.
        partition: TopicPartition,
        /// The first lost offset.
        from: i64,
        /// The first offset that is still there.
        to: i64,
    },
    /// Snapshots were expired.
    Expired {
        /// How many snapshots.
        snapshots: usize,
        /// How many files were deleted.
        files: usize,
        /// How long the commit queue was busy with it.
        elapsed: Duration,
    },
    /// The table's schema or default partition spec changed and is used for new files.
    TableChanged {
        /// The current schema's id.
        schema_id: i32,
        /// The default partition spec's id.
        spec_id: i32,
    },
    /// The number of shards follows backlog and throughput (mode `auto`).
    Shards {
        /// Before.
        from: usize,
        /// From here on.
        to: usize,
        /// The load that it follows from.
        reason: String,
    },
    /// The freshness goal is missed, or is met again.
    Freshness(Freshness),
    /// Something keeps rows from becoming visible; the writer goes on trying.
    Unhealthy {
        /// Age of the oldest row that is not in the table.
        oldest_row_age: Duration,
        /// What stands in the way, where it is known.
        reason: String,
    },
    /// The trouble is over.
    Healthy,
    /// The source or the group's coordinator had a passing trouble.
    SourceTrouble {
        /// What it said.
        message: String,
    },
    /// The writer was told to stop and commits what it has in hand.
    Stopping,
}

/// How the freshness goal is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// The goal.
    pub goal: crate::config::FreshnessGoal,
    /// What the goal's share of the recent messages took from produce to visible, at most; rounded up by less than
    /// a tenth.
    pub measured: Duration,
    /// What stands in the way; `None` where the goal is met.
    pub missed_by: Option<Bottleneck>,
}

/// The stage that takes most of the time, with what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bottleneck {
    /// The stage.
    pub constraint: Constraint,
    /// Its time for one flush of late.
    pub takes: Duration,
}

/// What can keep a table from being fresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Constraint {
    /// From produce to the writer: the broker, or a backlog of old messages.
    Fetch,
    /// The memory budget: the intake waits for it.
    Memory,
    /// Decoding, with the wait for it.
    Decode,
    /// Encoding files.
    Encode,
    /// Uploading files.
    Upload,
    /// The catalog's commit, with the wait for the commit before it.
    Commit,
}

impl Constraint {
    /// Its name, stable.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Memory => "memory",
            Self::Decode => "decode",
            Self::Encode => "encode",
            Self::Upload => "upload",
            Self::Commit => "catalog-commit",
        }
    }
}

/// A commit that landed, with what it took.
#[derive(Debug, Clone)]
pub struct CommitEvent {
    /// The snapshot.
    pub snapshot_id: i64,
    /// The commit id in the ledger.
    pub commit_id: CommitId,
    /// The offsets it covers.
    pub ranges: Vec<OffsetRange>,
    /// Rows added.
    pub rows: u64,
    /// Messages rejected.
    pub rejected: u64,
    /// Files added.
    pub files: usize,
    /// Their bytes on storage.
    pub bytes: u64,
    /// Sizes of the files on storage, in bytes.
    pub file_sizes: Vec<u64>,
    /// When the commit was known to be visible, milliseconds since the epoch.
    pub visible_at_ms: i64,
    /// Messages by their timestamp: (milliseconds since the epoch, count). With [`Self::visible_at_ms`] it gives
    /// the latency from produce to visible.
    pub produced_at_ms: Vec<(i64, u64)>,
    /// Where the time went.
    pub phases: Phases,
    /// Requests to the catalog that the commit took.
    pub attempts: u32,
    /// Conflicts among them.
    pub conflicts: u32,
}

impl CommitEvent {
    /// Latencies from produce to visible: (milliseconds, count), negative ones (clocks apart) as zero.
    pub fn latencies_ms(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.produced_at_ms
            .iter()
            .map(|&(at, count)| (u64::try_from(self.visible_at_ms.saturating_sub(at)).unwrap_or(0), count))
    }
}

/// Time of a flush by phase. Decode and encode are sums over their tasks, which overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases {
    /// Oldest message in the flush: from the source to the decoder.
    pub fetch: Duration,
    /// Decoding and partitioning, summed.
    pub decode: Duration,
    /// From the oldest decoded row to the seal.
    pub buffer: Duration,
    /// Encoding, summed.
    pub encode: Duration,
    /// Uploading, summed.
    pub upload: Duration,
    /// From ready to the first attempt: another commit was still out.
    pub queue: Duration,
    /// From the start of the commit to its end, with all that follows here and its turn in the table's queue.
    pub commit: Duration,
    /// Of the commit: writing and merging manifests.
    pub manifest: Duration,
    /// Of the commit: writing manifest lists.
    pub list: Duration,
    /// Of the commit: from requests to their answers.
    pub catalog: Duration,
    /// Of the commit: waits between attempts, and loading the table for them.
    pub retry: Duration,
}

/// A message that could not become a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Its topic partition.
    pub partition: TopicPartition,
    /// Its offset.
    pub offset: i64,
    /// A stable code.
    pub code: String,
    /// The path of the column or field; empty where the message as a whole is bad.
    pub path: String,
    /// What was found and what was expected.
    pub reason: String,
}

impl Rejection {
    /// The error with which a writer stops at this message.
    #[must_use]
    pub fn into_error(self) -> Error {
        let Self { partition: TopicPartition { topic, partition }, offset, code, path, reason } = self;
        let at = if path.is_empty() { String::new() } else { format!(" at `{path}`") };
        let message = format!(
            "message at topic `{topic}`, partition {partition}, offset {offset} cannot be decoded{at}: {reason} \
             ({code}); everything before it is committed: mend the producer or the schema, or skip such messages \
             with `--on-bad-message skip`"
        );
        Error::new(ErrorKind::Data, message)
    }
}

/// What a writer did until it stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriterReport {
    /// Rows added.
    pub rows: u64,
    /// Messages rejected and skipped.
    pub rejected: u64,
    /// Those among them that were kept as dead letters.
    pub dead_letters: u64,
    /// Offsets that Kafka does not deliver.
    pub holes: u64,
    /// Files added.
    pub files: u64,
    /// Their bytes on storage.
    pub bytes: u64,
    /// Commits that landed.
    pub commits: u64,
    /// Flushes that were overtaken.
    pub overtaken: u64,
    /// Snapshots expired.
    pub expired_snapshots: u64,
    /// The largest number of bytes that the memory budget held.
    pub peak_memory_bytes: usize,
}
