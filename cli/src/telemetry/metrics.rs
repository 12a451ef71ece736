//! The metrics of a writer, made from its events. Labels come from closed sets.

use std::sync::atomic::AtomicU64;

use firn_writer::decode::RejectCode;
use firn_writer::observe::{CommitEvent, Status};
use firn_writer::{Event, Observer};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::weighted::WeightedHistogram;

/// Counters, gauges and histograms of one writer.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    messages: Counter,
    rows: Counter,
    rejected: Family<Code, Counter>,
    files: Counter,
    bytes: Counter,
    commits: Counter,
    conflicts: Counter,
    overtaken: Counter,
    expired: Counter,
    oldest_row_age: Gauge<f64, AtomicU64>,
    memory: Gauge,
    memory_limit: Gauge,
    waiting: Gauge,
    commit_seconds: WeightedHistogram,
    visible_seconds: WeightedHistogram,
    file_bytes: WeightedHistogram,
}

/// Why a message was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Code {
    code: &'static str,
}

/// The code of rejections that the decoder does not list.
const OTHER: &str = "other";

impl Metrics {
    pub(super) fn new() -> Self {
        // From 5 ms and 10 ms to minutes and hours, from 4 KiB to 512 MiB: each bound doubles.
        let doubling = |from: f64, count: u32| (0..count).map(move |n| from * f64::from(1 << n));
        let mut metrics = Self {
            registry: Registry::default(),
            messages: Counter::default(),
            rows: Counter::default(),
            rejected: Family::default(),
            files: Counter::default(),
            bytes: Counter::default(),
            commits: Counter::default(),
            conflicts: Counter::default(),
            overtaken: Counter::default(),
            expired: Counter::default(),
            oldest_row_age: Gauge::default(),
            memory: Gauge::default(),
            memory_limit: Gauge::default(),
            waiting: Gauge::default(),
            commit_seconds: WeightedHistogram::new(doubling(0.005, 16)),
            visible_seconds: WeightedHistogram::new(doubling(0.010, 20)),
            file_bytes: WeightedHistogram::new(doubling(4_096.0, 18)),
        };
        metrics.register();
        for code in codes().chain([OTHER]) {
            drop(metrics.rejected.get_or_create(&Code { code }));
        }
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        let counters = [
            ("firn_writer_messages", "Messages whose offsets were committed", &self.messages),
            ("firn_writer_rows", "Rows that were committed", &self.rows),
            ("firn_writer_files", "Data files that were committed", &self.files),
            ("firn_writer_bytes", "Bytes of committed data files on storage", &self.bytes),
            ("firn_writer_commits", "Commits that landed", &self.commits),
            ("firn_writer_conflicts", "Requests of these commits that met a moved head", &self.conflicts),
            ("firn_writer_overtaken_flushes", "Flushes that another process overtook", &self.overtaken),
            ("firn_writer_expired_snapshots", "Snapshots that were expired", &self.expired),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let help = "Messages that were rejected when they were decoded";
        registry.register("firn_writer_rejected_messages", help, self.rejected.clone());
        let help = "Age of the oldest decoded row that is not in the table";
        registry.register("firn_writer_oldest_row_age_seconds", help, self.oldest_row_age.clone());
        let gauges = [
            ("firn_writer_memory_bytes", "Bytes that the memory budget holds", &self.memory),
            ("firn_writer_memory_limit_bytes", "The memory budget", &self.memory_limit),
            ("firn_writer_waiting_flushes", "Sealed flushes that wait for their commit", &self.waiting),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        let histograms = [
            ("firn_writer_commit_seconds", "From the start of a commit to its end", &self.commit_seconds),
            (
                "firn_writer_produce_to_visible_seconds",
                "From a message's timestamp to its commit",
                &self.visible_seconds,
            ),
            ("firn_writer_file_bytes", "Sizes of committed data files on storage", &self.file_bytes),
        ];
        for (name, help, histogram) in histograms {
            registry.register(name, help, histogram.clone());
        }
    }

    /// All metrics in the text format of OpenMetrics.
    pub(super) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn committed(&self, commit: &CommitEvent) {
        self.messages.inc_by(commit.rows + commit.rejected);
        self.rows.inc_by(commit.rows);
        self.files.inc_by(commit.files as u64);
        self.bytes.inc_by(commit.bytes);
        self.commits.inc();
        self.conflicts.inc_by(u64::from(commit.conflicts));
        self.commit_seconds.add(commit.phases.commit.as_secs_f64(), 1);
        for (millis, count) in commit.latencies_ms() {
            self.visible_seconds.add(millis as f64 / 1_000.0, count);
        }
        for bytes in &commit.file_sizes {
            self.file_bytes.add(*bytes as f64, 1);
        }
    }
}

fn codes() -> impl Iterator<Item = &'static str> {
    RejectCode::ALL.into_iter().map(RejectCode::as_str)
}

impl Observer for Metrics {
    fn on_event(&self, event: &Event) {
        match event {
            Event::Committed(commit) => self.committed(commit),
            Event::Rejected(rejection) => {
                let code = codes().find(|code| *code == rejection.code).unwrap_or(OTHER);
                self.rejected.get_or_create(&Code { code }).inc();
            }
            Event::Overtaken { .. } => drop(self.overtaken.inc()),
            Event::Expired { snapshots, .. } => drop(self.expired.inc_by(*snapshots as u64)),
            _ => {}
        }
    }

    fn on_status(&self, status: &Status) {
        let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.oldest_row_age.set(status.oldest_row_age.as_secs_f64());
        self.memory.set(signed(status.memory_bytes));
        self.memory_limit.set(signed(status.memory_limit_bytes));
        self.waiting.set(signed(status.waiting_flushes));
    }
}
