//! Counts over all runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use firn_tests::sim::profile::Theme;
use firn_tests::sim::run::Report;

/// Counts over runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    seeds: u64,
    commits: u64,
    faults: BTreeMap<&'static str, u64>,
    violations: u64,
    virtual_time: Duration,
}

/// Counts that several threads add to.
#[derive(Debug, Default)]
pub(crate) struct SharedTally(Mutex<Tally>);

impl SharedTally {
    pub(crate) fn add(&self, report: &Report) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(report);
    }

    pub(crate) fn into_inner(self) -> Tally {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.commits += report.commits as u64;
        self.violations += u64::from(report.violation.is_some());
        self.virtual_time += report.virtual_time;
        for (fault, count) in &report.faults {
            *self.faults.entry(fault).or_default() += count;
        }
    }

    /// Whether every promise was kept.
    pub(crate) fn is_clean(&self) -> bool {
        self.violations == 0
    }

    /// One line of counts.
    pub(crate) fn line(&self, elapsed: Duration) -> String {
        let faults: Vec<String> =
            self.faults.iter().map(|(fault, count)| format!("{fault} {count}")).collect();
        let faults = if faults.is_empty() { "none".to_owned() } else { faults.join(", ") };
        let per_minute = self.seeds as f64 * 60.0 / elapsed.as_secs_f64().max(0.001);
        format!(
            "{} seeds, {} commits, faults: {faults}; {} violations; {:.1} s, {per_minute:.0} seeds a minute, {:.1} simulated hours",
            self.seeds,
            self.commits,
            self.violations,
            elapsed.as_secs_f64(),
            self.virtual_time.as_secs_f64() / 3600.0,
        )
    }
}

/// The command that repeats a run.
pub(crate) fn line_to_repeat(seed: u64, theme: Option<Theme>) -> String {
    let theme = theme.map(|theme| format!(" --profile {}", theme.name())).unwrap_or_default();
    format!("cargo run --release -p firn-tests --bin simulate -- --seeds {seed}..{}{theme}", seed + 1)
}
