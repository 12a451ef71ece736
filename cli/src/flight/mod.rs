//! The flight recorder: one line of JSON per commit, with the time of each phase, and what a file of them says.
//!
//! `firn write --flight-recorder FILE` appends to `FILE`; when it would exceed its bound it becomes `FILE.1`, in place
//! of the one before, so that two bounds are the most that is kept. `firn explain-latency FILE` reads both.

pub(crate) mod explain;
pub(crate) mod recorder;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use firn_writer::observe::{CommitEvent, Phases};
use serde::{Deserialize, Serialize};

use crate::latency::{Latencies, Latency};

/// The phases of a commit, in the order in which a message passes through them, with what to do where one binds.
pub(crate) const PHASES: &[(&str, &str)] = &[
    ("fetch", "messages wait between the source and the decoder: more processes, or fewer partitions each"),
    ("decode", "decoding is short of processor time: more processes, or fewer and plainer columns"),
    ("buffer", "rows wait for their flush: a shorter write.flush-age, or the mode low-latency"),
    ("encode", "writing Parquet is short of processor time: more processes, or a cheaper codec"),
    ("upload", "the store is slow to take files: a nearer store, more write.upload-concurrency, fewer files"),
    ("queue", "ready flushes wait for the commit before them: look at the phases of the commit itself"),
    ("manifest", "writing manifests is slow: a nearer store, or fewer files per commit"),
    (
        "list",
        "writing manifest lists is slow: a nearer store, or fewer manifests (merge them, expire snapshots)",
    ),
    ("catalog", "the catalog is slow to answer: a nearer or faster one, smaller metadata (expire snapshots)"),
    (
        "retry",
        "commits lose to others or meet failures: fewer committers on this table, or a steadier catalog",
    ),
    ("rest", "commits look at tables and remove files: see the log of this process"),
    (OUTSIDE, "messages were late before firn fetched them (producer, broker, backlog), or clocks are apart"),
];

/// What is in no phase of a commit.
pub(crate) const OUTSIDE: &str = "outside";

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// When it was known to be visible, milliseconds since the epoch.
    pub at_ms: i64,
    /// Its snapshot.
    pub snapshot_id: i64,
    /// Its id in the ledger.
    pub commit_id: String,
    /// Rows added.
    pub rows: u64,
    /// Messages rejected.
    pub rejected: u64,
    /// Files added.
    pub files: u64,
    /// Their bytes on storage.
    pub bytes: u64,
    /// Requests to the catalog.
    pub attempts: u32,
    /// Conflicts among them.
    pub conflicts: u32,
    /// From produce to visible, by message.
    pub latency_ms: Latency,
    /// Time by phase in microseconds; decode, encode and upload are sums over what overlaps.
    pub phases_us: BTreeMap<String, u64>,
}

impl Record {
    /// What a commit leaves.
    pub(crate) fn of(commit: &CommitEvent) -> Self {
        let mut latencies = Latencies::default();
        latencies.record(commit);
        Self {
            at_ms: commit.visible_at_ms,
            snapshot_id: commit.snapshot_id,
            commit_id: commit.commit_id.to_string(),
            rows: commit.rows,
            rejected: commit.rejected,
            files: commit.files as u64,
            bytes: commit.bytes,
            attempts: commit.attempts,
            conflicts: commit.conflicts,
            latency_ms: latencies.percentiles(),
            phases_us: phases_us(&commit.phases),
        }
    }
}

fn phases_us(phases: &Phases) -> BTreeMap<String, u64> {
    let named = phases.manifest + phases.list + phases.catalog + phases.retry;
    [
        ("fetch", phases.fetch),
        ("decode", phases.decode),
        ("buffer", phases.buffer),
        ("encode", phases.encode),
        ("upload", phases.upload),
        ("queue", phases.queue),
        ("manifest", phases.manifest),
        ("list", phases.list),
        ("catalog", phases.catalog),
        ("retry", phases.retry),
        ("rest", phases.commit.saturating_sub(named)),
    ]
    .into_iter()
    .map(|(name, time)| (name.to_owned(), u64::try_from(time.as_micros()).unwrap_or(u64::MAX)))
    .collect()
}

/// Where the older half of a recording is.
pub(crate) fn older(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".1");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A commit of ten rows whose slowest message took `max_ms`, without phases.
    pub(super) fn record(snapshot_id: i64, max_ms: u64) -> Record {
        Record {
            at_ms: 0,
            snapshot_id,
            commit_id: "c".to_owned(),
            rows: 10,
            rejected: 0,
            files: 1,
            bytes: 1,
            attempts: 1,
            conflicts: 0,
            latency_ms: Latency { max: max_ms, ..Latency::default() },
            phases_us: BTreeMap::new(),
        }
    }

    #[test]
    fn every_phase_of_a_record_has_advice_and_the_commit_is_split_whole() {
        let millis = Duration::from_millis;
        let phases = Phases {
            commit: millis(100),
            manifest: millis(10),
            list: millis(20),
            catalog: millis(30),
            retry: millis(15),
            ..Phases::default()
        };
        let recorded = phases_us(&phases);
        assert_eq!(recorded.values().sum::<u64>(), 100_000);
        assert_eq!(recorded["rest"], 25_000);
        let named: Vec<&str> = PHASES.iter().map(|(name, _)| *name).filter(|name| *name != OUTSIDE).collect();
        assert!(named.iter().all(|name| recorded.contains_key(*name)) && named.len() == recorded.len());
    }
}
