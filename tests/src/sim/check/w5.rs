//! W5: an overtaken flush never lands.
//!
//! A flush that lands starts, in each of its partitions, where the cursor was in the table before it; and none lands
//! after its writer was told that it was overtaken.

use async_trait::async_trait;
use firn_table::ledger::{CommitRecord, Guarantee, Ledger, OffsetRange};

use super::super::records::{Commit, Role, Tale};
use super::super::view::{Checker, Step, View, Violation};

const NAME: &str = "W5";

/// The checker.
#[derive(Debug, Default)]
pub struct W5;

#[async_trait]
impl Checker for W5 {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation> {
        let Some(commit) = view.records.commits.last().filter(|_| step == Step::Commit) else {
            return Ok(());
        };
        let Some(after) = commit.after.as_ref().filter(|_| commit.by.role == Role::Writer) else {
            return Ok(());
        };
        for id in commit.added_snapshots() {
            let Some(snapshot) = after.metadata().snapshot_by_id(id) else { continue };
            let record = CommitRecord::read(&snapshot.summary().additional_properties);
            if let Some(record) = record.filter(|record| !record.sets_cursors) {
                starts_at_cursors(commit, id, &record)?;
                was_not_overtaken(view, commit, &record)?;
            }
        }
        Ok(())
    }

    async fn at_end(&mut self, _view: View<'_>) -> Result<(), Violation> {
        Ok(())
    }
}

/// Every range starts at its cursor in the table before.
fn starts_at_cursors(commit: &Commit, id: i64, record: &CommitRecord) -> Result<(), Violation> {
    let Some(before) = &commit.before else { return Ok(()) };
    for branch in branches(commit, id) {
        let ledger = Ledger::read(before.metadata().properties(), &branch, &record.writer);
        let ledger = ledger.map_err(|error| Violation::new(NAME, error.to_string()))?;
        let Some(ledger) = ledger.filter(|ledger| ledger.guarantee == Guarantee::ExactlyOnce) else {
            continue;
        };
        for range in record.ranges.iter().flatten() {
            let cursor = ledger.cursors.get(&range.partition).map_or(range.start, |cursor| cursor.next);
            if cursor != range.start {
                return Err(Violation::new(
                    NAME,
                    format!(
                        "commit {} of `{}` starts at {} of {}, and the cursor was {cursor}",
                        record.commit_id, record.writer, range.start, range.partition
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// The process that sent it was not told before that a flush with these ranges was overtaken. After a rollback that is
/// replayed the same offsets come again by right.
fn was_not_overtaken(view: View<'_>, commit: &Commit, record: &CommitRecord) -> Result<(), Violation> {
    if view.setting.cursors_may_go_back {
        return Ok(());
    }
    let ours = record.ranges.iter().flatten().filter(|range| !range.is_empty()).cloned();
    let ours: Vec<OffsetRange> = ours.collect();
    let told = view.records.told.iter().rev().filter(|told| told.by == commit.by);
    let overtaken = told.filter_map(|told| match &told.what {
        Tale::Writer(event) => match event.as_ref() {
            firn_writer::Event::Overtaken { ranges, .. } => Some((told.at, ranges)),
            _ => None,
        },
        _ => None,
    });
    for (at, ranges) in overtaken {
        if !ours.is_empty() && ranges.iter().all(|range| ours.contains(range)) && ranges.len() == ours.len() {
            return Err(Violation::new(
                NAME,
                format!(
                    "commit {} of {} landed although it was overtaken at {:.3} s: {ours:?}",
                    record.commit_id,
                    commit.by.name,
                    at.as_secs_f64()
                ),
            ));
        }
    }
    Ok(())
}

/// The branches whose head the commit made this snapshot.
fn branches(commit: &Commit, id: i64) -> Vec<String> {
    let moved = commit.updates.iter().filter_map(|update| match update {
        iceberg::TableUpdate::SetSnapshotRef { ref_name, reference } if reference.snapshot_id == id => {
            Some(ref_name.clone())
        }
        _ => None,
    });
    moved.collect()
}
