//! `firn completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::context::Context;
use crate::exit::ExitCode;

/// For which shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "firn", &mut script);
    context.output.text(&String::from_utf8(script)?)?;
    Ok(ExitCode::Done)
}
