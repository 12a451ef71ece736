//! What a run did.

use serde::Serialize;

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunReport {
    /// The snapshot that was planned on.
    pub planned_on: Option<i64>,
    /// Groups in the plan.
    pub groups_planned: usize,
    /// Groups that landed.
    pub groups_landed: usize,
    /// Groups that did not, with the reason.
    pub dropped: Vec<DroppedGroup>,
    /// Files of the groups that landed.
    pub files_in: u64,
    /// Files that replaced them.
    pub files_out: u64,
    /// Bytes of the files that were replaced.
    pub bytes_in: u64,
    /// Bytes of the files that replaced them.
    pub bytes_out: u64,
    /// Rows of the groups that landed, before deletes.
    pub rows: u64,
    /// Those of them that deletes took away.
    pub deleted_rows: u64,
    /// Seconds from the plan to the last commit.
    pub seconds: f64,
    /// The snapshots that were committed.
    pub snapshot_ids: Vec<i64>,
    /// Conflicts with other commits on the way.
    pub conflicts: u32,
    /// Whether the run was stopped before it was done.
    pub stopped: bool,
}

/// A group that did not land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DroppedGroup {
    /// The plan's number of the group.
    pub group: usize,
    /// Its partition.
    pub partition: String,
    /// Why.
    pub reason: String,
}

impl RunReport {
    /// Adds what a later run did.
    pub fn add(&mut self, other: &Self) {
        self.planned_on = other.planned_on.or(self.planned_on);
        self.groups_planned += other.groups_planned;
        self.groups_landed += other.groups_landed;
        self.dropped.extend(other.dropped.iter().cloned());
        self.files_in += other.files_in;
        self.files_out += other.files_out;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.rows += other.rows;
        self.deleted_rows += other.deleted_rows;
        self.seconds += other.seconds;
        self.snapshot_ids.extend(&other.snapshot_ids);
        self.conflicts += other.conflicts;
        self.stopped |= other.stopped;
    }
}
