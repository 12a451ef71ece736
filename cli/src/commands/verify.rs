//! `firn verify`: proves from the table alone that no offset is missing or counted twice.

use std::fmt::Write as _;

use clap::Args;
use firn_table::ledger::{self, Ledger, Verification, WriterName};
use serde::Serialize;

use crate::args::TableArgs;
use crate::config::sources::Given;
use crate::context::Context;
use crate::exit::ExitCode;
use crate::units;

/// What to verify.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    table: TableArgs,
}

impl VerifyArgs {
    /// What the flags set.
    pub(crate) fn given(&self) -> Vec<Given> {
        self.table.given()
    }
}

/// What was found about one writer.
#[derive(Debug, Serialize)]
struct Finding {
    branch: String,
    writer: String,
    partitions: usize,
    offsets: u64,
    rows: u64,
    rejected: u64,
    holes: u64,
    gaps: u64,
    commits_checked: usize,
    commits_without_ranges: usize,
    problems: Vec<String>,
}

/// Verifies every writer's ledger of the table; 7 where one does not hold.
pub(crate) async fn run(context: &Context) -> anyhow::Result<ExitCode> {
    let handle = context.open_table().await?;
    let table = handle.table();
    let metadata = table.metadata();
    let mut findings = Vec::new();
    for (branch, writer, _) in Ledger::read_all(metadata.properties())? {
        let verification = ledger::verify(metadata, &branch, &writer)?;
        findings.push(finding(&branch, &writer, verification));
    }
    let name = table.identifier().to_string();
    context.output.value(&findings, |findings| human(&name, findings))?;
    let sound = findings.iter().all(|finding| finding.problems.is_empty());
    Ok(if sound { ExitCode::Done } else { ExitCode::BadData })
}

fn finding(branch: &str, writer: &WriterName, verification: Verification) -> Finding {
    Finding {
        branch: branch.to_owned(),
        writer: writer.to_string(),
        partitions: verification.ledger.cursors.len(),
        offsets: verification.offsets,
        rows: verification.rows,
        rejected: verification.rejected,
        holes: verification.holes,
        gaps: verification.gaps,
        commits_checked: verification.commits_checked,
        commits_without_ranges: verification.commits_without_ranges,
        problems: verification.problems,
    }
}

fn human(table: &str, findings: &[Finding]) -> String {
    if findings.is_empty() {
        return format!("{table}: no writer of firn has a ledger in it, so there is nothing to verify\n");
    }
    let mut out = String::new();
    for finding in findings {
        let _ = writeln!(
            out,
            "{table}, writer {} on {}: {} offsets of {} partitions = {} rows + {} rejected + {} holes + {} gaps; \
             {} commits follow each other{}",
            finding.writer,
            finding.branch,
            units::format_count(finding.offsets),
            finding.partitions,
            units::format_count(finding.rows),
            finding.rejected,
            finding.holes,
            finding.gaps,
            units::format_count(finding.commits_checked as u64),
            match finding.commits_without_ranges {
                0 => String::new(),
                more => format!(" ({more} more list no ranges)"),
            },
        );
        for problem in &finding.problems {
            let _ = writeln!(out, "  VIOLATED: {problem}");
        }
    }
    out
}
