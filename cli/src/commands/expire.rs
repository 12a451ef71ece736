//! `firn expire`: removes old snapshots and what only they need.

use chrono::Utc;
use clap::Args;
use firn_table::commit::{ExpireOptions, ExpireReport};
use serde_json::json;

use crate::args::TableArgs;
use crate::config::sources::Given;
use crate::config::{Problems, Settings};
use crate::context::Context;
use crate::exit::ExitCode;
use crate::flags::{Flags, Sections};
use crate::units;

/// What to remove.
#[derive(Debug, Args)]
pub(crate) struct ExpireArgs {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    flags: Flags<ExpireSection>,
    /// These snapshots and no others
    #[arg(long = "snapshot-id", value_name = "ID")]
    snapshot_ids: Vec<i64>,
    /// Change nothing; say what would go
    #[arg(long)]
    dry_run: bool,
    /// Exit with 4 where there is nothing to do
    #[arg(long)]
    require_work: bool,
}

/// Section `[expire]`.
#[derive(Debug)]
pub(crate) struct ExpireSection;

impl Sections for ExpireSection {
    const NAMES: &'static [&'static str] = &["expire"];
}

impl ExpireArgs {
    /// What the flags set.
    pub(crate) fn given(&self) -> Vec<Given> {
        [self.table.given(), self.flags.given()].concat()
    }
}

/// Expires and reports.
pub(crate) async fn run(args: &ExpireArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let options = ExpireOptions {
        snapshot_ids: args.snapshot_ids.clone(),
        dry_run: args.dry_run,
        ..expire_options(&context.settings)?
    };
    let handle = context.open_table().await?;
    let report = handle.expire(&options).await?;
    let value = json!({
        "dry_run": args.dry_run,
        "snapshot_ids": report.snapshot_ids,
        "data_files": report.data_files,
        "manifests": report.manifests,
        "manifest_lists": report.manifest_lists,
        "failed": report.failed,
    });
    context.output.value(&value, |_| human(&report, args.dry_run))?;
    Ok(match (report.snapshot_ids.is_empty(), report.failed.is_empty()) {
        (true, _) if args.require_work => ExitCode::NothingToDo,
        (_, false) => ExitCode::PartlyDone,
        (_, true) => ExitCode::Done,
    })
}

fn expire_options(settings: &Settings) -> anyhow::Result<ExpireOptions> {
    let older_than_ms = match settings.text("expire.older-than") {
        Some(text) => Some(
            units::parse_time(text, Utc::now())
                .map_err(|what| Problems(vec![settings.problem("expire.older-than", what)]))?
                .timestamp_millis(),
        ),
        None => None,
    };
    let retain_last =
        settings.number("expire.retain-last").map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    Ok(ExpireOptions { older_than_ms, retain_last, ..ExpireOptions::default() })
}

fn human(report: &ExpireReport, dry_run: bool) -> String {
    let verb = if dry_run { "would be removed" } else { "removed" };
    let count = |items: &[String]| units::format_count(items.len() as u64);
    let mut out = format!(
        "{} snapshots {verb}, with {} data files, {} manifests and {} manifest lists\n",
        units::format_count(report.snapshot_ids.len() as u64),
        count(&report.data_files),
        count(&report.manifests),
        count(&report.manifest_lists),
    );
    if !report.failed.is_empty() {
        out.push_str(&format!(
            "{} files could not be deleted and are left for orphan removal, the first: {}\n",
            count(&report.failed),
            report.failed[0],
        ));
    }
    out
}
