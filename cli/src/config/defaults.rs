//! The commented default file.

use std::fmt::Write as _;

use crate::config::key::{Key, Kind};
use crate::config::keys;
use crate::config::value::Value;

/// A TOML file with every setting: defaults as values, settings without default as comments.
///
/// It parses back to the defaults, which a test holds.
pub(crate) fn file() -> String {
    let mut out = String::from(
        "# Settings of firn with their defaults. Later sources win:\n\
         # defaults < this file < environment (FIRN__SECTION__KEY) < command line.\n\
         # Sizes take KiB, MiB, GiB (1024) or kB, MB, GB (1000); durations ms, s, m, h, d.\n",
    );
    for (section, about, keys) in keys::SECTIONS {
        let named = section.contains('*');
        let lead = if named { "# " } else { "" };
        let _ = write!(out, "\n# {about}\n{lead}[{}]\n", section.replace('*', "NAME"));
        for key in *keys {
            let _ = writeln!(out, "# {}{}", key.doc, expectation(key.kind));
            let _ = writeln!(out, "{}", line(key));
        }
    }
    out
}

/// `name = value`, as a comment where there is no default.
fn line(key: &Key) -> String {
    let name = key.path.rsplit('.').next().unwrap_or(key.path);
    match key.default.map(|default| Value::from_text(key.kind, default)) {
        Some(Ok(value)) => format!("{name} = {}", value.to_toml(key.kind)),
        _ => format!("# {name} = {}", placeholder(key.kind)),
    }
}

fn placeholder(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Path | Kind::Choice(_) => "\"…\"",
        Kind::Bool => "false",
        Kind::Count(..) => "1",
        Kind::Bytes => "\"128 MiB\"",
        Kind::Duration => "\"5s\"",
        Kind::List => "[\"…\"]",
        Kind::Properties => "{ \"name\" = \"value\" }",
    }
}

fn expectation(kind: Kind) -> String {
    match kind {
        Kind::Choice(words) => format!(" One of {}.", words.join(", ")),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::{Settings, Source, sources};

    #[test]
    fn the_default_file_parses_back_to_the_defaults() {
        let source = Source::File(PathBuf::from("firn.toml"));
        let given = sources::from_toml(&file(), &source).unwrap();
        assert!(given.len() > 30, "most settings have a default");
        let read = Settings::resolve(given).unwrap();
        let built_in = Settings::resolve([]).unwrap();
        let values = |settings: &Settings| -> Vec<_> {
            settings.iter().map(|effective| (effective.path.clone(), effective.value.clone())).collect()
        };
        assert_eq!(values(&read), values(&built_in));
    }

    #[test]
    fn settings_without_default_parse_once_uncommented() {
        for key in keys::all().filter(|key| key.default.is_none() && !key.path.contains('*')) {
            let (section, _) = key.path.rsplit_once('.').unwrap();
            let line = line(key);
            let text = format!("[{section}]\n{}", line.trim_start_matches("# "));
            let given = sources::from_toml(&text, &Source::Default).unwrap();
            assert!(Settings::resolve(given).is_ok(), "{text}");
        }
    }
}
