//! Reads what happens to a request.

use std::time::Duration;

use hyper::StatusCode;

use super::Reader;
use crate::chaos::rule::{Answer, Fault, Instead, Text};
use crate::units;

/// The names of all faults, for the message about one that is none.
const NAMES: [&str; 12] = [
    "status",
    "slowdown",
    "apply-then",
    "delay",
    "late",
    "hang",
    "reset",
    "truncate",
    "truncate-request",
    "slow",
    "drop-properties",
    "duplicate",
];

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Fault> {
    let name = reader.value("a fault", |text| {
        let known = NAMES.into_iter().find(|name| *name == text);
        known.ok_or_else(|| format!("faults are {}", NAMES.join(", ")))
    })?;
    match name {
        "status" => answer(reader).map(Fault::Status),
        "slowdown" => Some(Fault::SlowDown),
        "apply-then" if reader.keyword("reset") => Some(Fault::ApplyThen(Instead::Reset)),
        "apply-then" => answer(reader).map(|answer| Fault::ApplyThen(Instead::Answer(answer))),
        "delay" => time(reader).map(Fault::Delay),
        "late" => time(reader).map(Fault::Late),
        "hang" => Some(Fault::Hang),
        "reset" => Some(Fault::Reset),
        "truncate" => bytes(reader).map(Fault::Truncate),
        "truncate-request" => bytes(reader).map(Fault::TruncateRequest),
        "slow" => reader.value("a rate (`10KiB/s`)", rate).map(Fault::Slow),
        "drop-properties" => {
            reader.value("the start of a property's name", prefix).map(Fault::DropProperties)
        }
        _ => Some(Fault::Duplicate),
    }
}

fn answer(reader: &mut Reader<'_>) -> Option<Answer> {
    let status = reader.value("a status (200 to 599)", status);
    let (mut body, mut retry_after) = (Text::Default, None);
    loop {
        if reader.keyword("body") {
            body = Text::Given(reader.value("a body", |text| Ok(text.to_owned()))?);
        } else if reader.keyword("iceberg") {
            body = Text::Iceberg(reader.value("a type of Iceberg's errors", |text| Ok(text.to_owned()))?);
        } else if reader.keyword("retry-after") {
            retry_after = Some(reader.value("a time in whole seconds", whole_seconds)?);
        } else {
            return Some(Answer { status: status?, body, retry_after });
        }
    }
}

fn status(text: &str) -> Result<StatusCode, String> {
    let number = text.parse::<u16>().ok().filter(|number| (200..600).contains(number));
    let status = number.and_then(|number| StatusCode::from_u16(number).ok());
    status.ok_or_else(|| "it is a number of three digits".to_owned())
}

fn time(reader: &mut Reader<'_>) -> Option<Duration> {
    reader.value("a time (`5s`)", units::parse_duration)
}

fn whole_seconds(text: &str) -> Result<Duration, String> {
    let time = units::parse_duration(text)?;
    if time.subsec_nanos() == 0 { Ok(time) } else { Err("the header has no fractions".to_owned()) }
}

fn bytes(reader: &mut Reader<'_>) -> Option<u64> {
    reader.value("a number of bytes (`100`, `4KiB`)", units::parse_bytes)
}

fn rate(text: &str) -> Result<u64, String> {
    let size = text.strip_suffix("/s").ok_or("it ends with `/s`")?;
    match units::parse_bytes(size)? {
        0 => Err("at none a second nothing would ever pass: see `hang`".to_owned()),
        bytes => Ok(bytes),
    }
}

fn prefix(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("it would fit all of them".to_owned()) } else { Ok(text.to_owned()) }
}
