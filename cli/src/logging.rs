//! Logs: on standard error, in text or JSON.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::render::no_colour;

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Errors alone (`-q`).
    Quiet,
    /// What a person should know.
    Normal,
    /// What happens (`-v`).
    Verbose,
    /// How it happens (`-vv` and more).
    Debug,
}

impl Verbosity {
    fn directives(self) -> &'static str {
        // The embedded broker and the libraries below it stay silent unless something is wrong with them,
        // and even then their lines belong into debugging.
        match self {
            Self::Quiet => "off,firn=error,firn_table=error,firn_writer=error,firn_compactor=error",
            Self::Normal => "off,firn=warn,firn_table=warn,firn_writer=warn,firn_compactor=warn",
            Self::Verbose => "off,firn=info,firn_table=info,firn_writer=info,firn_compactor=info",
            Self::Debug => "warn,firn=debug,firn_table=debug,firn_writer=debug,firn_compactor=debug",
        }
    }
}

/// Starts logging; `FIRN_LOG` takes directives of its own (`firn_table=trace,warn`).
pub(crate) fn start(verbosity: Verbosity, format: &str) -> anyhow::Result<()> {
    let filter = match std::env::var("FIRN_LOG") {
        Ok(directives) => EnvFilter::try_new(&directives).with_context(|| {
            format!("FIRN_LOG = `{directives}` cannot be read, so nothing could be logged")
        })?,
        Err(_) => EnvFilter::new(verbosity.directives()),
    };
    let colour = io::stderr().is_terminal() && !no_colour();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colour);
    let started = match format {
        "json" => builder.json().try_init(),
        _ => builder.with_target(false).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logs cannot be started: {error}"))
}
