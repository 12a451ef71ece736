//! Human units: sizes, durations, counts and points in time, read and written.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
pub(crate) use firn_policies::quantity::{parse_bytes, parse_duration};

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

#[cfg(test)]
mod tests;
