//! Sizes and durations as people write them.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};

const BYTE_UNITS: [(&str, u64); 10] = [
    ("b", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("bytes", 1),
];

/// Nanoseconds of each unit of time.
const TIME_UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Reads a size: `"128 MiB"`, `"1.5GiB"`, `"64 kB"`, `"1048576"`.
///
/// `KiB`, `MiB`, `GiB`, `TiB` are powers of 1024, `kB`, `MB`, `GB`, `TB` powers of 1000; letters may be
/// of either case. A lone `K`, `M` or `G` is refused, since people mean both by it.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split_unit(text);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" => 1,
        "k" | "m" | "g" | "t" => {
            let letter = unit.to_ascii_uppercase();
            return Err(format!(
                "`{unit}` can mean {letter}iB (1024) or {letter}B (1000); write one of them"
            ));
        }
        lower => BYTE_UNITS
            .iter()
            .find(|(name, _)| *name == lower)
            .map(|(_, scale)| *scale)
            .ok_or_else(|| format!("`{unit}` is no unit of size; write for instance \"128 MiB\""))?,
    };
    scaled(number, scale)
}

/// Reads a duration: `"500ms"`, `"5s"`, `"1h 30m"`, `"2 d"`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("a duration is missing; write for instance \"5s\"".to_owned());
    }
    let mut nanos = 0_u64;
    while !rest.is_empty() {
        let (part, after) = first_part(rest);
        let (number, unit) = split_unit(part);
        if unit.is_empty() {
            return Err(format!(
                "`{number}` has no unit; write for instance \"{number}s\" or \"{number}ms\""
            ));
        }
        let scale = TIME_UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, scale)| *scale)
            .ok_or_else(|| format!("`{unit}` is no unit of time; known are ns, us, ms, s, m, h, d"))?;
        nanos = nanos.checked_add(scaled(number, scale)?).ok_or("the duration is longer than 584 years")?;
        rest = after.trim_start();
    }
    Ok(Duration::from_nanos(nanos))
}

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| c.is_alphabetic() || c == 'µ').unwrap_or(text.len());
    (text[..end].trim(), text[end..].trim())
}

/// Splits `"1h30m"` after `"1h"`: a number, what stands between, and the letters after it.
fn first_part(text: &str) -> (&str, &str) {
    let unit = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let end = text[unit..].find(|c: char| !c.is_alphabetic()).map_or(text.len(), |i| unit + i);
    text.split_at(end)
}

fn scaled(number: &str, scale: u64) -> Result<u64, String> {
    let grouped: String = number.chars().filter(|c| *c != '_').collect();
    if let Ok(whole) = grouped.parse::<u64>() {
        return whole.checked_mul(scale).ok_or_else(|| format!("`{number}` is too large"));
    }
    let value: f64 = grouped.parse().map_err(|_| format!("`{number}` is no number"))?;
    let scaled = value * scale as f64;
    if value < 0.0 || !scaled.is_finite() || scaled > u64::MAX as f64 / 2.0 {
        return Err(format!("`{number}` is negative or too large"));
    }
    Ok(scaled.round() as u64)
}

/// Reads a size from text with a unit, or a whole number of bytes (for `serde`).
pub(crate) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    from.deserialize_any(Quantity("a size such as \"128 MiB\"", parse_bytes)).map(Some)
}

/// Reads a duration from text with a unit (for `serde`).
pub(crate) fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    from.deserialize_any(Quantity("a duration such as \"10m\"", parse_duration)).map(Some)
}

/// What is expected, and how its text is read.
struct Quantity<T>(&'static str, fn(&str) -> Result<T, String>);

impl<T> Visitor<'_> for Quantity<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.1)(text).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        (self.1)(&number.to_string()).map_err(E::custom)
    }
}
