//! Flags that set settings: made from the declarations, so that flag, file and variable never differ.

use std::marker::PhantomData;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::config::key::{Key, Kind};
use crate::config::keys;
use crate::config::sources::{self, Given};
use crate::config::value::Value;

/// A choice of sections whose flags a command takes.
pub(crate) trait Sections {
    /// Names as [`keys::SECTIONS`] has them.
    const NAMES: &'static [&'static str];
    /// Flags of these sections that mean nothing to the command.
    const WITHOUT: &'static [&'static str] = &[];
}

/// The flags of some sections, as they were given.
#[derive(Debug)]
pub(crate) struct Flags<S> {
    given: Vec<Given>,
    sections: PhantomData<S>,
}

impl<S> Flags<S> {
    /// What was given, for [`Settings::resolve`](crate::config::Settings::resolve).
    pub(crate) fn given(&self) -> Vec<Given> {
        self.given.clone()
    }
}

impl<S: Sections> Flags<S> {
    fn keys() -> impl Iterator<Item = (&'static str, &'static Key)> {
        keys::SECTIONS
            .iter()
            .filter(|(section, _, _)| S::NAMES.contains(section))
            .flat_map(|(_, _, keys)| keys.iter())
            .filter_map(|key| Some((key.flag?, key)))
            .filter(|(flag, _)| !S::WITHOUT.contains(flag))
    }
}

impl<S: Sections> FromArgMatches for Flags<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self { given: Vec::new(), sections: PhantomData };
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for (flag, key) in Self::keys() {
            let Some(values) = matches.get_many::<String>(key.path) else { continue };
            let values: Vec<&str> = values.map(String::as_str).collect();
            self.given.push(sources::from_flag(key.path, &format!("--{flag}"), &values.join(",")));
        }
        Ok(())
    }
}

impl<S: Sections> Args for Flags<S> {
    fn augment_args(command: Command) -> Command {
        Self::keys().fold(command, |command, (flag, key)| command.arg(argument(flag, key)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(flag: &'static str, key: &'static Key) -> Arg {
    let arg = Arg::new(key.path).long(flag).help(help(key)).value_name(value_name(key.kind));
    // Logs are of the program, not of a verb: their flags may stand behind it, as `--verbose` may.
    let arg = arg.global(key.path.starts_with("log."));
    let kind = key.kind;
    match kind {
        Kind::Choice(words) => arg.value_parser(PossibleValuesParser::new(words)),
        Kind::Bool => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_parser(PossibleValuesParser::new(["true", "false"])),
        Kind::List => arg.action(ArgAction::Append),
        Kind::Properties => arg.action(ArgAction::Append).value_parser(checked(kind)),
        _ => arg.value_parser(checked(kind)),
    }
}

/// Checks the text of a flag by its kind, and leaves it a text.
fn checked(kind: Kind) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static {
    move |text: &str| Value::from_text(kind, text).map(|_| text.to_owned())
}

fn help(key: &Key) -> String {
    match key.default {
        Some(default) => format!("{} [default: {default}]", key.doc),
        None => key.doc.to_owned(),
    }
}

fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "TEXT",
        Kind::Path => "PATH",
        Kind::Bool => "BOOL",
        Kind::Count(..) => "N",
        Kind::Bytes => "SIZE",
        Kind::Duration => "DURATION",
        Kind::Choice(_) => "WORD",
        Kind::List => "ITEM",
        Kind::Properties => "KEY=VALUE",
    }
}
