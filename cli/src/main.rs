//! The program `firn`: arguments, configuration, rendering and exit codes around the libraries.
//!
//! | module | subject |
//! | --- | --- |
//! | [`args`], [`flags`] | the command line |
//! | [`config`] | settings from four sources, all problems at once |
//! | [`context`] | what every command gets: settings, output, the signal to stop |
//! | [`commands`] | one verb, one file |
//! | [`chaos`] | `firn chaos`: a proxy that breaks what its rules name |
//! | [`demo`], [`broker`] | `firn demo`: everything at work, and the Kafka broker in memory it runs on |
//! | [`telemetry`], [`flight`] | metrics, health, log lines, flight recorder |
//! | [`render`], [`units`], [`output`], [`progress`], [`logging`] | what people and programs read |
//! | [`exit`] | exit codes, and which error has which |
//!
//! Results go to standard output and nothing else does; logs and progress go to standard error.

mod args;
#[cfg(feature = "embedded-broker")]
mod broker;
mod chaos;
mod commands;
mod compaction;
mod config;
mod context;
mod creation;
mod demo;
mod dry_run;
mod events;
mod exit;
mod flags;
mod flight;
mod latency;
mod load;
mod logging;
mod output;
mod progress;
mod render;
mod signals;
mod telemetry;
mod units;
mod writing;

use std::io::Write;
use std::process::ExitCode as ProcessCode;

use clap::Parser;

use crate::args::Cli;
use crate::context::Context;
use crate::exit::ExitCode;

fn main() -> ProcessCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let code = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let result = runtime.block_on(run(cli));
            // A library may have left a blocking call behind; the process does not wait for it.
            runtime.shutdown_background();
            exit::report(result)
        }
        Err(error) => exit::report(Err(anyhow::Error::new(error).context("the runtime cannot be started"))),
    };
    ProcessCode::from(code.number())
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let context = Context::new(&cli)?;
    commands::run(cli.command, &context).await
}

/// Help and version go to standard output and are no error; anything else is a usage error.
fn usage(error: &clap::Error) -> ProcessCode {
    let printed = error.print();
    let _ = std::io::stdout().flush();
    match (error.use_stderr(), printed) {
        (true, _) => ProcessCode::from(ExitCode::Usage.number()),
        (false, _) => ProcessCode::from(ExitCode::Done.number()),
    }
}
