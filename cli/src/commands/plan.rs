//! `firn plan`: what a compaction would do, without doing it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use firn_compactor::{Plan, Why, plan};
use serde_json::json;

use crate::args::TableArgs;
use crate::commands::inspect::WIDTH;
use crate::compaction::plan_options;
use crate::config::sources::Given;
use crate::context::Context;
use crate::exit::ExitCode;
use crate::flags::{Flags, Sections};
use crate::output::Format;
use crate::render::histogram;
use crate::render::listing::{Listing, Unit};
use crate::units;

/// What to plan.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    flags: Flags<CompactSection>,
    /// Why this file is or is not rewritten: its path, or the end of it
    #[arg(long, value_name = "PATH")]
    why: Option<String>,
    /// Exit with 4 where there is nothing to do
    #[arg(long)]
    require_work: bool,
}

/// Section `[compact]`.
#[derive(Debug)]
pub(crate) struct CompactSection;

impl Sections for CompactSection {
    const NAMES: &'static [&'static str] = &["compact"];
}

impl PlanArgs {
    /// What the flags set.
    pub(crate) fn given(&self) -> Vec<Given> {
        [self.table.given(), self.flags.given()].concat()
    }
}

/// Plans and prints.
pub(crate) async fn run(args: &PlanArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let handle = context.open_table().await?;
    let plan = plan(&handle.table(), &plan_options(&context.settings)?).await?;
    if let Some(path) = &args.why {
        let why = plan.why(path);
        context.output.value(&why, |why| explain(path, why, &plan))?;
        return Ok(if why == Why::NotLive { ExitCode::Configuration } else { ExitCode::Done });
    }
    print(&plan, context)?;
    Ok(if plan.is_empty() && args.require_work { ExitCode::NothingToDo } else { ExitCode::Done })
}

/// Prints a plan in the format that was asked for.
pub(crate) fn print(plan: &Plan, context: &Context) -> anyhow::Result<()> {
    match context.output.format() {
        Format::Human => context.output.text(&human(plan))?,
        Format::Json => context.output.text(&serde_json::to_string_pretty(plan)?)?,
        Format::Csv => context.output.listing(&groups(plan))?,
    }
    Ok(())
}

fn human(plan: &Plan) -> String {
    let mut out = String::new();
    let mut target = units::format_bytes(plan.options.sizes.target_bytes);
    if let Some(policy) = &plan.policy {
        let _ = write!(target, ", policy {policy}");
    }
    if plan.is_empty() {
        let _ = writeln!(out, "{}: nothing to do (target {target})", plan.table);
    } else {
        let _ = writeln!(
            out,
            "{}: {} files ({}, {} rows) become at most {}, in {} groups (target {target})\n",
            plan.table,
            units::format_count(plan.input_files()),
            units::format_bytes(plan.input_bytes()),
            units::format_count(plan.input_rows()),
            units::format_count(plan.expected_outputs()),
            plan.groups.len(),
        );
        out.push_str(&groups(plan).human());
        let _ = write!(
            out,
            "\nfiles by size, now:\n{}files by size, expected:\n{}",
            histogram::lines(&plan.histogram, WIDTH),
            histogram::lines(&plan.expected_histogram, WIDTH),
        );
    }
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for skipped in &plan.skipped {
        *reasons.entry(skipped.reason.to_string()).or_default() += 1;
    }
    if !reasons.is_empty() {
        out.push_str("\nleft alone:\n");
    }
    for (reason, files) in reasons {
        let _ = writeln!(out, "  {:>9} {reason}", units::format_count(files));
    }
    out
}

fn groups(plan: &Plan) -> Listing {
    let mut listing = Listing::of(&[
        ("group", Unit::Id),
        ("partition", Unit::Plain),
        ("spec_id", Unit::Id),
        ("files", Unit::Count),
        ("bytes", Unit::Bytes),
        ("rows", Unit::Count),
        ("expected_files", Unit::Count),
        ("split_bytes", Unit::Bytes),
    ]);
    for group in &plan.groups {
        listing.push(vec![
            json!(group.id),
            json!(group.partition),
            json!(group.spec_id),
            json!(group.files.len()),
            json!(group.bytes),
            json!(group.rows),
            json!(group.expected_outputs),
            json!(group.split_bytes),
        ]);
    }
    listing
}

fn explain(path: &str, why: &Why, plan: &Plan) -> String {
    match why {
        Why::Rewritten { group, files, expected_outputs } => format!(
            "{path}: rewritten in group {group}, whose {files} files become at most {expected_outputs}\n"
        ),
        Why::Skipped(skipped) => format!(
            "{}: left alone: {} ({}; a file is of the right size from {} to {})\n",
            skipped.path,
            skipped.reason,
            units::format_bytes(skipped.bytes),
            units::format_bytes(plan.options.sizes.min_bytes),
            units::format_bytes(plan.options.sizes.max_bytes),
        ),
        Why::NotLive => format!("{path}: not a live file of branch {}\n", plan.branch),
    }
}
