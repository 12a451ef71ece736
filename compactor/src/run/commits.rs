//! Finished groups on their way into the table.

use std::collections::BTreeMap;
use std::sync::Arc;

use firn_table::commit::{Replace, ReplaceGroup, ReplaceOutcome, TableHandle};
use firn_table::ledger::CommitId;
use tracing::warn;
use uuid::Uuid;

use crate::observe::{Event, Observer};
use crate::rewrite::{Rewritten, Verify};
use crate::run::{DroppedGroup, RunReport};
use crate::{ErrorKind, Result};

/// Entries of a snapshot's summary: how its outputs were compared with its inputs, the run that made it, and the size
/// of file that the run made.
const VERIFIED: &str = "firn.verified";
pub(crate) const RUN: &str = "firn.run";
pub(crate) const TARGET_BYTES: &str = "firn.target-bytes";

/// Commits groups as they finish, several at a time where a run may make only so many commits.
pub(super) struct Commits<'a> {
    pub(super) handle: &'a TableHandle,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) planned_on: i64,
    pub(super) run_id: Uuid,
    pub(super) verify: Verify,
    /// The size of file that the run makes.
    pub(super) target_bytes: u64,
    /// Groups of one commit.
    pub(super) groups_per_commit: usize,
    pub(super) waiting: Vec<Rewritten>,
    pub(super) sent: u64,
    pub(super) report: RunReport,
}

impl Commits<'_> {
    /// Takes a finished group, and commits once there are enough.
    pub(super) async fn add(&mut self, rewritten: Rewritten) -> Result<()> {
        self.observer.observe(&Event::GroupFinished {
            group: rewritten.task.id,
            files: rewritten.outputs.len(),
            bytes: rewritten.outputs.iter().map(|file| file.file.file_size_in_bytes()).sum(),
        });
        self.waiting.push(rewritten);
        if self.waiting.len() >= self.groups_per_commit { self.flush().await } else { Ok(()) }
    }

    /// Commits what waits. A failure that may pass (conflicts, an unavailable catalog) drops these groups alone.
    ///
    /// Once groups were handed over, their outputs are the table's to remove: it knows whether a request that may
    /// still land names them.
    pub(super) async fn flush(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let groups = std::mem::take(&mut self.waiting);
        match self.handle.replace(self.replace(&groups)).await {
            Ok(outcome) => {
                self.record(&groups, &outcome);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Unavailable) => {
                for group in &groups {
                    self.drop_group(group.task.id, partition(group), error.to_string());
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Gives up on what waits: removes the outputs, which were never sent.
    pub(super) async fn abandon(&mut self) {
        for group in std::mem::take(&mut self.waiting) {
            group.remove_outputs(self.handle.stores()).await;
        }
    }

    /// Notes a group that does not land.
    pub(super) fn drop_group(&mut self, group: usize, partition: String, reason: String) {
        warn!(group, %partition, %reason, "a group is not compacted");
        self.observer.observe(&Event::GroupDropped { group, reason: reason.clone() });
        self.report.dropped.push(DroppedGroup { group, partition, reason });
    }

    fn replace(&mut self, groups: &[Rewritten]) -> Replace {
        self.sent += 1;
        let group = |rewritten: &Rewritten| ReplaceGroup {
            id: rewritten.task.id,
            removed: rewritten.task.files.clone(),
            added: rewritten.outputs.clone(),
            applied_deletes: rewritten.task.deletes.clone(),
            deleted_rows: rewritten.deleted_rows,
        };
        Replace {
            commit_id: CommitId { instance: self.run_id, counter: self.sent },
            planned_on: self.planned_on,
            groups: groups.iter().map(group).collect(),
            summary: BTreeMap::from([
                (VERIFIED.to_owned(), self.verify.as_str().to_owned()),
                (RUN.to_owned(), self.run_id.to_string()),
                (TARGET_BYTES.to_owned(), self.target_bytes.to_string()),
            ]),
        }
    }

    fn record(&mut self, groups: &[Rewritten], outcome: &ReplaceOutcome) {
        for (id, reason) in &outcome.dropped {
            let partition =
                groups.iter().find(|group| group.task.id == *id).map(partition).unwrap_or_default();
            self.drop_group(*id, partition, reason.clone());
        }
        for group in groups.iter().filter(|group| outcome.landed.contains(&group.task.id)) {
            let sizes = |bytes: u64, count: usize| (bytes, count as u64);
            let inputs = &group.task.files;
            let (bytes_in, files_in) =
                sizes(inputs.iter().map(|file| file.file.file_size_in_bytes()).sum(), inputs.len());
            let (bytes_out, files_out) = sizes(
                group.outputs.iter().map(|file| file.file.file_size_in_bytes()).sum(),
                group.outputs.len(),
            );
            let report = &mut self.report;
            report.groups_landed += 1;
            report.files_in += files_in;
            report.files_out += files_out;
            report.bytes_in += bytes_in;
            report.bytes_out += bytes_out;
            report.rows += group.task.rows();
            report.deleted_rows += group.deleted_rows;
        }
        if let Some(committed) = &outcome.committed {
            self.report.snapshot_ids.push(committed.snapshot_id);
            self.report.conflicts += committed.conflicts;
            self.observer.observe(&Event::Committed {
                snapshot_id: committed.snapshot_id,
                groups: outcome.landed.clone(),
                conflicts: committed.conflicts,
            });
        }
    }
}

fn partition(group: &Rewritten) -> String {
    group.task.files.first().map(|file| file.partition_path.clone()).unwrap_or_default()
}
