//! What a writer is told to do. Plain values: reading them from files and arguments is the program's part.

use std::collections::BTreeMap;
use std::time::Duration;

use firn_table::commit::{ExpireOptions, Guarantee};
use firn_table::ledger::WriterName;
use iceberg::TableIdent;

use crate::decode::DecodeOptions;
use crate::{Error, ErrorKind, Result};

/// Everything that one writer process is told.
#[derive(Debug, Clone)]
pub struct WriterConfig {
    /// The name under which the processes of one deployment share cursors.
    pub name: WriterName,
    /// The topics to read. A topic that does not exist yet is waited for.
    pub topics: Vec<String>,
    /// librdkafka's properties, `bootstrap.servers` among them. `group.id` defaults to `firn-<name>`; offsets,
    /// resets and commits are the writer's own and cannot be set.
    pub kafka: BTreeMap<String, String>,
    /// Where to start in partitions of which the table holds nothing yet.
    pub start: Start,
    /// Exactly once (the fence decides) or at least once.
    pub guarantee: Guarantee,
    /// How rows become files.
    pub mode: Mode,
    /// When a flush is sealed.
    pub flush: FlushLimits,
    /// How fresh the table has to be: chooses age and bytes of flushes in place of [`Self::flush`]'s, from what
    /// commits, uploads and decoding take, and in the mode `auto` the number of shards with them.
    pub freshness: Option<FreshnessGoal>,
    /// What follows from a message that cannot be decoded.
    pub on_bad_message: OnBadMessage,
    /// Where dead letters go; used with [`OnBadMessage::DeadLetter`].
    pub dead_letters: DeadLetters,
    /// What follows when the topic no longer holds the offsets at the cursor.
    pub on_gap: OnGap,
    /// What follows when the table was rolled back or replaced behind the writer.
    pub after_rollback: AfterRollback,
    /// What follows when the topic or cluster is not the one the ledger names.
    pub on_new_source: OnNewSource,
    /// How messages become rows.
    pub decode: DecodeOptions,
    /// The budget for fetched messages, batches, open files and uploads together, in bytes (promise W4).
    pub memory_bytes: usize,
    /// Files that are encoded and uploaded at the same time.
    pub upload_concurrency: usize,
    /// Snapshot expiry between commits; `None` leaves it to others.
    pub expiry: Option<ExpirySchedule>,
    /// When to stop by itself.
    pub end: End,
    /// How long a revoked partition's rows may take to be committed before they are discarded.
    pub revoke_deadline: Duration,
    /// The table is reported unhealthy when the oldest uncommitted row is older than this.
    pub unhealthy_after: Duration,
    /// Overtaken flushes in a row, without a commit in between, after which the writer stops.
    pub max_overtaken: u32,
}

/// Where to start in partitions without a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// At the oldest message that the broker holds.
    #[default]
    Earliest,
    /// At the end.
    Latest,
    /// At the consumer group's committed offset, or the oldest message where there is none.
    Group,
    /// At the first message of this time or later (milliseconds since the epoch), or the end where there is none.
    Timestamp(i64),
}

/// How rows become files (DESIGN section 6, modes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Rows are hashed over this many shards; one file per table partition, shard and flush.
    Fixed {
        /// Number of shards, at least one.
        shards: usize,
    },
    /// As `Fixed`, with a number of shards that follows backlog and throughput.
    Auto {
        /// The fewest shards, at least one: what it begins with.
        min_shards: usize,
        /// The most shards.
        max_shards: usize,
    },
    /// Rows are collected for a window and written in the order of their message keys; rows of one key in the order
    /// of their offsets.
    Grouped {
        /// How long rows are collected; less where [`FlushLimits::bytes`] or the memory budget end it.
        window: Duration,
        /// Number of shards, at least one.
        shards: usize,
    },
    /// A flush is sealed as soon as it can be committed right after the one before it.
    LowLatency {
        /// The shortest time between two seals: keeps an idle topic's few rows from becoming a file each.
        min_interval: Duration,
    },
}

impl Mode {
    /// Its name in configurations.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fixed { .. } => "fixed",
            Self::Auto { .. } => "auto",
            Self::Grouped { .. } => "grouped",
            Self::LowLatency { .. } => "low-latency",
        }
    }

    /// What is wrong with it.
    fn problem(&self) -> Option<String> {
        match *self {
            Self::Fixed { shards: 0 }
            | Self::Grouped { shards: 0, .. }
            | Self::Auto { min_shards: 0, .. } => Some("`shards` is 0: at least one is needed".to_owned()),
            Self::Auto { min_shards, max_shards } if min_shards > max_shards => Some(format!(
                "at least {min_shards} and at most {max_shards} shards: the range is empty; swap them"
            )),
            Self::Grouped { window, .. } if window.is_zero() => {
                Some("the window is 0: no rows could be collected in it".to_owned())
            }
            _ => None,
        }
    }

    /// Low latency with the interval that suits most tables.
    #[must_use]
    pub fn low_latency() -> Self {
        Self::LowLatency { min_interval: Duration::from_millis(100) }
    }
}

/// A share of messages that has to be visible within a time of being produced (DESIGN section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreshnessGoal {
    /// The share, in thousandths: 990 is P99, 1000 is every message.
    pub permille: u16,
    /// The time from the message's timestamp to the commit.
    pub within: Duration,
}

/// A flush is sealed when it reaches one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlushLimits {
    /// Age of its oldest row, counted from when it was decoded.
    pub age: Duration,
    /// Bytes of its rows in memory.
    pub bytes: usize,
    /// Rows.
    pub rows: u64,
}

impl Default for FlushLimits {
    fn default() -> Self {
        Self { age: Duration::from_secs(1), bytes: 128 << 20, rows: 1_000_000 }
    }
}

/// What follows from a message that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnBadMessage {
    /// What came before it is committed, then the writer stops and names it.
    #[default]
    Stop,
    /// It is counted as rejected in the ledger.
    Skip,
    /// It is kept whole, with the reason, as [`WriterConfig::dead_letters`] says, and counted as rejected.
    DeadLetter,
}

/// Where dead letters are kept, and how many there may be.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetters {
    /// The Iceberg table; `None` is `<table>_dlq` beside the table of rows.
    pub table: Option<TableIdent>,
    /// Whether that table is made where it is not there.
    pub create: bool,
    /// The share of bad messages in a window beyond which the writer stops; 1 is never.
    pub max_share: f64,
    /// The window, in messages.
    pub window: u64,
}

impl Default for DeadLetters {
    fn default() -> Self {
        Self { table: None, create: true, max_share: 0.01, window: 100_000 }
    }
}

/// What follows when the topic no longer holds the offsets at the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnGap {
    /// Stop and name the range.
    #[default]
    Stop,
    /// Write the gap into the ledger and go on after it.
    Record,
}

/// What follows when the table was rolled back or replaced behind the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AfterRollback {
    /// Stop and name the offsets that left the table.
    #[default]
    Stop,
    /// Set the cursors back to what the table's history holds and read the rest again.
    Replay,
    /// Keep the cursors: what was rolled back stays out of the table.
    Keep,
}

/// What follows when the topic or cluster is not the one the ledger names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnNewSource {
    /// Stop and name both.
    #[default]
    Stop,
    /// Begin anew at the oldest message of the new topic.
    Restart,
}

/// Expiry in the commit queue (DESIGN 4.8).
#[derive(Debug, Clone)]
pub struct ExpirySchedule {
    /// Time between two runs.
    pub every: Duration,
    /// What may go; `max_snapshots` bounds how long a commit waits behind it.
    pub options: ExpireOptions,
}

impl Default for ExpirySchedule {
    fn default() -> Self {
        let options = ExpireOptions { max_snapshots: Some(100), ..ExpireOptions::default() };
        Self { every: Duration::from_secs(30), options }
    }
}

/// When a writer stops by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum End {
    /// Never: it runs until it is told to stop.
    #[default]
    Never,
    /// When everything up to the offsets that were the ends when it started is committed.
    AtEndsOfStart,
}

impl WriterConfig {
    /// A configuration with every default, for `name`, `topics` and the brokers at `bootstrap_servers`.
    #[must_use]
    pub fn new(name: WriterName, topics: Vec<String>, bootstrap_servers: impl Into<String>) -> Self {
        Self {
            name,
            topics,
            kafka: BTreeMap::from([("bootstrap.servers".to_owned(), bootstrap_servers.into())]),
            start: Start::default(),
            guarantee: Guarantee::default(),
            mode: Mode::Fixed { shards: 1 },
            flush: FlushLimits::default(),
            freshness: None,
            on_bad_message: OnBadMessage::default(),
            dead_letters: DeadLetters::default(),
            on_gap: OnGap::default(),
            after_rollback: AfterRollback::default(),
            on_new_source: OnNewSource::default(),
            decode: DecodeOptions::default(),
            memory_bytes: 512 << 20,
            upload_concurrency: 8,
            expiry: Some(ExpirySchedule::default()),
            end: End::default(),
            revoke_deadline: Duration::from_secs(10),
            unhealthy_after: Duration::from_secs(60),
            max_overtaken: 20,
        }
    }

    /// Checks what can be checked without a broker or a table; all problems are in one message.
    pub fn validate(&self) -> Result<()> {
        let mut problems = Vec::new();
        if self.topics.is_empty() {
            problems.push("no topic is given: name at least one".to_owned());
        }
        if !self.kafka.contains_key("bootstrap.servers") {
            problems.push("`bootstrap.servers` is missing: no broker can be reached".to_owned());
        }
        for (key, why) in OWNED_PROPERTIES {
            if self.kafka.contains_key(*key) {
                problems.push(format!("`{key}` cannot be set: {why}"));
            }
        }
        problems.extend(self.mode.problem());
        if let Some(goal) = self.freshness
            && (goal.within.is_zero() || !(1..=1000).contains(&goal.permille))
        {
            let FreshnessGoal { permille, within } = goal;
            problems.push(format!(
                "`freshness` of {permille} thousandths within {within:?} cannot be reached: give a share of 1 to 1000 \
                 and a time above zero"
            ));
        }
        if self.memory_bytes < MIN_MEMORY_BYTES {
            problems.push(format!(
                "memory of {} bytes is too small: at least {MIN_MEMORY_BYTES} are needed",
                self.memory_bytes
            ));
        }
        if !(0.0..=1.0).contains(&self.dead_letters.max_share) || self.dead_letters.window == 0 {
            problems.push(
                "the share of dead letters is from 0 to 1, of a window of at least one message".to_owned(),
            );
        }
        if self.upload_concurrency == 0 {
            problems.push("upload concurrency is 0: no file could be written".to_owned());
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Configuration, problems.join("; ")))
    }
}

/// The smallest budget that holds a fetch of each stage.
const MIN_MEMORY_BYTES: usize = 16 << 20;

/// Properties of librdkafka that carry the promises of the writer.
const OWNED_PROPERTIES: &[(&str, &str)] = &[
    ("enable.auto.commit", "offsets are committed after the table holds the rows"),
    ("enable.auto.offset.store", "offsets are committed after the table holds the rows"),
    ("auto.offset.reset", "the table decides where to start; see `start` and `on_gap`"),
    ("enable.partition.eof", "the writer needs it to see the end of a partition"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_told_at_once() {
        let name = WriterName::new("w").unwrap();
        let good = WriterConfig::new(name.clone(), vec!["t".to_owned()], "b:1");
        good.validate().unwrap();
        let mut bad = WriterConfig { mode: Mode::Fixed { shards: 0 }, memory_bytes: 1, ..good };
        bad.topics.clear();
        bad.kafka = BTreeMap::from([("auto.offset.reset".to_owned(), "latest".to_owned())]);
        let error = bad.validate().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        let text = error.to_string();
        for problem in ["no topic", "`bootstrap.servers`", "`auto.offset.reset`", "`shards`", "memory of 1"] {
            assert!(text.contains(problem), "{problem} is not in: {text}");
        }
    }

    #[test]
    fn modes_and_goals_without_meaning_are_refused() {
        let good = WriterConfig::new(WriterName::new("w").unwrap(), vec!["t".to_owned()], "b:1");
        let window = Duration::ZERO;
        for (mode, problem) in [
            (Mode::Auto { min_shards: 0, max_shards: 2 }, "`shards` is 0"),
            (Mode::Auto { min_shards: 3, max_shards: 2 }, "the range is empty"),
            (Mode::Grouped { window, shards: 1 }, "the window is 0"),
        ] {
            let error = WriterConfig { mode, ..good.clone() }.validate().unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
        }
        let goal = FreshnessGoal { permille: 1_001, within: Duration::from_secs(1) };
        let error = WriterConfig { freshness: Some(goal), ..good }.validate().unwrap_err();
        assert!(error.to_string().contains("`freshness` of 1001 thousandths"), "{error}");
    }
}
