//! Partitions that are still being written to.

use std::collections::BTreeSet;
use std::time::Duration;

/// A file that a writer added (not a rewrite).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addition<'a> {
    /// The partition's key.
    pub partition: &'a str,
    /// The spec it was written with.
    pub spec_id: i32,
    /// When, milliseconds since the epoch.
    pub at_ms: i64,
}

/// The partitions, with their specs, to which something was added within `quiet` before `now_ms`. Clocks that run
/// ahead of `now_ms` count as now.
pub fn busy_partitions<'a>(
    additions: impl IntoIterator<Item = Addition<'a>>,
    quiet: Duration,
    now_ms: i64,
) -> BTreeSet<(&'a str, i32)> {
    let quiet_ms = i64::try_from(quiet.as_millis()).unwrap_or(i64::MAX);
    let since = now_ms.saturating_sub(quiet_ms);
    let recent = additions.into_iter().filter(|addition| addition.at_ms > since);
    recent.map(|addition| (addition.partition, addition.spec_id)).collect()
}
