//! Policies: what to rewrite, how much of it at a time, and when, as a person writes it down.
//!
//! ```toml
//! name = "hourly"
//! where = "file_size_in_bytes < 100000000"     # an SQL condition over the layout's `files`
//! rank = "files-per-byte"                      # which groups come first; or "as-planned"
//! quiet = "10m"                                # leave partitions alone to which a writer added within this time
//!
//! [options]                                    # Iceberg's own names
//! target-file-size-bytes = 134217728
//!
//! [budget]                                     # of one run
//! bytes = "20 GiB"
//! files = 50_000
//! time = "20m"
//!
//! [trigger]                                    # any of them starts a run; none: always
//! commits = 500
//! small-files = 1000
//! small-bytes = "1 GiB"
//! age = "1h"
//!
//! [schedule]                                   # a run is due when an occurrence has passed since the last one
//! cron = "15 * * * *"
//! windows = ["Mon-Fri 20:00-06:00", "Sat-Sun 00:00-24:00"]
//! time-zone = "Europe/Berlin"
//! ```
//!
//! Everything but the name may be left out. A policy decides nothing by itself: it gives the bin-pack its options and
//! cuts its decision to what one run may do ([`Policy::within_budget`]); [`Trigger::waits_for`] and
//! [`Schedule::standing`] say whether a run is due. All of it is pure; the caller brings the time.

mod budget;
mod presets;
mod quiet;
mod schedule;
mod trigger;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;

pub use budget::{Budget, Rank};
pub use presets::PRESETS;
pub use quiet::{Addition, busy_partitions};
pub use schedule::{Schedule, ScheduleStanding};
pub use trigger::{Backlog, Trigger};

use crate::options::{MAX_FILE_GROUP_SIZE_BYTES, TARGET_FILE_SIZE_BYTES};
use crate::quantity;

/// What to rewrite, how much of it at a time, and when.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Its name, for reports.
    pub name: String,
    /// An SQL condition over the layout's `files`; absent: all of them.
    pub filter: Option<String>,
    /// Options of the rewrite under Iceberg's names.
    pub options: BTreeMap<String, String>,
    /// Which groups come first.
    pub rank: Rank,
    /// What one run may do.
    pub budget: Budget,
    /// What starts a run.
    pub trigger: Trigger,
    /// When a run may start; absent: at any time.
    pub schedule: Option<Schedule>,
    /// Partitions to which something was added within this time are left alone.
    pub quiet: Option<Duration>,
}

/// What is wrong with a policy: all of it at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PolicyProblems(Vec<String>);

impl fmt::Display for PolicyProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

/// A policy as it stands in a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    name: String,
    #[serde(rename = "where")]
    filter: Option<String>,
    #[serde(default)]
    rank: Rank,
    #[serde(default, deserialize_with = "quantity::duration")]
    quiet: Option<Duration>,
    #[serde(default)]
    options: BTreeMap<String, toml::Value>,
    #[serde(default)]
    budget: Budget,
    #[serde(default)]
    trigger: Trigger,
    schedule: Option<schedule::File>,
}

impl Policy {
    /// Reads a policy. What TOML itself refuses is told alone, everything else together.
    pub fn parse(text: &str) -> Result<Self, PolicyProblems> {
        let file: File =
            toml::from_str(text).map_err(|e| PolicyProblems(vec![e.to_string().trim().to_owned()]))?;
        let mut problems = Vec::new();
        if file.name.trim().is_empty() {
            problems.push("`name` is empty: reports need it".to_owned());
        }
        let options = file.options.into_iter().filter_map(|(name, value)| match plain(&value) {
            Some(value) => Some((name, value)),
            None => {
                problems.push(format!("option `{name}` = `{value}` is no text, number or boolean"));
                None
            }
        });
        let options = options.collect();
        problems.extend(file.budget.problems());
        problems.extend(file.trigger.problems());
        let schedule = file.schedule.and_then(|file| match Schedule::read(&file) {
            Ok(schedule) => Some(schedule),
            Err(wrong) => {
                problems.extend(wrong);
                None
            }
        });
        if !problems.is_empty() {
            return Err(PolicyProblems(problems));
        }
        Ok(Self {
            name: file.name,
            filter: file.filter,
            options,
            rank: file.rank,
            budget: file.budget,
            trigger: file.trigger,
            schedule,
            quiet: file.quiet,
        })
    }

    /// The preset of that name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let (_, text) = PRESETS.iter().find(|(known, _)| *known == name)?;
        Some(Self::parse(text).expect("every preset is parsed by a test"))
    }

    /// The options of the rewrite with those of the caller over them. No group may be larger than the budget, or it
    /// would wait for ever; but one output must fit.
    #[must_use]
    pub fn options_with(&self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut options = self.options.clone();
        options.extend(given.iter().map(|(name, value)| (name.clone(), value.clone())));
        if let Some(budget) = self.budget.bytes
            && !options.contains_key(MAX_FILE_GROUP_SIZE_BYTES)
        {
            let target = options.get(TARGET_FILE_SIZE_BYTES).and_then(|text| text.parse().ok());
            let group = budget.max(target.unwrap_or(0));
            options.insert(MAX_FILE_GROUP_SIZE_BYTES.to_owned(), group.to_string());
        }
        options
    }
}

/// The text of a plain value.
fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
