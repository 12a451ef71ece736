//! What a table says about a writer's commits: whether one landed, what the next one goes on from, and whether the
//! catalog kept what was committed.

use std::sync::PoisonError;

use iceberg::table::Table;

use super::{Flush, TableHandle};
use crate::ledger::{
    CommitId, Ledger, OffsetRange, Standing, WriterName, ancestors, commit_record, property_name, standing,
};
use crate::{Error, ErrorKind, Result};

impl TableHandle {
    /// Whether a table in which a flush landed has its cursors. Where others have committed since, the ledger may
    /// be theirs; what they built on is checked by them.
    pub(super) fn check_cursors(&self, table: &Table, flush: &Flush) -> Result<()> {
        let metadata = table.metadata();
        let ledger = Ledger::read(metadata.properties(), self.branch(), &flush.writer)?;
        let Some(ledger) = ledger else { return Err(dropped_property(self, &flush.writer)) };
        let covers = |range: &OffsetRange| {
            ledger.cursors.get(&range.partition).is_some_and(|cursor| cursor.next >= range.next)
        };
        let head = metadata.snapshot_for_ref(self.branch()).map(|head| head.snapshot_id());
        let ours = ledger.commit_id == flush.commit_id;
        let holds =
            if ours { flush.ranges.iter().all(covers) } else { head != Some(flush.commit_id.snapshot_id()) };
        if holds { Ok(()) } else { Err(dropped_property(self, &flush.writer)) }
    }

    /// Once per writer, looks whether a table that is loaded after a commit still has the ledger: a catalog may
    /// show the property in its reply and drop it.
    pub(super) async fn check_kept(&self, flush: &Flush) -> Result<()> {
        let kept = || self.inner.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept().contains(&flush.writer) {
            return Ok(());
        }
        // Where the load fails, the next commit looks.
        let Ok(table) = self.load().await else { return Ok(()) };
        self.check_cursors(&table, flush)?;
        kept().insert(flush.writer.clone());
        Ok(())
    }
}

pub(super) fn dropped_property(handle: &TableHandle, writer: &WriterName) -> Error {
    Error::new(
        ErrorKind::Ledger,
        format!(
            "the catalog committed to `{}` and dropped the property `{}`: the table does not remember which offsets \
             it holds. Stopped before a row is doubled; use a catalog that keeps table properties",
            handle.ident(),
            property_name(handle.branch(), writer)
        ),
    )
}

/// Finds a writer's commit in the history of the branch: by its snapshot, or, where that was expired, by the ledger.
pub(super) fn find_commit(
    handle: &TableHandle,
    table: &Table,
    commit_id: CommitId,
    writer: &WriterName,
) -> Option<(i64, i64, Option<String>)> {
    let metadata = table.metadata();
    let id = commit_id.snapshot_id();
    if metadata.snapshot_by_id(id).is_some() {
        let snapshot = ancestors(metadata, handle.branch()).find(|snapshot| snapshot.snapshot_id() == id)?;
        let record = commit_record(snapshot)?;
        let ours = record.commit_id == commit_id && &record.writer == writer;
        return ours.then(|| (id, snapshot.sequence_number(), Some(snapshot.manifest_list().to_owned())));
    }
    let ledger = Ledger::read(metadata.properties(), handle.branch(), writer).ok().flatten()?;
    (ledger.commit_id == commit_id).then_some((ledger.snapshot_id, ledger.sequence_number, None))
}

/// The ledger to go on from, or why a person must decide first.
pub(super) fn ledger_of(base: &Table, branch: &str, writer: &WriterName) -> Result<Option<Ledger>> {
    let stop = |message: String| Err(Error::new(ErrorKind::Ledger, message));
    match standing(base.metadata(), branch, writer)? {
        Standing::Absent => Ok(None),
        Standing::Current(ledger) => Ok(Some(ledger)),
        Standing::RolledBack { ledger, ancestry, .. } => stop(format!(
            "the table was rolled back or replaced: snapshot {} of writer `{writer}` is not in the history of \
             `{branch}` any more, and {} left the table. Nothing was committed; decide whether to replay or to keep \
             the cursors",
            ledger.snapshot_id,
            lost_offsets(&ledger, ancestry.as_ref())
        )),
        Standing::Missing { last_snapshot_id } => stop(format!(
            "snapshot {last_snapshot_id} of `{branch}` is a commit of writer `{writer}` that its ledger does not \
             cover: the property `{}` was removed, or another branch was merged. Nothing was committed; set the cursors",
            property_name(branch, writer)
        )),
    }
}

fn lost_offsets(ledger: &Ledger, ancestry: Option<&Ledger>) -> String {
    const SHOWN: usize = 4;
    let mut lost: Vec<String> = ledger
        .cursors
        .iter()
        .filter_map(|(partition, cursor)| {
            let left = ancestry.and_then(|ledger| ledger.cursors.get(partition));
            let from = left.map_or(cursor.start, |left| left.next);
            (from < cursor.next).then(|| format!("`{partition}` {from} to {}", cursor.next - 1))
        })
        .collect();
    let more = lost.len().saturating_sub(SHOWN);
    lost.truncate(SHOWN);
    let more = if more > 0 { format!(" and {more} partitions more") } else { String::new() };
    format!("offsets {}{more}", if lost.is_empty() { "of it".to_owned() } else { lost.join(", ") })
}
