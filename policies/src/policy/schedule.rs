//! When a run may start: occurrences of a cron expression, and windows of the week, in a time zone.

use std::str::FromStr;

use chrono::{DateTime, Datelike, Timelike, Utc};
use chrono_tz::Tz;
use croner::Cron;
use serde::Deserialize;

const MINUTES_OF_DAY: u32 = 24 * 60;
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A schedule as it stands in a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    cron: Option<String>,
    #[serde(default)]
    windows: Vec<String>,
    time_zone: Option<String>,
}

/// When a run may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    cron: Option<Cron>,
    windows: Vec<Window>,
    zone: Tz,
}

/// Days of the week and minutes of the day. A window over midnight belongs to the day on which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Window {
    /// From Monday.
    days: [bool; 7],
    from_minute: u32,
    /// Exclusive; at most `from_minute` where the window goes over midnight.
    to_minute: u32,
}

/// What a schedule says at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleStanding {
    /// A run may start.
    Due,
    /// No occurrence has passed since the last run; the next one, where there is any.
    NotYet(Option<DateTime<Tz>>),
    /// Outside of all windows.
    OutsideWindows,
}

impl Schedule {
    /// All problems at once.
    pub(super) fn read(file: &File) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut keep = |problem: String| problems.push(problem);
        let cron = file.cron.as_deref().and_then(|text| {
            let wrong = |e| format!("`schedule.cron` = `{text}` is no cron expression: {e}");
            Cron::from_str(text).map_err(|e| keep(wrong(e))).ok()
        });
        let windows =
            file.windows.iter().filter_map(|text| Window::read(text).map_err(&mut keep).ok()).collect();
        let zone = file.time_zone.as_deref().unwrap_or("UTC");
        let parsed = Tz::from_str(zone).map_err(|_| {
            keep(format!(
                "`schedule.time-zone` = `{zone}` is no time zone: write for instance \"Europe/Berlin\""
            ));
        });
        if file.cron.is_none() && file.windows.is_empty() {
            keep("`schedule` has neither `cron` nor `windows`: it says nothing".to_owned());
        }
        match parsed {
            Ok(zone) if problems.is_empty() => Ok(Self { cron, windows, zone }),
            _ => Err(problems),
        }
    }

    /// Whether a run may start at `now`. A cron expression is due when an occurrence has passed since the last run
    /// began, so it does not matter how often the question is asked; a table without a run is due.
    #[must_use]
    pub fn standing(&self, now: DateTime<Utc>, last_run: Option<DateTime<Utc>>) -> ScheduleStanding {
        let local = now.with_timezone(&self.zone);
        if !self.windows.is_empty() && !self.windows.iter().any(|window| window.holds(&local)) {
            return ScheduleStanding::OutsideWindows;
        }
        match (&self.cron, last_run) {
            (Some(cron), Some(last)) => {
                let next = cron.find_next_occurrence(&last.with_timezone(&self.zone), false).ok();
                match next {
                    Some(next) if next <= local => ScheduleStanding::Due,
                    next => ScheduleStanding::NotYet(next),
                }
            }
            _ => ScheduleStanding::Due,
        }
    }
}

impl Window {
    /// `"20:00-06:00"` of every day, or with days before it: `"Mon-Fri 20:00-06:00"`, `"Sat,Sun 00:00-24:00"`.
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "window `{text}` cannot be read: write for instance \"Mon-Fri 20:00-06:00\" or \"Sat,Sun 00:00-24:00\""
            )
        };
        let (days, hours) = text.trim().rsplit_once(' ').unwrap_or(("Mon-Sun", text.trim()));
        let (from, to) = hours.split_once('-').ok_or_else(wrong)?;
        let (from_minute, to_minute) = (minute(from).ok_or_else(wrong)?, minute(to).ok_or_else(wrong)?);
        if from_minute == to_minute || from_minute == MINUTES_OF_DAY {
            return Err(format!("window `{text}` is empty: a whole day is 00:00-24:00"));
        }
        Ok(Self { days: read_days(days).ok_or_else(wrong)?, from_minute, to_minute })
    }

    fn holds(&self, at: &DateTime<Tz>) -> bool {
        let minute = at.hour() * 60 + at.minute();
        let today = self.days[at.weekday().num_days_from_monday() as usize];
        if self.from_minute < self.to_minute {
            return today && (self.from_minute..self.to_minute).contains(&minute);
        }
        let yesterday = self.days[at.weekday().pred().num_days_from_monday() as usize];
        (today && minute >= self.from_minute) || (yesterday && minute < self.to_minute)
    }
}

fn minute(text: &str) -> Option<u32> {
    let (hour, minute) = text.trim().split_once(':')?;
    let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
    let of_day = hour * 60 + minute;
    (minute < 60 && of_day <= MINUTES_OF_DAY).then_some(of_day)
}

/// `Mon-Fri,Sun` in English; a range may go over the week's end.
fn read_days(text: &str) -> Option<[bool; 7]> {
    let day = |name: &str| DAYS.iter().position(|day| name.trim().eq_ignore_ascii_case(day));
    let mut days = [false; 7];
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (day(first)?, day(last)?),
            None => (day(part)?, day(part)?),
        };
        let length = (last + 7 - first) % 7;
        (0..=length).for_each(|step| days[(first + step) % 7] = true);
    }
    Some(days)
}
