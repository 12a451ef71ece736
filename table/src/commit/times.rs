//! Where the time of one commit went.

use std::time::Duration;

/// Time of a commit by what it was spent on, summed over its attempts. What is left of the whole went into looking at
/// tables and into removing files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommitTimes {
    /// Waiting for other commits of this process on the same table and branch.
    pub turn: Duration,
    /// Writing and merging manifests, also those written before it was this commit's turn.
    pub manifest: Duration,
    /// Writing manifest lists.
    pub list: Duration,
    /// From each request to its answer.
    pub catalog: Duration,
    /// Waiting before further attempts, and loading the table for them.
    pub retry: Duration,
}
