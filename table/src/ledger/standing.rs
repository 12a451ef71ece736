//! Whether a writer's ledger is that of the head's ancestry.
//!
//! Properties are not part of a snapshot: a rollback, or a `CREATE OR REPLACE` by another engine, takes rows away
//! and leaves the cursor. So the cursor counts only as long as the snapshot that it names is an ancestor of the
//! branch's head. Sequence numbers tell an ancestor that was expired (the walk ends at its missing id, or passes
//! from a younger snapshot to a missing parent) from one that never was an ancestor (the walk passes from a younger
//! snapshot to an older one that is there).

use std::collections::BTreeMap;

use iceberg::spec::{Snapshot, SnapshotRef, TableMetadata};

use super::{CommitRecord, Cursor, Ledger, OffsetRange, Standing, TopicPartition, WriterName};
use crate::Result;

/// What `metadata` says about a writer on a branch. `Ledger` where its property cannot be read.
pub fn standing(metadata: &TableMetadata, branch: &str, writer: &WriterName) -> Result<Standing> {
    let ledger = Ledger::read(metadata.properties(), branch, writer)?;
    let Some(ledger) = ledger else {
        let last = ancestors(metadata, branch).find(|snapshot| is_of(snapshot, writer));
        return Ok(last.map_or(Standing::Absent, |snapshot| Standing::Missing {
            last_snapshot_id: snapshot.snapshot_id(),
        }));
    };
    Ok(match find(metadata, branch, &ledger, writer) {
        Found::Ancestor => Standing::Current(ledger),
        Found::Later(last_snapshot_id) => Standing::Missing { last_snapshot_id },
        Found::NotAnAncestor => {
            let left = undo(metadata, branch, writer, &ledger)
                .unwrap_or_else(|| newest_in_ancestry(metadata, branch, writer, &ledger));
            let ancestry = (!left.ledger.cursors.is_empty()).then_some(left.ledger);
            Standing::RolledBack { ledger, ancestry, unknown: left.unknown }
        }
    })
}

/// The snapshots of a branch from its head to a root or to an expired parent.
pub(crate) fn ancestors<'a>(
    metadata: &'a TableMetadata,
    branch: &str,
) -> impl Iterator<Item = &'a SnapshotRef> + 'a {
    let head = metadata.snapshot_for_ref(branch);
    std::iter::successors(head, |snapshot| {
        snapshot.parent_snapshot_id().and_then(|id| metadata.snapshot_by_id(id))
    })
    .take(metadata.snapshots().len())
}

/// What a snapshot's summary says about the commit that made it.
pub(crate) fn commit_record(snapshot: &Snapshot) -> Option<CommitRecord> {
    CommitRecord::read(&snapshot.summary().additional_properties)
}

fn is_of(snapshot: &Snapshot, writer: &WriterName) -> bool {
    commit_record(snapshot).is_some_and(|record| &record.writer == writer)
}

enum Found {
    /// The ledger's snapshot is an ancestor, or nothing contradicts that it is an expired one.
    Ancestor,
    NotAnAncestor,
    /// A later commit of the writer that the ledger does not know.
    Later(i64),
}

fn find(metadata: &TableMetadata, branch: &str, ledger: &Ledger, writer: &WriterName) -> Found {
    let mut end: Option<&SnapshotRef> = None;
    let mut later = None;
    for snapshot in ancestors(metadata, branch) {
        if snapshot.snapshot_id() == ledger.snapshot_id {
            return later.map_or(Found::Ancestor, Found::Later);
        }
        if is_passed(snapshot, ledger) {
            return Found::NotAnAncestor;
        }
        if later.is_none() && is_of(snapshot, writer) {
            later = Some(snapshot.snapshot_id());
        }
        end = Some(snapshot);
    }
    // The walk ended at a root, at an expired parent, or (no head) before it began.
    let expired_parent = end.is_some_and(|snapshot| snapshot.parent_snapshot_id().is_some());
    if !expired_parent || metadata.snapshot_by_id(ledger.snapshot_id).is_some() {
        return Found::NotAnAncestor;
    }
    later.map_or(Found::Ancestor, Found::Later)
}

/// Whether the walk has reached a snapshot that is older than the ledger's, without meeting that one.
fn is_passed(snapshot: &Snapshot, ledger: &Ledger) -> bool {
    ledger.sequence_number > 0 && snapshot.sequence_number() <= ledger.sequence_number
}

/// What the history that is left covers.
struct Left {
    ledger: Ledger,
    /// Partitions of which it does not tell.
    unknown: Vec<TopicPartition>,
}

/// The ledger without the commits that left the branch: exact, where all of them are still in the metadata with
/// their ranges, and the first snapshot that both histories share is met.
fn undo(metadata: &TableMetadata, branch: &str, writer: &WriterName, ledger: &Ledger) -> Option<Left> {
    let mut undone = ledger.clone();
    let mut current = metadata.snapshot_by_id(ledger.snapshot_id)?;
    loop {
        if ancestors(metadata, branch).any(|ancestor| ancestor.snapshot_id() == current.snapshot_id()) {
            let ledger = names_commit(metadata, branch, writer, undone);
            return Some(Left { ledger, unknown: Vec::new() });
        }
        if let Some(record) = commit_record(current).filter(|record| &record.writer == writer) {
            if record.sets_cursors {
                return None;
            }
            for range in record.ranges? {
                take_back(&mut undone.cursors, &range)?;
            }
        }
        match current.parent_snapshot_id() {
            Some(parent) => current = metadata.snapshot_by_id(parent)?,
            None => {
                let ledger = names_commit(metadata, branch, writer, undone);
                return Some(Left { ledger, unknown: Vec::new() });
            }
        }
    }
}

fn take_back(cursors: &mut BTreeMap<TopicPartition, Cursor>, range: &OffsetRange) -> Option<()> {
    let cursor = cursors.get_mut(&range.partition)?;
    if cursor.next != range.next || range.start < cursor.start {
        return None;
    }
    cursor.next = range.start;
    cursor.rows = cursor.rows.checked_sub(range.rows)?;
    cursor.rejected = cursor.rejected.checked_sub(range.rejected)?;
    cursor.holes = cursor.holes.checked_sub(range.holes)?;
    if cursor.next == cursor.start {
        cursors.remove(&range.partition);
    }
    Some(())
}

/// Puts the newest commit of the writer in the ancestry, where one is left, into the ledger.
fn names_commit(metadata: &TableMetadata, branch: &str, writer: &WriterName, mut ledger: Ledger) -> Ledger {
    let of_writer = |snapshot: &SnapshotRef| {
        let record = commit_record(snapshot).filter(|record| &record.writer == writer)?;
        Some((record.commit_id, snapshot.snapshot_id(), snapshot.sequence_number()))
    };
    if let Some((commit_id, snapshot_id, sequence_number)) = ancestors(metadata, branch).find_map(of_writer) {
        ledger.commit_id = commit_id;
        ledger.snapshot_id = snapshot_id;
        ledger.sequence_number = sequence_number;
    }
    ledger
}

/// What the commits of the writer that are left in the ancestry cover: for each partition the newest run of ranges
/// without a break. Where older commits are expired, or one does not name its ranges, the others are unknown.
fn newest_in_ancestry(metadata: &TableMetadata, branch: &str, writer: &WriterName, ledger: &Ledger) -> Left {
    let mut cursors: BTreeMap<TopicPartition, Cursor> = BTreeMap::new();
    let mut tells_all = true;
    for snapshot in ancestors(metadata, branch) {
        let expired_parent =
            snapshot.parent_snapshot_id().is_some_and(|id| metadata.snapshot_by_id(id).is_none());
        tells_all = !expired_parent;
        let Some(record) = commit_record(snapshot).filter(|record| &record.writer == writer) else {
            continue;
        };
        let Some(ranges) = record.ranges else {
            tells_all = false;
            break;
        };
        for range in ranges {
            let cursor = cursors.entry(range.partition.clone()).or_insert(Cursor::starting_at(range.next));
            if cursor.start == range.next {
                cursor.start = range.start;
                cursor.rows += range.rows;
                cursor.rejected += range.rejected;
                cursor.holes += range.holes;
            }
        }
        if record.sets_cursors {
            tells_all = true;
            break;
        }
    }
    let untold = |partition: &&TopicPartition| !tells_all && !cursors.contains_key(*partition);
    let unknown = ledger.cursors.keys().filter(untold).cloned().collect();
    let ledger = names_commit(metadata, branch, writer, Ledger { cursors, ..ledger.clone() });
    Left { ledger, unknown }
}
