//! Reads the three sources that a user fills: a TOML file, environment variables, the command line.
//!
//! Each reader turns its source into [`Given`] values without judging them.

use crate::config::key::Kind;
use crate::config::keys;
use crate::config::{Problem, Source};

/// Prefix of the environment variables that override settings.
pub(crate) const ENVIRONMENT_PREFIX: &str = "FIRN__";

/// A value as a source gives it.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// The segments of the setting's path.
    pub path: Vec<String>,
    /// The value.
    pub raw: Raw,
    /// Where it stands.
    pub source: Source,
}

/// A value before it is checked.
#[derive(Clone, Debug)]
pub(crate) enum Raw {
    /// Out of a TOML file.
    Toml(toml::Value),
    /// Out of a variable or a flag.
    Text(String),
}

/// Reads a TOML document: each declared setting, and each leaf that is not declared.
pub(crate) fn from_toml(text: &str, source: &Source) -> Result<Vec<Given>, Box<Problem>> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        Box::new(Problem {
            source: source.clone(),
            path: String::new(),
            value: None,
            what: format!("this is not TOML: {}", error.to_string().trim().replace('\n', "\n    ")),
            consequence: "none of its settings was read".to_owned(),
        })
    })?;
    let mut out = Vec::new();
    let mut open = vec![(Vec::new(), table)];
    while let Some((prefix, table)) = open.pop() {
        for (name, value) in table {
            let mut path: Vec<String> = prefix.clone();
            path.push(name);
            match value {
                toml::Value::Table(inner) if keys::find(&path).is_none() => open.push((path, inner)),
                value => out.push(Given { path, raw: Raw::Toml(value), source: source.clone() }),
            }
        }
    }
    Ok(out)
}

/// Reads environment variables: `FIRN__WRITE__MAX_AGE` is `write.max-age`, and below a table of properties
/// `_` stands for `.`: `FIRN__KAFKA__PROPERTIES__SECURITY_PROTOCOL` is `security.protocol`.
pub(crate) fn from_environment(variables: impl IntoIterator<Item = (String, String)>) -> Vec<Given> {
    let mut out: Vec<Given> = variables
        .into_iter()
        .filter_map(|(name, value)| {
            let segments = name.strip_prefix(ENVIRONMENT_PREFIX)?.split("__");
            let path: Vec<String> = segments.map(|s| s.to_ascii_lowercase().replace('_', "-")).collect();
            Some(variable(path, value, Source::Environment(name)))
        })
        .collect();
    out.sort_by(|a, b| a.path.cmp(&b.path));
    out
}

fn variable(path: Vec<String>, value: String, source: Source) -> Given {
    if let Some((last, table)) = path.split_last()
        && keys::find(table).is_some_and(|key| key.kind == Kind::Properties)
    {
        let mut one = toml::Table::new();
        one.insert(last.replace('-', "."), toml::Value::String(value));
        return Given { path: table.to_vec(), raw: Raw::Toml(toml::Value::Table(one)), source };
    }
    Given { path, raw: Raw::Text(value), source }
}

/// Reads what flags say: the setting's path, and the text given for it.
pub(crate) fn from_flag(path: &str, flag: &str, value: &str) -> Given {
    Given { path: split_path(path), raw: Raw::Text(value.to_owned()), source: Source::Flag(flag.to_owned()) }
}

/// Reads `PATH=VALUE`, as `--set` takes it.
pub(crate) fn from_assignment(assignment: &str) -> Result<Given, Box<Problem>> {
    let Some((path, value)) = assignment.split_once('=') else {
        return Err(Box::new(Problem {
            source: Source::Flag("--set".to_owned()),
            path: String::new(),
            value: Some(assignment.to_owned()),
            what: "it is not of the form PATH=VALUE, for instance write.max-age=2s".to_owned(),
            consequence: "nothing was started".to_owned(),
        }));
    };
    let path = split_path(path.trim());
    if keys::find(&path).is_none()
        && let Some(split) = (1..path.len())
            .find(|at| keys::find(&path[..*at]).is_some_and(|key| key.kind == Kind::Properties))
    {
        let mut one = toml::Table::new();
        one.insert(path[split..].join("."), toml::Value::String(value.to_owned()));
        let source = Source::Flag("--set".to_owned());
        return Ok(Given { path: path[..split].to_vec(), raw: Raw::Toml(toml::Value::Table(one)), source });
    }
    Ok(Given { path, raw: Raw::Text(value.to_owned()), source: Source::Flag("--set".to_owned()) })
}

fn split_path(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}
