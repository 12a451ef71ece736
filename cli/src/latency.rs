//! Latencies from produce to visible, message by message, as percentiles.

use firn_writer::observe::CommitEvent;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The longest latency that is told apart: an hour.
const MAX_MS: u64 = 3_600_000;

/// Latencies of messages, to three significant digits.
#[derive(Debug, Clone)]
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
}

/// Percentiles in milliseconds; zero where nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Latency {
    /// Half of the messages were visible after this time.
    pub p50: u64,
    /// 95 of 100.
    pub p95: u64,
    /// 99 of 100.
    pub p99: u64,
    /// All of them.
    pub max: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram =
            Histogram::new_with_bounds(1, MAX_MS, 3).expect("1 ms to 1 h in three digits are valid bounds");
        Self { histogram }
    }
}

impl Latencies {
    /// Adds the messages of a commit.
    pub(crate) fn record(&mut self, commit: &CommitEvent) {
        for (millis, count) in commit.latencies_ms() {
            self.add(millis, count);
        }
    }

    /// Adds `count` messages; a latency beyond an hour counts as one hour.
    pub(crate) fn add(&mut self, millis: u64, count: u64) {
        self.histogram.saturating_record_n(millis, count);
    }

    /// What they say.
    pub(crate) fn percentiles(&self) -> Latency {
        if self.histogram.is_empty() {
            return Latency::default();
        }
        Latency {
            p50: self.histogram.value_at_quantile(0.50),
            p95: self.histogram.value_at_quantile(0.95),
            p99: self.histogram.value_at_quantile(0.99),
            max: self.histogram.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_count_messages_not_commits() {
        let mut latencies = Latencies::default();
        latencies.add(100, 98);
        latencies.add(900, 2);
        assert_eq!(latencies.percentiles(), Latency { p50: 100, p95: 100, p99: 900, max: 900 });
    }

    #[test]
    fn nothing_measured_is_zero_and_the_longest_is_bounded() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentiles(), Latency::default());
        latencies.add(MAX_MS * 10, 1);
        assert!(latencies.percentiles().max >= MAX_MS);
    }
}
