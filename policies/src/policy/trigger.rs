//! What starts a run.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;

use crate::quantity;

/// Thresholds: any of them starts a run; without one, every call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Trigger {
    /// Commits of others since the last rewrite.
    pub commits: Option<u64>,
    /// Files that a rewrite would read.
    pub small_files: Option<u64>,
    /// Their bytes.
    #[serde(deserialize_with = "quantity::bytes")]
    pub small_bytes: Option<u64>,
    /// The age of the oldest of them.
    #[serde(deserialize_with = "quantity::duration")]
    pub age: Option<Duration>,
}

/// What waits for a rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Commits since the last rewrite.
    pub commits: u64,
    /// Files of the groups that are worth a rewrite.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The age of the oldest of them, as far as the table still knows it.
    pub oldest: Option<Duration>,
}

impl Trigger {
    /// Why a run is not due; `None` where it is.
    #[must_use]
    pub fn waits_for(&self, backlog: &Backlog) -> Option<String> {
        let oldest = backlog.oldest.unwrap_or_default();
        let thresholds = [
            self.commits
                .map(|least| (backlog.commits >= least, format!("{}/{least} commits", backlog.commits))),
            self.small_files
                .map(|least| (backlog.files >= least, format!("{}/{least} files", backlog.files))),
            self.small_bytes
                .map(|least| (backlog.bytes >= least, format!("{}/{least} bytes", backlog.bytes))),
            self.age.map(|least| {
                (oldest >= least, format!("an age of {}/{} s", oldest.as_secs(), least.as_secs()))
            }),
        ];
        let mut waits = String::new();
        for (reached, text) in thresholds.into_iter().flatten() {
            if reached {
                return None;
            }
            let separator = if waits.is_empty() { "" } else { ", " };
            let _ = write!(waits, "{separator}{text}");
        }
        (!waits.is_empty()).then_some(waits)
    }

    /// Thresholds that would always or never be reached.
    pub(super) fn problems(&self) -> Vec<String> {
        let zero = [
            ("commits", self.commits == Some(0)),
            ("small-files", self.small_files == Some(0)),
            ("small-bytes", self.small_bytes == Some(0)),
        ];
        let zero = zero.iter().filter(|(_, is_zero)| *is_zero);
        zero.map(|(name, _)| format!("`trigger.{name}` = `0` starts every run: leave it out")).collect()
    }
}
