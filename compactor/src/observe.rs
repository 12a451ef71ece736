//! What a run tells while it works. One stream of events; rendering them is the caller's.

use std::fmt;

/// Something that happened in a run. Byte counts are bytes on storage.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The plan is made; work begins.
    Planned {
        /// Groups to rewrite.
        groups: usize,
        /// Files to read.
        files: u64,
        /// Bytes to read.
        bytes: u64,
        /// Rows to read.
        rows: u64,
    },
    /// A group is being rewritten.
    GroupStarted {
        /// The plan's number of the group.
        group: usize,
        /// The locations of its files.
        files: Vec<String>,
    },
    /// Work went on since the last event of this kind for the same group.
    Progress {
        /// The group.
        group: usize,
        /// Input bytes whose rows were written since then (estimated within a file).
        bytes_read: u64,
        /// Output bytes since then (estimated while a file is open).
        bytes_written: u64,
        /// Rows since then.
        rows: u64,
    },
    /// A group is rewritten and verified, and waits for its commit.
    GroupFinished {
        /// The group.
        group: usize,
        /// Files that came out.
        files: usize,
        /// Their bytes.
        bytes: u64,
    },
    /// A group does not land; its outputs are removed where that is safe.
    GroupDropped {
        /// The group.
        group: usize,
        /// Why.
        reason: String,
    },
    /// Groups landed in one snapshot.
    Committed {
        /// The snapshot.
        snapshot_id: i64,
        /// The groups.
        groups: Vec<usize>,
        /// Conflicts with other commits on the way.
        conflicts: u32,
    },
}

/// Takes events. Called from the tasks of a run: quick, and without blocking.
pub trait Observer: Send + Sync + fmt::Debug {
    /// Takes one event.
    fn observe(&self, event: &Event);
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn observe(&self, _event: &Event) {}
}
