//! What happens, in words for a person who reads a history.

use std::collections::BTreeMap;

use firn_table::ledger::OffsetRange;
use iceberg::TableUpdate;
use iceberg::spec::Snapshot;

use super::records::{Commit, Tale};
use super::server::Refusal;

/// The end of a location, from the table's folder on.
pub(super) fn short(location: &str) -> String {
    let parts: Vec<&str> = location.split('/').collect();
    parts[parts.len().saturating_sub(2)..].join("/")
}

/// A snapshot's id as people tell them apart.
fn id(snapshot_id: i64) -> String {
    format!("s{:06}", snapshot_id % 1_000_000)
}

fn of_ranges(ranges: &[OffsetRange]) -> String {
    let ranges: Vec<String> =
        ranges.iter().map(|range| format!("{} {}–{}", range.partition, range.start, range.next)).collect();
    ranges.join(", ")
}

/// What a commit asks for.
pub(super) fn of_updates(updates: &[TableUpdate]) -> String {
    let mut words: Vec<String> = updates.iter().map(of_update).collect();
    words.retain(|word| !word.is_empty());
    words.join(", ")
}

fn of_update(update: &TableUpdate) -> String {
    match update {
        TableUpdate::AddSnapshot { snapshot } => of_snapshot(snapshot),
        TableUpdate::SetSnapshotRef { ref_name, reference } => {
            format!("{ref_name} → {}", id(reference.snapshot_id))
        }
        TableUpdate::RemoveSnapshots { snapshot_ids } => {
            let ids: Vec<String> = snapshot_ids.iter().map(|snapshot_id| id(*snapshot_id)).collect();
            format!("remove {}", ids.join(" "))
        }
        TableUpdate::RemoveSnapshotRef { ref_name } => format!("remove ref {ref_name}"),
        TableUpdate::SetProperties { updates } => {
            let names: BTreeMap<&String, &String> = updates.iter().collect();
            let names: Vec<&str> = names.into_keys().map(String::as_str).collect();
            format!("set {}", names.join(" "))
        }
        TableUpdate::RemoveProperties { removals } => format!("unset {}", removals.join(" ")),
        TableUpdate::AddSchema { .. } => "add a schema".to_owned(),
        TableUpdate::SetCurrentSchema { schema_id } => format!("current schema {schema_id}"),
        TableUpdate::AddSpec { .. } => "add a spec".to_owned(),
        TableUpdate::SetDefaultSpec { spec_id } => format!("default spec {spec_id}"),
        other => format!("{other:?}").chars().take(40).collect(),
    }
}

fn of_snapshot(snapshot: &Snapshot) -> String {
    let summary = &snapshot.summary().additional_properties;
    let number = |key: &str| summary.get(key).cloned().unwrap_or_else(|| "0".to_owned());
    let mut words = format!(
        "{} {} +{} −{} files",
        snapshot.summary().operation.as_str(),
        id(snapshot.snapshot_id()),
        number("added-data-files"),
        number("deleted-data-files"),
    );
    if let Some(commit) = summary.get("firn.commit-id") {
        let tail = commit.len().saturating_sub(12);
        words.push_str(&format!(" …{}", &commit[tail..]));
    }
    words
}

/// A commit that was applied, with the cursors that it moved.
pub(super) fn of_commit(commit: &Commit) -> String {
    let Some(after) = &commit.after else { return "APPLIED: table dropped".to_owned() };
    let sequence = after.metadata().last_sequence_number();
    format!("APPLIED #{sequence}: {}", of_updates(&commit.updates))
}

pub(super) fn of_refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Missing => "there is no such table".to_owned(),
        Refusal::Requirement(what) | Refusal::Update(what) => {
            what.split("=> ").last().unwrap_or(what).chars().take(100).collect()
        }
    }
}

/// What a process told; `None` for what is not worth a line.
pub(super) fn of_tale(tale: &Tale) -> Option<String> {
    Some(match tale {
        Tale::Started => "started".to_owned(),
        Tale::Crashed => "CRASHED".to_owned(),
        Tale::Paused(time) => format!("PAUSED for {time:?}"),
        Tale::Ended(Ok(())) => "ended".to_owned(),
        Tale::Ended(Err((_, error))) => format!("ended with an error: {error}"),
        Tale::Writer(event) => return of_writer(event),
        Tale::Compactor(event) => return of_compactor(event),
    })
}

fn of_writer(event: &firn_writer::Event) -> Option<String> {
    use firn_writer::Event;
    Some(match event {
        Event::Assigned { starts } => {
            let starts: Vec<String> = starts.iter().map(|(p, at)| format!("{p} from {at}")).collect();
            format!("assigned {}", starts.join(", "))
        }
        Event::Revoked { partitions } => {
            let partitions: Vec<String> = partitions.iter().map(ToString::to_string).collect();
            format!("revoked {}", partitions.join(", "))
        }
        Event::Committed(commit) => {
            format!("told: committed {} with {}", id(commit.snapshot_id), of_ranges(&commit.ranges))
        }
        Event::Overtaken { ranges, by } => {
            let by = by.map_or_else(|| "somebody".to_owned(), |by| by.to_string());
            format!("told: overtaken by {by}: {}", of_ranges(ranges))
        }
        Event::Gap { partition, from, to } => format!("told: gap in {partition}, {from} to {to}"),
        Event::Expired { snapshots, files, .. } => {
            format!("told: expired {snapshots} snapshots, {files} files")
        }
        Event::TableChanged { schema_id, spec_id } => {
            format!("told: writes schema {schema_id} and spec {spec_id} now")
        }
        Event::Shards { from, to, reason } => format!("told: {from} shards become {to}, {reason}"),
        Event::Freshness(freshness) => format!("told: freshness of {freshness:?}"),
        Event::Unhealthy { reason, .. } => format!("told: unhealthy, {reason}"),
        Event::Healthy => "told: healthy again".to_owned(),
        Event::Stopping => "stopping".to_owned(),
        _ => return None,
    })
}

fn of_compactor(event: &firn_compactor::Event) -> Option<String> {
    use firn_compactor::Event;
    Some(match event {
        Event::Planned { groups, files, .. } => format!("plans {groups} groups of {files} files"),
        Event::GroupStarted { group, files } => format!("rewrites group {group} of {} files", files.len()),
        Event::GroupFinished { group, files, .. } => format!("rewrote group {group} into {files} files"),
        Event::GroupDropped { group, reason } => format!("drops group {group}: {reason}"),
        Event::Committed { snapshot_id, groups, .. } => {
            format!("told: committed {} with groups {groups:?}", id(*snapshot_id))
        }
        _ => return None,
    })
}
