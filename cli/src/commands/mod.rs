//! The verbs, one per file: arguments, and what they do with the libraries.

pub(crate) mod chaos;
pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod dlq;
pub(crate) mod expire;
pub(crate) mod explain_latency;
pub(crate) mod generate;
pub(crate) mod inspect;
pub(crate) mod offsets;
pub(crate) mod plan;
pub(crate) mod schema;
pub(crate) mod verify;
pub(crate) mod write;

use crate::args::Command;
use crate::context::Context;
use crate::exit::ExitCode;

/// Runs one command to its end.
pub(crate) async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(_) => demo::run(context).await,
        Command::Generate(_) => generate::run(context).await,
        Command::Write(args) => write::run(&args, context).await,
        Command::Plan(args) => plan::run(&args, context).await,
        Command::Compact(args) => compact::run(&args, context).await,
        Command::Expire(args) => expire::run(&args, context).await,
        Command::Inspect(command) => inspect::run(&command, context).await,
        Command::Offsets(command) => offsets::run(&command, context).await,
        Command::ExplainLatency(args) => explain_latency::run(&args, context),
        Command::Schema(command) => schema::run(&command, context).await,
        Command::Dlq(command) => dlq::run(&command, context).await,
        Command::Verify(_) => verify::run(context).await,
        Command::Check(args) => check::run(&args, context).await,
        Command::Chaos(args) => chaos::run(&args, context).await,
        Command::Config(command) => config::run(&command, context),
        Command::Completions(args) => completions::run(&args, context),
    }
}
