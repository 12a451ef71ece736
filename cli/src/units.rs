//! Human units: sizes, durations, counts and points in time, read and written.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

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
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
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
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
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

/// Reads a whole number, in which `_` or `,` may group digits: `"4_000"`.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let digits: String = text.trim().chars().filter(|c| !matches!(c, '_' | ',')).collect();
    digits.parse().map_err(|_| "a whole number that is not negative is expected".to_owned())
}

/// Reads a point in time: RFC 3339 (`2026-01-02T03:04:05Z`), a date (`2026-01-02`, midnight in UTC), or an
/// age before `now` (`5d`).
pub(crate) fn parse_time(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
    let text = text.trim();
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.with_timezone(&Utc));
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z")) {
        return Ok(time.with_timezone(&Utc));
    }
    let age = parse_duration(text).map_err(|_| {
        "neither a time (2026-01-02T03:04:05Z), nor a date (2026-01-02), nor an age (5d)".to_owned()
    })?;
    TimeDelta::from_std(age)
        .ok()
        .and_then(|age| now.checked_sub_signed(age))
        .ok_or_else(|| "the age reaches back before all time".to_owned())
}

/// A size with three significant digits: `1.23 MiB`.
pub(crate) fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    // 1,000 KiB would need four digits: the next unit begins at 999.5.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{} {}", three_digits(value), UNITS[unit]) }
}

/// A duration with three significant digits below a minute, with two units above: `1.24 s`, `3 m 20 s`.
pub(crate) fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 0.000_999_5 {
        return format!("{} µs", duration.as_micros());
    }
    if seconds < 0.999_5 {
        return format!("{} ms", three_digits(seconds * 1_000.0));
    }
    if seconds < 59.95 {
        return format!("{} s", three_digits(seconds));
    }
    let whole = seconds.round() as u64;
    match whole {
        ..3_600 => format!("{} m {} s", whole / 60, whole % 60),
        3_600..86_400 => format!("{} h {} m", whole / 3_600, whole % 3_600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3_600),
    }
}

/// Milliseconds, as [`format_duration`] writes them.
pub(crate) fn format_millis(millis: f64) -> String {
    format_duration(Duration::from_secs_f64(millis.max(0.0) / 1_000.0))
}

/// A whole number with its thousands apart: `4,000`.
pub(crate) fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Milliseconds since 1970 as a time in UTC.
pub(crate) fn format_time(millis: i64) -> String {
    DateTime::from_timestamp_millis(millis)
        .map_or_else(|| format!("{millis} ms"), |time| time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

fn three_digits(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
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

#[cfg(test)]
mod tests;
