//! Runs that repeat while a stream fills the table: one at a time, whenever the table is worth it.

use std::sync::Arc;
use std::time::Duration;

use firn_table::commit::TableHandle;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use firn_policies::Debt;
use tracing::warn;

use crate::observe::Observer;
use crate::plan::prepare;
use crate::run::{CompactOptions, Run, RunReport, on_branch, run_prepared};
use crate::{Error, ErrorKind, Result};

/// Runs, and snapshots and dropped groups of all runs, that a report keeps.
const KEPT_RUNS: usize = 100;

/// When a run is worth it: any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trigger {
    /// Files that the plan would save.
    pub excess_files: Option<u64>,
    /// Bytes that the plan would rewrite.
    pub bytes: Option<u64>,
}

impl Default for Trigger {
    /// 100 files.
    fn default() -> Self {
        Self { excess_files: Some(100), bytes: None }
    }
}

/// How to compact continuously.
#[derive(Debug, Clone)]
pub struct ContinuousOptions {
    /// What to compact, and with how much.
    pub compact: CompactOptions,
    /// When.
    pub trigger: Trigger,
    /// Between two looks at the table.
    pub interval: Duration,
}

impl Default for ContinuousOptions {
    /// A look every 10 seconds.
    fn default() -> Self {
        Self {
            compact: CompactOptions::default(),
            trigger: Trigger::default(),
            interval: Duration::from_secs(10),
        }
    }
}

/// What a loop of runs did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ContinuousReport {
    /// The latest runs, in order; at most 100.
    pub runs: Vec<RunReport>,
    /// All runs together; of their snapshots and dropped groups the latest 100.
    pub totals: RunReport,
    /// Looks and runs that failed and were tried again at the next one.
    pub failures: u64,
}

/// Compacts whenever the trigger is met, until `stop`. Failures that may pass (conflicts, an unavailable store) are
/// counted and tried again at the next look; others end the loop.
pub async fn continuous(
    handle: &TableHandle,
    options: &ContinuousOptions,
    observer: Arc<dyn Observer>,
    stop: CancellationToken,
) -> Result<ContinuousReport> {
    let mut report = ContinuousReport::default();
    while !stop.is_cancelled() {
        match look(handle, options, observer.clone(), stop.clone()).await {
            Ok(run) => report.note(run),
            Err(error) if may_pass(&error) => {
                warn!(%error, "compaction failed; it is tried again at the next look");
                report.failures += 1;
            }
            Err(error) => return Err(error),
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = tokio::time::sleep(options.interval) => {}
        }
    }
    Ok(report)
}

/// Plans, and runs the plan where it is worth it.
async fn look(
    handle: &TableHandle,
    options: &ContinuousOptions,
    observer: Arc<dyn Observer>,
    stop: CancellationToken,
) -> Result<Option<RunReport>> {
    let table = handle.refresh().await?;
    let prepared = prepare(&table, &on_branch(&options.compact.plan, handle)?).await?;
    if !options.trigger.is_met(&prepared.plan.debt) {
        return Ok(None);
    }
    let run = Run { handle, options: &options.compact, observer, stop };
    run_prepared(run, table, prepared).await.map(Some)
}

/// Whether a failure may be gone at the next look.
fn may_pass(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Unavailable | ErrorKind::UnknownOutcome)
}

impl Trigger {
    /// Whether a plan with this debt is worth a run. Never where it has no group.
    #[must_use]
    pub fn is_met(&self, debt: &Debt) -> bool {
        let files = self.excess_files.is_some_and(|files| debt.excess_files >= files);
        let bytes = self.bytes.is_some_and(|bytes| debt.bytes_to_rewrite >= bytes);
        debt.files_to_rewrite > 0 && (files || bytes)
    }
}

impl ContinuousReport {
    fn note(&mut self, run: Option<RunReport>) {
        let Some(run) = run else { return };
        self.totals.add(&run);
        keep_latest(&mut self.totals.snapshot_ids);
        keep_latest(&mut self.totals.dropped);
        self.runs.push(run);
        keep_latest(&mut self.runs);
    }
}

/// A loop may run for months: lists keep their latest entries.
fn keep_latest<T>(entries: &mut Vec<T>) {
    entries.drain(..entries.len().saturating_sub(KEPT_RUNS));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_is_met_by_any_of_its_bounds_and_never_without_work() {
        let debt = Debt { excess_files: 100, files_to_rewrite: 101, bytes_to_rewrite: 5000 };
        assert!(Trigger::default().is_met(&debt));
        assert!(!Trigger::default().is_met(&Debt { excess_files: 99, ..debt }));
        assert!(Trigger { excess_files: None, bytes: Some(5000) }.is_met(&debt));
        assert!(!Trigger { excess_files: Some(101), bytes: Some(5001) }.is_met(&debt));
        assert!(!Trigger { excess_files: None, bytes: None }.is_met(&debt));
        assert!(!Trigger { excess_files: Some(0), bytes: Some(0) }.is_met(&Debt::default()));
    }

    #[test]
    fn a_long_loop_keeps_its_latest_runs_and_all_totals() {
        let mut report = ContinuousReport::default();
        for run in 0..KEPT_RUNS as u64 + 5 {
            report.note(Some(RunReport { files_in: run, ..RunReport::default() }));
            report.note(None);
        }
        let all = KEPT_RUNS as u64 + 5;
        assert_eq!(report.runs.len(), KEPT_RUNS);
        assert_eq!(report.runs[0].files_in, 5);
        assert_eq!(report.totals.files_in, all * (all - 1) / 2);
    }
}
