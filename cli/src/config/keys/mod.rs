//! All settings, by section.

mod compact;
mod demo;
mod table;
mod write;

use crate::config::key::Key;

/// Sections with a sentence about each, in the order of the default file.
pub(crate) const SECTIONS: &[(&str, &str, &[Key])] = &[
    ("table", "The table to work on, where the command line names none.", table::TABLE),
    ("catalogs.*", "A named catalog: `--catalog NAME` and `table.catalog` refer to it.", table::CATALOG),
    ("kafka", "Where messages come from, or go to with `firn generate`.", write::KAFKA),
    ("write", "How `firn write` works.", write::WRITE),
    ("dead-letters", "Messages that cannot become rows.", write::DEAD_LETTERS),
    ("create", "How `firn write --create` makes a table that does not exist.", write::CREATE),
    ("decode", "How messages become rows.", write::DECODE),
    ("decode.defaults", "What is declared about the values of all columns.", write::DECODE_DEFAULTS),
    (
        "decode.columns.*",
        "What is declared about one column, by its dotted path in quotes; the rest is as for all columns.",
        write::DECODE_COLUMN,
    ),
    ("compact", "How `firn plan` and `firn compact` choose and rewrite files.", compact::COMPACT),
    ("expire", "Which snapshots `firn expire` removes.", compact::EXPIRE),
    ("generate", "What `firn generate` produces.", demo::GENERATE),
    ("demo", "What `firn demo` does.", demo::DEMO),
    ("log", "Logs, on standard error.", demo::LOG),
];

/// Every setting.
pub(crate) fn all() -> impl Iterator<Item = &'static Key> {
    SECTIONS.iter().flat_map(|(_, _, keys)| keys.iter())
}

/// The declaration that covers a path.
pub(crate) fn find(path: &[String]) -> Option<&'static Key> {
    all().find(|key| key.covers(path))
}

/// The declared path that looks most like `path`, where one is near enough to be what was meant.
pub(crate) fn nearest(path: &str) -> Option<&'static str> {
    all()
        .map(|key| (distance(path, key.path), key.path))
        .min()
        .filter(|(distance, near)| *distance <= near.len() / 3)
        .map(|(_, near)| near)
}

/// Levenshtein's distance, by characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::value::Value;

    #[test]
    fn paths_are_unique_and_stand_in_their_section() {
        let mut seen = BTreeSet::new();
        for (section, _, keys) in SECTIONS {
            for key in *keys {
                assert!(seen.insert(key.path), "`{}` is declared twice", key.path);
                let rest = key.path.strip_prefix(section).and_then(|rest| rest.strip_prefix('.'));
                assert!(rest.is_some_and(|rest| !rest.contains('.')), "`{}` in `{section}`", key.path);
            }
        }
    }

    #[test]
    fn every_default_has_the_kind_of_its_setting() {
        for key in all() {
            if let Some(default) = key.default {
                assert!(Value::from_text(key.kind, default).is_ok(), "`{}` = `{default}`", key.path);
            }
        }
    }

    #[test]
    fn a_slip_of_the_pen_finds_what_was_meant() {
        assert_eq!(nearest("write.flush_age"), Some("write.flush-age"));
        assert_eq!(nearest("kafka.topic"), Some("kafka.topics"));
        assert_eq!(nearest("something.else.altogether"), None);
    }
}
