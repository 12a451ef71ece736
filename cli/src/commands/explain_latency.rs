//! `firn explain-latency`: where the time of a recording's commits went.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use crate::context::Context;
use crate::events::latency_text;
use crate::exit::{ExitCode, Failure};
use crate::flight::explain::{Explanation, explain, read};
use crate::render::listing::{Listing, Unit};
use crate::units;

/// What to explain.
#[derive(Debug, Args)]
pub(crate) struct ExplainLatencyArgs {
    /// A recording of `firn write --flight-recorder`
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Reads the recording and prints what it says.
pub(crate) fn run(args: &ExplainLatencyArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let path = args.file.display();
    let recording = read(&args.file)
        .map_err(|error| Failure::configuration(error.to_string()))
        .with_context(|| format!("the recording `{path}` cannot be read"))?;
    let Some(said) = explain(&recording) else {
        let what = format!("the recording `{path}` has no commit with messages: record for longer");
        return Err(Failure::configuration(what).into());
    };
    context.output.value(&said, human)?;
    Ok(ExitCode::Done)
}

fn human(said: &Explanation) -> String {
    let columns = [
        ("phase", Unit::Plain),
        ("p50_ms", Unit::Millis),
        ("p95_ms", Unit::Millis),
        ("p99_ms", Unit::Millis),
        ("max_ms", Unit::Millis),
        ("share_of_slowest", Unit::Plain),
    ];
    let mut listing = Listing::of(&columns);
    for phase in &said.phases {
        listing.push(vec![
            json!(phase.phase),
            json!(phase.p50_ms),
            json!(phase.p95_ms),
            json!(phase.p99_ms),
            json!(phase.max_ms),
            json!(percent(phase.share_of_slowest)),
        ]);
    }
    let mut text = format!(
        "{} commits; slowest message of each: {}\n\n{}",
        units::format_count(said.commits as u64),
        latency_text(&said.latency_ms),
        listing.human(),
    );
    // Writing to a text cannot fail.
    if let Some(binding) = &said.binding {
        let (phase, share) = (binding.phase, percent(binding.share));
        let _ = writeln!(
            text,
            "\nbinding: {phase}, {share} of the slowest {} commits: {}",
            said.slowest_commits, binding.advice
        );
    }
    if said.unreadable_lines > 0 {
        let _ = writeln!(text, "{} lines are no records and were left out", said.unreadable_lines);
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
