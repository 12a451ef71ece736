//! `firn demo`: everything at work for a minute.

use clap::Args;

use crate::config::sources::Given;
use crate::context::Context;
use crate::demo;
use crate::exit::ExitCode;
use crate::flags::{Flags, Sections};

/// How to show it.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    flags: Flags<DemoSections>,
}

/// Sections that the demo reads.
#[derive(Debug)]
pub(crate) struct DemoSections;

impl Sections for DemoSections {
    const NAMES: &'static [&'static str] = &["demo", "kafka"];
    // The demo makes a topic of its own.
    const WITHOUT: &'static [&'static str] = &["topic"];
}

impl DemoArgs {
    /// What the flags set.
    pub(crate) fn given(&self) -> Vec<Given> {
        self.flags.given()
    }
}

/// Runs it; 7 where rows are missing or twice in the table.
pub(crate) async fn run(context: &Context) -> anyhow::Result<ExitCode> {
    let report = demo::run(context).await?;
    context.output.value(&report, demo::report::human)?;
    Ok(if report.complete() { ExitCode::Done } else { ExitCode::BadData })
}
