//! Expiry of snapshots, and of the files that only they reached.
//!
//! 1. *Decide* ([`decide_expiry`], pure): which snapshots and refs may go, by the rules of `history.expire.*` and the
//!    refs' own retention.
//! 2. *Commit* their removal through the handle's queue, under the condition that no ref has moved.
//! 3. *Reach*: once the commit has landed for certain, compare what the removed snapshots reach with what the kept ones
//!    reach, and delete the difference. After anything but a landed commit nothing is deleted.
//!
//! # What is read
//!
//! A writer that commits each second also expires each few seconds, so the difference is found without reading what all
//! kept snapshots reach. It rests on two facts about each snapshot and its parent, which hold for every operation of
//! Iceberg (rule 1.1: a path that was removed is never added again; a path is live at most once in a snapshot):
//!
//! - the manifests of a snapshot are some of its parent's and those that it wrote itself;
//! - its live files are some of its parent's and those that it added itself.
//!
//! So the snapshots that ever held a manifest or file form a connected part of the tree of parents, and a path in it
//! leads from a kept snapshot that holds it to a removed one. Where that path leaves the kept ones, it does so at the
//! *border*: at a kept snapshot
//!
//! - whose parent is gone, now or since an earlier expiry, or that never had one;
//! - whose child is removed now; or
//! - whose child was removed by an earlier expiry. The metadata knows nothing of such a child, but then the path comes
//!   back at a removed snapshot whose parent is gone, or at a kept one, which is on the border itself. So every kept
//!   snapshot that is older than a removed one below such a gap counts. Where the oldest go first there are few: what
//!   tags and branches hold.
//!
//! The heads of all refs are added, for writers that keep to less than these facts. Only manifest lists of the border
//! and of the removed snapshots are read.
//!
//! A manifest that left (no list of the border names it) was merged, rewritten, or lost all its files. A live file of
//! it is still needed if a border snapshot holds it in a manifest that the removed snapshot did not have (what that one
//! had, it would hold twice), and only as an existing entry, unless that manifest was written by the snapshot that
//! added the file. Only such manifests are read. Puffin files are shared by several entries: for them all delete
//! manifests of the border are read.
//!
//! For a table that only appends and expires its oldest snapshots this means: two manifest lists, and nothing else
//! until manifests are merged.

mod decide;
mod reach;
mod refs;
mod run;
#[cfg(test)]
mod tests;

pub use self::decide::{Expiry, decide_expiry};
pub(crate) use self::refs::refs;

/// What expiry may remove. Where a field is `None`, the table's property or Iceberg's default decides; a branch's own
/// retention wins over both.
#[derive(Debug, Clone, Default)]
pub struct ExpireOptions {
    /// Snapshots committed before this time may go. Milliseconds since the epoch.
    pub older_than_ms: Option<i64>,
    /// Snapshots to keep on each branch whatever their age.
    pub retain_last: Option<usize>,
    /// At most this many snapshots in one call, oldest first (a writer keeps its commit queue short).
    pub max_snapshots: Option<usize>,
    /// These snapshots and no others. Refs stay.
    pub snapshot_ids: Vec<i64>,
    /// Snapshots that a rewrite or a reader of this process uses: they stay.
    pub in_use: Vec<i64>,
    /// Change nothing; report what would go.
    pub dry_run: bool,
}

/// What expiry removed (or would remove).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpireReport {
    /// Snapshots removed, oldest first.
    pub snapshot_ids: Vec<i64>,
    /// Branches and tags removed for their age.
    pub refs: Vec<String>,
    /// Data and delete files deleted.
    pub data_files: Vec<String>,
    /// Manifests deleted.
    pub manifests: Vec<String>,
    /// Manifest lists deleted.
    pub manifest_lists: Vec<String>,
    /// Statistics and partition statistics files deleted.
    pub statistics_files: Vec<String>,
    /// Files that could not be deleted, or of which it could not be learnt whether they may be: left for orphan
    /// removal.
    pub failed: Vec<String>,
}
