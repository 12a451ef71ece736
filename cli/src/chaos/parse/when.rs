//! Reads how often a rule acts.

use std::time::Duration;

use super::Reader;
use crate::chaos::rule::When;
use crate::units;

const CONDITIONS: &str = "`every N`, `first N`, `once`, `after N`, `share 0.1`, `between 10s 40s`";

pub(super) fn read(reader: &mut Reader<'_>) -> When {
    let mut when = When::default();
    let mut given: Vec<&str> = Vec::new();
    while let Some(word) = reader.next() {
        let name = word.text.as_str();
        match name {
            "every" => when.every = reader.value("a number above 0", positive),
            "first" => when.first = reader.value("a number above 0", positive),
            "once" => when.first = Some(1),
            "after" => when.after = reader.value("a number above 0", positive).unwrap_or_default(),
            "share" => when.share = reader.value("a share between 0 and 1", share),
            "between" => when.between = between(reader),
            other => {
                reader.problem(word, format!("`{other}` is no condition; they are {CONDITIONS}"));
                continue;
            }
        }
        // `once` is `first 1`.
        let kind = if name == "once" { "first" } else { name };
        if given.contains(&kind) {
            reader.problem(word, format!("`{name}` is said twice"));
        }
        given.push(kind);
    }
    when
}

fn positive(text: &str) -> Result<u64, String> {
    match units::parse_count(text)? {
        0 => Err("it counts from 1".to_owned()),
        number => Ok(number),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write for instance 0.1 for one in ten".to_owned())
}

fn between(reader: &mut Reader<'_>) -> Option<(Duration, Duration)> {
    let from = reader.value("a time after the start (`10s`)", units::parse_duration);
    let to = reader.value("a later time (`40s`)", |text| {
        let to = units::parse_duration(text)?;
        match from {
            Some(from) if to <= from => Err("it is not after the first".to_owned()),
            _ => Ok(to),
        }
    });
    Some((from?, to?))
}
