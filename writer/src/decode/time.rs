//! Dates, times and timestamps as text (RFC 3339), exactly.
//!
//! Accepted: `2026-01-02`; `03:04:05`, `03:04:05.123456`; `2026-01-02T03:04:05.123456` (also with `t` or one space for
//! `T`), with a zone `Z`, `z`, `+05:30`, `-00:00` or without. Refused, since RFC 3339 does not have them or they have
//! no place on the line of time: `+0000`, `+05`, `24:00:00`, the leap second `23:59:60`, days that the month does not have.

use super::RejectCode;
use super::fault::Problem;

const NO_DATE: Problem = Problem::new(RejectCode::InvalidDate, "the text is not a date `YYYY-MM-DD`");
const NO_TIME: Problem = Problem::new(RejectCode::InvalidTime, "the text is not a time `HH:MM:SS[.ffffff]`");
const NO_TIMESTAMP: Problem =
    Problem::new(RejectCode::InvalidTimestamp, "the text is not a timestamp of RFC 3339");
const LEAP: Problem =
    Problem::new(RejectCode::InvalidTimestamp, "a leap second has no place on the time line");
const BEYOND: Problem = Problem::new(RejectCode::OutOfRange, "the timestamp is beyond the range of the type");
const DIGITS: Problem =
    Problem::new(RejectCode::PrecisionLost, "the fraction of a second has more digits than the type");
const ZONE_MISSING: Problem =
    Problem::new(RejectCode::ZoneMissing, "the timestamp has no zone, so it is no point in time");
const ZONE_FORBIDDEN: Problem =
    Problem::new(RejectCode::ZoneForbidden, "the timestamp has a zone, which the type cannot hold");

/// What a column of times or timestamps holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Digits of a fraction of a second: 6 or 9.
    pub(crate) places: u32,
    /// Whether values are points in time (`timestamptz`).
    pub(crate) zoned: bool,
    /// Whether further digits may be cut off.
    pub(crate) truncate: bool,
}

/// Days since the epoch.
pub(crate) fn parse_date(text: &str) -> Result<i32, Problem> {
    let (days, rest) = date(text.as_bytes()).ok_or(NO_DATE)?;
    if !rest.is_empty() {
        return Err(NO_DATE);
    }
    i32::try_from(days).map_err(|_| NO_DATE)
}

/// Units since midnight.
pub(crate) fn parse_time(text: &str, clock: Clock) -> Result<i64, Problem> {
    let time = time(text.as_bytes()).ok_or(NO_TIME)?;
    if !time.rest.is_empty() || time.second > 59 {
        return Err(NO_TIME);
    }
    Ok(time.second_of_day() * 10i64.pow(clock.places) + units(time.fraction, clock)?)
}

/// Units since the epoch.
pub(crate) fn parse_timestamp(text: &str, clock: Clock) -> Result<i64, Problem> {
    let (days, rest) = date(text.as_bytes()).ok_or(NO_TIMESTAMP)?;
    let (separator, rest) = rest.split_first().ok_or(NO_TIMESTAMP)?;
    if !matches!(separator, b'T' | b't' | b' ') {
        return Err(NO_TIMESTAMP);
    }
    let time = time(rest).ok_or(NO_TIMESTAMP)?;
    let offset_seconds = zone(time.rest).ok_or(NO_TIMESTAMP)?;
    if time.second == 60 {
        return Err(LEAP);
    }
    let offset_seconds = match (clock.zoned, offset_seconds) {
        (true, Some(offset)) => offset,
        (false, None) => 0,
        (true, None) => return Err(ZONE_MISSING),
        (false, Some(_)) => return Err(ZONE_FORBIDDEN),
    };
    let seconds = days * 86_400 + time.second_of_day() - offset_seconds;
    let units = units(time.fraction, clock)?;
    seconds.checked_mul(10i64.pow(clock.places)).and_then(|whole| whole.checked_add(units)).ok_or(BEYOND)
}

struct TimeOfDay<'a> {
    hour: i64,
    minute: i64,
    second: i64,
    fraction: &'a [u8],
    rest: &'a [u8],
}

impl TimeOfDay<'_> {
    fn second_of_day(&self) -> i64 {
        self.hour * 3_600 + self.minute * 60 + self.second
    }
}

/// Days since the epoch, and what follows.
fn date(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<10>()?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *head else {
        return None;
    };
    let year = pair(y1, y2)? * 100 + pair(y3, y4)?;
    let (month, day) = (pair(m1, m2)?, pair(d1, d2)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    Some((days_since_epoch(year, month, day), rest))
}

/// A time of day with its fraction's digits, and what follows. The second may be 60.
fn time(bytes: &[u8]) -> Option<TimeOfDay<'_>> {
    let (head, mut rest) = bytes.split_first_chunk::<8>()?;
    let [h1, h2, b':', m1, m2, b':', s1, s2] = *head else {
        return None;
    };
    let (hour, minute, second) = (pair(h1, h2)?, pair(m1, m2)?, pair(s1, s2)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut fraction: &[u8] = &[];
    if let Some((b'.', digits)) = rest.split_first() {
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return None;
        }
        (fraction, rest) = digits.split_at(count);
    }
    Some(TimeOfDay { hour, minute, second, fraction, rest })
}

/// The offset in seconds; the inner `None` where there is no zone at all.
fn zone(bytes: &[u8]) -> Option<Option<i64>> {
    match *bytes {
        [] => Some(None),
        [b'Z' | b'z'] => Some(Some(0)),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (pair(h1, h2)?, pair(m1, m2)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3_600 + minutes * 60;
            Some(Some(if sign == b'-' { -seconds } else { seconds }))
        }
        _ => None,
    }
}

/// The digits of a fraction of a second in units of the column.
fn units(fraction: &[u8], clock: Clock) -> Result<i64, Problem> {
    let places = clock.places as usize;
    let (kept, cut) = fraction.split_at(fraction.len().min(places));
    if !clock.truncate && cut.iter().any(|digit| *digit != b'0') {
        return Err(DIGITS);
    }
    let value = kept.iter().fold(0i64, |value, digit| value * 10 + i64::from(digit - b'0'));
    Ok(value * 10i64.pow(clock.places - kept.len() as u32))
}

fn pair(tens: u8, ones: u8) -> Option<i64> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| i64::from(tens) * 10 + i64::from(ones))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar. Years begin in March here, so that the leap day is the last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}
