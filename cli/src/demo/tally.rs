//! What writer, compactor and load tell, counted.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::latency::{Latencies, Latency};

/// Counters that the parts of the demo write and the view reads.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    latencies: Latencies,
    counted: Counted,
}

/// The counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Whether the writer was given partitions to read.
    pub assigned: bool,
    /// Messages that the broker acknowledged.
    pub produced: u64,
    /// Their bytes.
    pub produced_bytes: u64,
    /// Rows in commits that landed.
    pub rows: u64,
    /// Messages that were rejected.
    pub rejected: u64,
    /// Commits of the writer.
    pub commits: u64,
    /// Commits of the compactor.
    pub rewrites: u64,
    /// From produce to visible.
    pub latency: Latency,
}

impl Tally {
    /// What was counted so far.
    pub(crate) fn snapshot(&self) -> Counted {
        let inner = self.lock();
        Counted { latency: inner.latencies.percentiles(), ..inner.counted.clone() }
    }

    /// The load has come so far.
    pub(crate) fn produced(&self, messages: u64, bytes: u64) {
        let mut inner = self.lock();
        inner.counted.produced = messages;
        inner.counted.produced_bytes = bytes;
    }

    /// Counters have no invariant that a panic elsewhere could break.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl firn_writer::Observer for Tally {
    fn on_event(&self, event: &firn_writer::Event) {
        match event {
            firn_writer::Event::Assigned { .. } => self.lock().counted.assigned = true,
            firn_writer::Event::Committed(commit) => {
                let mut inner = self.lock();
                inner.latencies.record(commit);
                inner.counted.rows += commit.rows;
                inner.counted.rejected += commit.rejected;
                inner.counted.commits += 1;
            }
            _ => {}
        }
    }
}

impl firn_compactor::Observer for Tally {
    fn observe(&self, event: &firn_compactor::Event) {
        if let firn_compactor::Event::Committed { .. } = event {
            self.lock().counted.rewrites += 1;
        }
    }
}
