//! `firn compact`: rewrites small files into large ones.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use firn_compactor::{Event, Observer, Plan, RunReport, plan, run_plan};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::TableArgs;
use crate::commands::plan::CompactSection;
use crate::compaction::{compact_options, max_time};
use crate::config::sources::Given;
use crate::context::Context;
use crate::exit::{ExitCode, Failure};
use crate::flags::Flags;
use crate::progress::Progress;
use crate::units;

/// What to compact.
#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    flags: Flags<CompactSection>,
    /// Print the plan and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Exit with 4 where there is nothing to do
    #[arg(long)]
    require_work: bool,
    /// Run a plan that `firn plan --format json` printed, instead of making one
    #[arg(long, value_name = "PATH", conflicts_with = "dry_run")]
    plan: Option<PathBuf>,
}

impl CompactArgs {
    /// What the flags set.
    pub(crate) fn given(&self) -> Vec<Given> {
        [self.table.given(), self.flags.given()].concat()
    }
}

/// Plans, rewrites, commits.
pub(crate) async fn run(args: &CompactArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let handle = context.open_table().await?;
    let options = compact_options(&context.settings)?;
    let plan = match &args.plan {
        Some(path) => read_plan(path)?,
        None => plan(&handle.table(), &options.plan).await?,
    };
    if args.dry_run {
        crate::commands::plan::print(&plan, context)?;
    } else if !plan.is_empty() {
        let observer = Arc::new(Watch::new(&plan, context));
        let limited = Limited::start(context, max_time(&options.plan));
        let report = run_plan(&handle, &plan, &options, observer, limited.stop.clone()).await?;
        context.output.value(&report, human)?;
        // What its time did not suffice for is the next run's.
        let in_time = report.stopped && !context.stop.is_cancelled() && report.dropped.is_empty();
        return Ok(if in_time { ExitCode::Done } else { code(&report) });
    } else {
        let report = RunReport { planned_on: plan.planned_on, ..RunReport::default() };
        context.output.value(&report, |_| format!("{}: nothing to do\n", plan.table))?;
    }
    Ok(if plan.is_empty() && args.require_work { ExitCode::NothingToDo } else { ExitCode::Done })
}

/// A run that ends by itself when its time is over.
struct Limited {
    stop: CancellationToken,
    timer: Option<JoinHandle<()>>,
}

impl Limited {
    fn start(context: &Context, time: Option<Duration>) -> Self {
        let stop = context.stop.child_token();
        let timer = time.map(|time| {
            let stop = stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                stop.cancel();
            })
        });
        Self { stop, timer }
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        self.timer.iter().for_each(JoinHandle::abort);
    }
}

fn read_plan(path: &PathBuf) -> anyhow::Result<Plan> {
    let what = || format!("the plan `{}` cannot be read", path.display());
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("{}: {error}", what())))?;
    serde_json::from_str(&text).map_err(|error| Failure::usage(error.to_string())).with_context(what)
}

/// Nothing dropped is done; everything dropped is a table that others change faster than it can be rewritten.
fn code(report: &RunReport) -> ExitCode {
    match (report.groups_landed, report.dropped.is_empty() && !report.stopped) {
        (_, true) => ExitCode::Done,
        (0, false) if report.stopped => ExitCode::Interrupted,
        (0, false) => ExitCode::Unavailable,
        (_, false) => ExitCode::PartlyDone,
    }
}

fn human(report: &RunReport) -> String {
    let mut out = format!(
        "{} of {} groups rewritten: {} files ({}) became {} ({}), {} rows, in {}\n",
        report.groups_landed,
        report.groups_planned,
        units::format_count(report.files_in),
        units::format_bytes(report.bytes_in),
        units::format_count(report.files_out),
        units::format_bytes(report.bytes_out),
        units::format_count(report.rows),
        units::format_millis(report.seconds * 1_000.0),
    );
    for dropped in &report.dropped {
        let _ = writeln!(
            out,
            "  group {} ({}) was dropped: {}",
            dropped.group, dropped.partition, dropped.reason
        );
    }
    if report.stopped {
        out.push_str("  stopped before the end: finished groups are committed, the rest is as before\n");
    }
    out
}

/// Shows how far the rewriting has come.
#[derive(Debug)]
struct Watch {
    progress: Progress,
    bytes: AtomicU64,
}

impl Watch {
    fn new(plan: &Plan, context: &Context) -> Self {
        Self { progress: context.progress("rewriting", plan.input_bytes() >> 20), bytes: AtomicU64::new(0) }
    }
}

impl Observer for Watch {
    fn observe(&self, event: &Event) {
        match event {
            Event::Progress { bytes_read, .. } => {
                let read = self.bytes.fetch_add(*bytes_read, Ordering::Relaxed) + bytes_read;
                self.progress.at(read >> 20, "MiB");
            }
            Event::GroupDropped { group, reason } => tracing::warn!(group, reason, "group dropped"),
            Event::Committed { snapshot_id, groups, conflicts } => {
                tracing::info!(snapshot_id, groups = groups.len(), conflicts, "rewrite committed");
            }
            _ => {}
        }
    }
}
