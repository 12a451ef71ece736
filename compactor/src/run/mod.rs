//! A run: groups of a plan are rewritten several at a time under one memory budget, and committed as they finish.

mod commits;
mod report;
mod schedule;

use std::path::PathBuf;
use std::sync::Arc;

use firn_table::commit::TableHandle;
use tokio_util::sync::CancellationToken;

use crate::{Error, ErrorKind, Result};

pub(crate) use commits::{RUN, TARGET_BYTES};
pub use report::{DroppedGroup, RunReport};

use crate::observe::Observer;
use crate::plan::{Plan, PlanOptions, prepare, resolve};
use crate::rewrite::Verify;
pub(crate) use schedule::{Run, run_prepared};

/// What to compact, and with how much.
#[derive(Debug, Clone, Default)]
pub struct CompactOptions {
    /// What to plan.
    pub plan: PlanOptions,
    /// How outputs are checked.
    pub verify: Verify,
    /// What the run may use of the machine.
    pub resources: Resources,
}

/// What a run may use of the machine.
#[derive(Debug, Clone)]
pub struct Resources {
    /// Memory of all groups together, in bytes.
    pub memory_bytes: usize,
    /// Groups at a time, at most; the lower of it and `max-concurrent-file-group-rewrites` counts.
    pub cores: usize,
    /// Where operators spill; `None`: the system's temporary folder.
    pub spill_directory: Option<PathBuf>,
}

impl Default for Resources {
    /// 1 GiB, and all cores.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { memory_bytes: 1 << 30, cores, spill_directory: None }
    }
}

/// Plans and rewrites. A group that fails is dropped alone; appends and other rewrites go on meanwhile.
///
/// `stop` ends the run between two batches: finished groups are committed, the files of unfinished ones removed.
/// Fails where nothing can be planned, and where the outcome of a commit stays unknown.
pub async fn compact(
    handle: &TableHandle,
    options: &CompactOptions,
    observer: Arc<dyn Observer>,
    stop: CancellationToken,
) -> Result<RunReport> {
    let table = handle.refresh().await?;
    let prepared = prepare(&table, &on_branch(&options.plan, handle)?).await?;
    run_prepared(Run { handle, options, observer, stop }, table, prepared).await
}

/// Runs a plan that was made before. `options.plan` is not used.
pub async fn run_plan(
    handle: &TableHandle,
    plan: &Plan,
    options: &CompactOptions,
    observer: Arc<dyn Observer>,
    stop: CancellationToken,
) -> Result<RunReport> {
    if plan.branch != handle.branch() {
        return Err(wrong_branch(&plan.branch, handle));
    }
    let table = handle.refresh().await?;
    let prepared = resolve(&table, plan).await?;
    run_prepared(Run { handle, options, observer, stop }, table, prepared).await
}

/// The options with the branch that is committed to.
pub(crate) fn on_branch(options: &PlanOptions, handle: &TableHandle) -> Result<PlanOptions> {
    match &options.branch {
        Some(branch) if branch != handle.branch() => Err(wrong_branch(branch, handle)),
        _ => Ok(PlanOptions { branch: Some(handle.branch().to_owned()), ..options.clone() }),
    }
}

fn wrong_branch(branch: &str, handle: &TableHandle) -> Error {
    Error::new(
        ErrorKind::Configuration,
        format!(
            "the plan is for branch `{branch}`, but commits would go to `{}`: open that branch",
            handle.branch()
        ),
    )
}
