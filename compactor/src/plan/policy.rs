//! What a policy makes of a decision: it may have to wait, leave busy partitions alone, and keep to its budget.

use std::time::Duration;

use chrono::{DateTime, Utc};
use firn_policies::policy::{Addition, Backlog, ScheduleStanding, busy_partitions};
use firn_policies::{Decision, Policy, SkipReason};
use firn_table::layout::{LiveFile, partition_key};
use iceberg::spec::{SnapshotRef, TableMetadata};
use iceberg::table::Table;

use super::prepare::Exclusions;
use crate::run::RUN;

/// A policy and the time at which it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyAt {
    /// The policy.
    pub policy: Policy,
    /// The wall clock, milliseconds since the epoch.
    pub now_ms: i64,
}

/// Excludes the files of partitions to which a writer added something within the policy's quiet time. Additions
/// whose snapshot has expired are old.
pub(super) fn busy(table: &Table, files: &[LiveFile], at: Option<&PolicyAt>, exclusions: &mut Exclusions) {
    let Some((quiet, now_ms)) = at.and_then(|at| Some((at.policy.quiet?, at.now_ms))) else { return };
    let keys: Vec<String> = files.iter().map(|file| partition_key(file.file.partition())).collect();
    let additions = files.iter().zip(&keys).filter_map(|(file, partition)| {
        let snapshot =
            table.metadata().snapshot_by_id(file.snapshot_id).filter(|snapshot| !is_run(snapshot))?;
        Some(Addition { partition, spec_id: file.spec_id, at_ms: snapshot.timestamp_ms() })
    });
    let busy = busy_partitions(additions, quiet, now_ms);
    for ((file, key), exclusion) in files.iter().zip(&keys).zip(exclusions) {
        if exclusion.is_none() && busy.contains(&(key.as_str(), file.spec_id)) {
            *exclusion = Some(SkipReason::Busy);
        }
    }
}

/// The decision as far as one run may carry it out now.
pub(super) fn limited(
    table: &Table,
    head: i64,
    files: &[LiveFile],
    (decision, at): (Decision, &PolicyAt),
) -> Decision {
    let cause = waits_for(table, head, files, (&decision, at));
    match cause {
        Some(cause) => waiting(decision, &cause),
        None => at.policy.within_budget(decision),
    }
}

fn waits_for(
    table: &Table,
    head: i64,
    files: &[LiveFile],
    (decision, at): (&Decision, &PolicyAt),
) -> Option<String> {
    let metadata = table.metadata();
    let mut commits = 0;
    let mut ancestors = ancestry(metadata, head);
    let last_run = ancestors.find(|snapshot| {
        commits += u64::from(!is_run(snapshot));
        is_run(snapshot)
    });
    if let Some(schedule) = &at.policy.schedule {
        let now = DateTime::<Utc>::from_timestamp_millis(at.now_ms)?;
        let last = last_run.and_then(|run| DateTime::from_timestamp_millis(run.timestamp_ms()));
        match schedule.standing(now, last) {
            ScheduleStanding::Due => {}
            ScheduleStanding::NotYet(Some(next)) => {
                return Some(format!("its next occurrence is {}", next.to_rfc3339()));
            }
            ScheduleStanding::NotYet(None) => {
                return Some("its schedule has no further occurrence".to_owned());
            }
            ScheduleStanding::OutsideWindows => return Some("now is outside of its windows".to_owned()),
        }
    }
    at.policy.trigger.waits_for(&backlog(metadata, files, decision, (commits, at.now_ms)))
}

fn backlog(
    metadata: &TableMetadata,
    files: &[LiveFile],
    decision: &Decision,
    (commits, now_ms): (u64, i64),
) -> Backlog {
    let members = || decision.groups.iter().flat_map(|group| group.files.iter().map(|&index| &files[index]));
    let added = |file: &LiveFile| Some(metadata.snapshot_by_id(file.snapshot_id)?.timestamp_ms());
    let oldest = members().filter_map(added).min();
    Backlog {
        commits,
        files: members().count() as u64,
        bytes: members().map(|file| file.file.file_size_in_bytes()).sum(),
        oldest: oldest.map(|at| Duration::from_millis(u64::try_from(now_ms.saturating_sub(at)).unwrap_or(0))),
    }
}

/// Every group waits.
fn waiting(decision: Decision, cause: &str) -> Decision {
    let Decision { groups, mut skipped } = decision;
    let reason = SkipReason::Waiting { cause: cause.to_owned() };
    let files = groups.into_iter().flat_map(|group| group.files);
    skipped.extend(files.map(|index| (index, reason.clone())));
    skipped.sort_unstable_by_key(|&(index, _)| index);
    Decision { groups: Vec::new(), skipped }
}

/// Whether a snapshot was committed by a rewrite.
fn is_run(snapshot: &SnapshotRef) -> bool {
    snapshot.summary().additional_properties.contains_key(RUN)
}

/// A snapshot and its ancestors, as far as they are in the metadata.
fn ancestry(metadata: &TableMetadata, head: i64) -> impl Iterator<Item = &SnapshotRef> {
    std::iter::successors(metadata.snapshot_by_id(head), |snapshot| {
        metadata.snapshot_by_id(snapshot.parent_snapshot_id()?)
    })
}
