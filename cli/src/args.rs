//! The command line: one tree, each verb's arguments beside its code in [`commands`](crate::commands).

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::commands;
use crate::config::sources::Given;
use crate::exit::ExitCode;
use crate::flags::{Flags, Sections};
use crate::output::Format;

/// Streams Kafka into Iceberg within a second or so, and packs the small files while the stream runs.
#[derive(Debug, Parser)]
#[command(name = "firn", version, after_help = ExitCode::table(), disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The configuration file [default: firn.toml in the working directory, where there is one]
    #[arg(long, global = true, env = "FIRN_CONFIG", value_name = "PATH", help_heading = "Everywhere")]
    pub config: Option<PathBuf>,
    /// One setting, as in the file: --set write.flush-age=2s
    #[arg(long = "set", global = true, value_name = "PATH=VALUE", help_heading = "Everywhere")]
    pub assignments: Vec<String>,
    /// The shape of the results on standard output
    #[arg(long, global = true, value_enum, default_value_t, help_heading = "Everywhere")]
    pub format: Format,
    /// More logs on standard error; twice for even more
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Everywhere")]
    pub verbose: u8,
    /// No logs below errors and no progress
    #[arg(short, long, global = true, help_heading = "Everywhere", conflicts_with = "verbose")]
    pub quiet: bool,
    #[command(flatten)]
    pub log: Flags<LogSection>,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows everything at work for a minute: stream, small files, compaction, the same query before and after
    Demo(commands::demo::DemoArgs),
    /// Produces messages from a template
    Generate(commands::generate::GenerateArgs),
    /// Streams topics into a table
    Write(commands::write::WriteArgs),
    /// Tells which files a compaction would rewrite, and why
    Plan(commands::plan::PlanArgs),
    /// Rewrites small files into large ones while others go on writing
    Compact(commands::compact::CompactArgs),
    /// Removes old snapshots and the files that only they need
    Expire(commands::expire::ExpireArgs),
    /// Looks into a table
    #[command(subcommand)]
    Inspect(commands::inspect::InspectCommand),
    /// Shows or sets which Kafka offsets the table holds
    #[command(subcommand)]
    Offsets(commands::offsets::OffsetsCommand),
    /// Tells what becomes of messages in a table's columns
    #[command(subcommand)]
    Schema(commands::schema::SchemaCommand),
    /// Looks at dead letters, and makes rows of those that decode by now
    #[command(subcommand)]
    Dlq(commands::dlq::DlqCommand),
    /// Proves from the table alone that no offset is missing or counted twice
    Verify(commands::verify::VerifyArgs),
    /// Tells where the time of recorded commits went, and which phase makes the slowest of them slow
    ExplainLatency(commands::explain_latency::ExplainLatencyArgs),
    /// Checks the configuration, and with --connect everything it points at
    Check(commands::check::CheckArgs),
    /// Stands in front of a catalog or a store and breaks what its rules name
    Chaos(commands::chaos::ChaosArgs),
    /// Shows settings
    #[command(subcommand)]
    Config(commands::config::ConfigCommand),
    /// Prints a completion script for a shell
    Completions(commands::completions::CompletionsArgs),
}

impl Command {
    /// What the flags of the command set.
    pub(crate) fn given(&self) -> Vec<Given> {
        match self {
            Self::Demo(args) => args.given(),
            Self::Generate(args) => args.given(),
            Self::Write(args) => args.given(),
            Self::Plan(args) => args.given(),
            Self::Compact(args) => args.given(),
            Self::Expire(args) => args.given(),
            Self::Inspect(command) => command.given(),
            Self::Offsets(command) => command.given(),
            Self::Schema(command) => command.given(),
            Self::Dlq(command) => command.given(),
            Self::Verify(args) => args.given(),
            Self::Check(args) => args.given(),
            Self::ExplainLatency(_) | Self::Chaos(_) | Self::Config(_) | Self::Completions(_) => Vec::new(),
        }
    }
}

/// Section `[log]`.
#[derive(Debug)]
pub(crate) struct LogSection;

impl Sections for LogSection {
    const NAMES: &'static [&'static str] = &["log"];
}

/// Which table: by name, in a catalog.
#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// The table, as namespace.name [default: table.name of the configuration]
    #[arg(value_name = "TABLE")]
    table: Option<String>,
    #[command(flatten)]
    flags: Flags<TableSection>,
}

impl TableArgs {
    /// What was given.
    pub(crate) fn given(&self) -> Vec<Given> {
        let mut given = self.flags.given();
        if let Some(table) = &self.table {
            given.push(crate::config::sources::from_flag("table.name", "TABLE", table));
        }
        given
    }
}

/// Section `[table]`.
#[derive(Debug)]
pub(crate) struct TableSection;

impl Sections for TableSection {
    const NAMES: &'static [&'static str] = &["table"];
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn no_two_flags_of_a_command_collide() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_become_settings_of_the_same_path() {
        let line = ["firn", "write", "a.b", "--flush-age", "2s", "--topic", "x", "--topic", "y", "--create"];
        let cli = Cli::try_parse_from(line).unwrap();
        let settings = crate::config::Settings::resolve(cli.command.given()).unwrap();
        assert_eq!(settings.text("table.name"), Some("a.b"));
        assert_eq!(settings.duration("write.flush-age"), Some(std::time::Duration::from_secs(2)));
        assert_eq!(settings.list("kafka.topics"), ["x", "y"]);
        assert!(settings.flag("create.enabled"));
    }

    #[test]
    fn a_flag_whose_value_is_of_the_wrong_kind_is_a_usage_error() {
        for line in [["firn", "write", "--memory", "1G"], ["firn", "write", "--mode", "fast"]] {
            let error = Cli::try_parse_from(line).unwrap_err();
            assert_eq!(error.exit_code(), i32::from(ExitCode::Usage.number()), "{line:?}");
        }
    }
}
