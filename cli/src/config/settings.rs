//! The effective settings: each value with where it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::key::{Exposure, Key};
use crate::config::keys;
use crate::config::sources::{Given, Raw};
use crate::config::value::Value;
use crate::config::{Problem, Problems};
use crate::exit::Failure;

/// Where a value comes from; a later one wins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// The built-in default.
    Default,
    /// A configuration file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
    /// A flag of the command line.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One effective value.
#[derive(Clone, Debug)]
pub(crate) struct Effective {
    /// Its declaration.
    pub key: &'static Key,
    /// The segments of its path; a name that the user chose may hold dots.
    pub path: Vec<String>,
    /// The value.
    pub value: Value,
    /// Where it comes from.
    pub source: Source,
}

/// All effective settings, by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    values: BTreeMap<String, Effective>,
}

impl Settings {
    /// Lays the given values over the defaults, in the order in which they come.
    ///
    /// # Errors
    ///
    /// All values that are unknown or of the wrong kind.
    pub(crate) fn resolve(given: impl IntoIterator<Item = Given>) -> Result<Self, Problems> {
        let mut settings = Self::default();
        let mut problems = Vec::new();
        for key in keys::all() {
            let Some(default) = key.default else { continue };
            match Value::from_text(key.kind, default) {
                Ok(value) => {
                    let path = key.path.split('.').map(str::to_owned).collect();
                    settings.put(Effective { key, path, value, source: Source::Default });
                }
                Err(what) => problems.push(problem(key.path.to_owned(), Source::Default, key, what)),
            }
        }
        for one in given {
            if let Err(problem) = settings.take(one) {
                problems.push(*problem);
            }
        }
        if problems.is_empty() { Ok(settings) } else { Err(Problems(problems)) }
    }

    fn take(&mut self, given: Given) -> Result<(), Box<Problem>> {
        let path = given.path.join(".");
        let shown = shown(&given.raw);
        let Some(key) = keys::find(&given.path) else {
            return Err(Box::new(unknown(path, given.source, shown)));
        };
        let value = match &given.raw {
            Raw::Toml(value) => Value::from_toml(key.kind, value),
            Raw::Text(text) => Value::from_text(key.kind, text),
        };
        match value {
            Ok(value) => {
                self.put(Effective { key, path: given.path, value, source: given.source });
                Ok(())
            }
            Err(what) => {
                let shown = shown.filter(|_| key.exposure == Exposure::Plain);
                Err(Box::new(Problem { value: shown, ..problem(path, given.source, key, what) }))
            }
        }
    }

    /// Properties of a later source are added to those of an earlier one; everything else is replaced.
    fn put(&mut self, new: Effective) {
        let path = new.path.join(".");
        if let Value::Properties(more) = &new.value
            && let Some(there) = self.values.get_mut(&path)
            && let Value::Properties(properties) = &mut there.value
        {
            properties.extend(more.clone());
            there.source = new.source;
            return;
        }
        self.values.insert(path, new);
    }

    /// All values, by path.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Effective> {
        self.values.values()
    }

    /// The names in place of the `*` of `section.*.…`.
    pub(crate) fn names(&self, section: &[&str]) -> BTreeSet<&str> {
        self.values
            .values()
            .filter(|effective| below(&effective.path, section))
            .map(|effective| effective.path[section.len()].as_str())
            .collect()
    }

    /// A problem with the effective value of `path`, for checks that look at several settings.
    pub(crate) fn problem(&self, path: &str, what: impl Into<String>) -> Problem {
        let effective = self.values.get(path);
        let consequence = effective.map_or("nothing was started", |e| e.key.consequence);
        Problem {
            source: effective.map_or(Source::Default, |e| e.source.clone()),
            path: path.to_owned(),
            value: effective
                .filter(|e| e.key.exposure == Exposure::Plain)
                .map(|e| e.value.to_toml(e.key.kind)),
            what: what.into(),
            consequence: consequence.to_owned(),
        }
    }

    /// A text, path or word, where it is set.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        match &self.values.get(path)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A text that has a default or that a command cannot do without.
    pub(crate) fn required(&self, path: &str) -> Result<&str, Failure> {
        self.text(path).ok_or_else(|| missing(path))
    }

    /// A path, where it is set.
    pub(crate) fn path(&self, path: &str) -> Option<PathBuf> {
        self.text(path).map(PathBuf::from)
    }

    /// Yes or no; no where it is not set.
    pub(crate) fn flag(&self, path: &str) -> bool {
        matches!(self.values.get(path).map(|e| &e.value), Some(Value::Bool(true)))
    }

    /// A count or a size, where it is set.
    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        match self.values.get(path)?.value {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// A duration, where it is set.
    pub(crate) fn duration(&self, path: &str) -> Option<Duration> {
        match self.values.get(path)?.value {
            Value::Duration(duration) => Some(duration),
            _ => None,
        }
    }

    /// Several texts; none where it is not set.
    pub(crate) fn list(&self, path: &str) -> &[String] {
        match self.values.get(path).map(|e| &e.value) {
            Some(Value::List(items)) => items,
            _ => &[],
        }
    }

    /// Properties; none where they are not set.
    pub(crate) fn properties(&self, path: &str) -> BTreeMap<String, String> {
        match self.values.get(path).map(|e| &e.value) {
            Some(Value::Properties(properties)) => properties.clone(),
            _ => BTreeMap::new(),
        }
    }
}

/// The error of a setting that nobody gave.
pub(crate) fn missing(path: &str) -> Failure {
    let variable = format!("FIRN__{}", path.to_ascii_uppercase().replace('.', "__").replace('-', "_"));
    Failure::configuration(format!(
        "`{path}` is not set, so the command does not know what to work on; set it in the configuration \
         file, with {variable}, or with --set {path}=…"
    ))
}

fn below(path: &[String], section: &[&str]) -> bool {
    path.len() > section.len() && path.iter().zip(section).all(|(own, wanted)| own == wanted)
}

fn problem(path: String, source: Source, key: &Key, what: String) -> Problem {
    Problem { source, path, value: None, what, consequence: key.consequence.to_owned() }
}

fn unknown(path: String, source: Source, value: Option<String>) -> Problem {
    let what = match keys::nearest(&path) {
        Some(near) => format!("there is no such setting; did you mean `{near}`?"),
        None => "there is no such setting; `firn config defaults` lists all".to_owned(),
    };
    Problem { source, path, value, what, consequence: "it would have no effect".to_owned() }
}

fn shown(raw: &Raw) -> Option<String> {
    match raw {
        Raw::Toml(toml::Value::String(text)) | Raw::Text(text) => Some(text.clone()),
        Raw::Toml(toml::Value::Table(_)) => None,
        Raw::Toml(other) => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
