//! `firn config`: defaults, schema, effective settings.

use clap::Subcommand;

use crate::config::{defaults, schema, show};
use crate::context::Context;
use crate::exit::ExitCode;

/// What to show.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// A commented configuration file with every setting
    Defaults,
    /// The JSON schema of the configuration file
    Schema,
    /// The effective settings and where each comes from, secrets masked
    Show,
}

/// Prints it.
pub(crate) fn run(command: &ConfigCommand, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        ConfigCommand::Defaults => context.output.text(&defaults::file())?,
        ConfigCommand::Schema => context.output.text(&serde_json::to_string_pretty(&schema::schema())?)?,
        ConfigCommand::Show => context.output.listing(&show::listing(&context.settings))?,
    }
    Ok(ExitCode::Done)
}
