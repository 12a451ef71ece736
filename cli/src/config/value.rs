//! Values of settings: parsed from text or TOML, written back as TOML.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::config::key::Kind;
use crate::units;

/// A value that has passed the check of its kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Text, a path, or one of a few words.
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// A whole number, or bytes.
    Number(u64),
    /// A duration.
    Duration(Duration),
    /// Several texts.
    List(Vec<String>),
    /// Properties that are passed on.
    Properties(BTreeMap<String, String>),
}

impl Value {
    /// Reads a value as it stands on a command line or in an environment variable.
    pub(crate) fn from_text(kind: Kind, text: &str) -> Result<Self, String> {
        match kind {
            Kind::Text | Kind::Path if text.trim().is_empty() => Err("it is empty".to_owned()),
            Kind::Text | Kind::Path => Ok(Self::Text(text.to_owned())),
            Kind::Bool => match text.trim() {
                "true" => Ok(Self::Bool(true)),
                "false" => Ok(Self::Bool(false)),
                _ => Err("true or false is expected".to_owned()),
            },
            Kind::Count(low, high) => in_bounds(units::parse_count(text)?, low, high),
            Kind::Bytes => units::parse_bytes(text).map(Self::Number),
            Kind::Duration => units::parse_duration(text).map(Self::Duration),
            Kind::Choice(words) => choice(text.trim(), words),
            Kind::List => Ok(Self::List(split_list(text))),
            Kind::Properties => properties_from_text(text),
        }
    }

    /// Reads a value as it stands in a TOML file.
    pub(crate) fn from_toml(kind: Kind, value: &toml::Value) -> Result<Self, String> {
        let wrong = || format!("{} is expected", kind.noun());
        match (kind, value) {
            (Kind::List, toml::Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect::<Result<_, _>>()
                .map(Self::List),
            (Kind::List, toml::Value::String(one)) => Ok(Self::List(vec![one.clone()])),
            (Kind::Properties, toml::Value::Table(table)) => flatten(table).map(Self::Properties),
            (Kind::Bool, toml::Value::Boolean(value)) => Ok(Self::Bool(*value)),
            (Kind::Count(low, high), toml::Value::Integer(value)) => {
                let value = u64::try_from(*value).map_err(|_| wrong())?;
                in_bounds(value, low, high)
            }
            (Kind::Bytes, toml::Value::Integer(value)) => {
                u64::try_from(*value).map(Self::Number).map_err(|_| wrong())
            }
            (Kind::List | Kind::Properties | Kind::Bool | Kind::Count(..), _) => Err(wrong()),
            (_, toml::Value::String(text)) => Self::from_text(kind, text),
            (Kind::Duration, toml::Value::Integer(number)) => Self::from_text(kind, &number.to_string()),
            _ => Err(wrong()),
        }
    }

    /// The value as TOML would write it.
    pub(crate) fn to_toml(&self, kind: Kind) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        match self {
            Self::Text(text) => quoted(text),
            Self::Bool(value) => value.to_string(),
            Self::Number(bytes) if kind == Kind::Bytes => quoted(&exact_bytes(*bytes)),
            Self::Number(count) => count.to_string(),
            Self::Duration(duration) => quoted(&exact_duration(*duration)),
            Self::List(items) => {
                format!("[{}]", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", "))
            }
            Self::Properties(properties) => {
                let pairs: Vec<String> = properties
                    .iter()
                    .map(|(key, value)| format!("{} = {}", quoted(key), quoted(value)))
                    .collect();
                if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
            }
        }
    }
}

/// `key=value,key=value`; a comma within a value cannot be written so, the file can.
fn properties_from_text(text: &str) -> Result<Value, String> {
    split_list(text)
        .iter()
        .map(|pair| {
            pair.split_once('=')
                .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
                .ok_or_else(|| format!("`{pair}` is not of the form key=value"))
        })
        .collect::<Result<_, _>>()
        .map(Value::Properties)
}

/// Splits at commas that do not stand within brackets: `day(ts),bucket(8, id)` has two parts.
fn split_list(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match parts.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn in_bounds(value: u64, low: u64, high: u64) -> Result<Value, String> {
    if (low..=high).contains(&value) {
        return Ok(Value::Number(value));
    }
    match high {
        u64::MAX => Err(format!("at least {low} is expected")),
        _ => Err(format!("{low} to {high} is expected")),
    }
}

fn choice(text: &str, words: &[&str]) -> Result<Value, String> {
    if words.contains(&text) {
        return Ok(Value::Text(text.to_owned()));
    }
    Err(format!("one of {} is expected", words.join(", ")))
}

/// Properties may be written quoted (`"s3.region" = "…"`) or dotted (`s3.region = "…"`): both are one text.
fn flatten(table: &toml::Table) -> Result<BTreeMap<String, String>, String> {
    let mut out = BTreeMap::new();
    let mut open: Vec<(String, &toml::Table)> = vec![(String::new(), table)];
    while let Some((prefix, table)) = open.pop() {
        for (name, value) in table {
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            let text = match value {
                toml::Value::Table(inner) => {
                    open.push((path, inner));
                    continue;
                }
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Float(number) => number.to_string(),
                toml::Value::Boolean(value) => value.to_string(),
                _ => return Err(format!("`{path}` is neither a text nor a number nor true or false")),
            };
            out.insert(path, text);
        }
    }
    Ok(out)
}

/// A size in the largest unit that loses nothing.
fn exact_bytes(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    units
        .iter()
        .find(|(_, scale)| bytes > 0 && bytes.is_multiple_of(*scale))
        .map_or_else(|| format!("{bytes} B"), |(name, scale)| format!("{} {name}", bytes / scale))
}

/// A duration in the largest unit that loses nothing.
fn exact_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let units = [
        ("d", 86_400_000_000_000_u128),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ];
    units
        .iter()
        .find(|(_, scale)| nanos.is_multiple_of(*scale))
        .map_or_else(|| format!("{nanos}ns"), |(name, scale)| format!("{}{name}", nanos / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_so_that_they_read_back() {
        let cases = [
            (Kind::Bytes, "128 MiB", "\"128 MiB\""),
            (Kind::Bytes, "1000", "\"1000 B\""),
            (Kind::Duration, "1h 30m", "\"90m\""),
            (Kind::Duration, "1500 us", "\"1500us\""),
            (Kind::Count(0, 10), "7", "7"),
            (Kind::Bool, "true", "true"),
            (Kind::Text, "a \"b\"", "'a \"b\"'"),
        ];
        for (kind, text, expected) in cases {
            let value = Value::from_text(kind, text).unwrap();
            assert_eq!(value.to_toml(kind), expected);
            let table: toml::Table = format!("x = {expected}").parse().unwrap();
            assert_eq!(Value::from_toml(kind, &table["x"]), Ok(value), "{text}");
        }
    }

    #[test]
    fn commas_within_brackets_do_not_split_a_list() {
        let expected = ["day(ts)", "bucket(8, id)", "region"].map(str::to_owned).to_vec();
        assert_eq!(Value::from_text(Kind::List, "day(ts), bucket(8, id) ,region"), Ok(Value::List(expected)));
    }

    #[test]
    fn dotted_and_quoted_properties_are_the_same() {
        let table: toml::Table =
            "s3.region = \"eu\"\n\"s3.endpoint\" = \"http://x\"\ns3.path-style-access = true"
                .parse()
                .unwrap();
        let expected = [("s3.endpoint", "http://x"), ("s3.path-style-access", "true"), ("s3.region", "eu")];
        let expected: BTreeMap<_, _> = expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(
            Value::from_toml(Kind::Properties, &toml::Value::Table(table)),
            Ok(Value::Properties(expected))
        );
    }

    #[test]
    fn values_outside_their_bounds_say_what_is_expected() {
        assert_eq!(Value::from_text(Kind::Count(1, 64), "65").unwrap_err(), "1 to 64 is expected");
        assert_eq!(Value::from_text(Kind::Count(1, u64::MAX), "0").unwrap_err(), "at least 1 is expected");
        assert_eq!(Value::from_text(Kind::Choice(&["a", "b"]), "c").unwrap_err(), "one of a, b is expected");
    }
}
