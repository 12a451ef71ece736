//! Requirements and updates applied to the metadata of a head. Pure.

use std::collections::HashSet;

use iceberg::spec::TableMetadata;
use iceberg::{TableRequirement, TableUpdate};

use crate::Result;
use crate::expire::refs;

/// What a commit would make of a head.
#[derive(Debug)]
pub(super) struct Applied {
    /// The new metadata, its log ending with the head.
    pub(super) metadata: TableMetadata,
    /// Metadata files that fell out of the log.
    pub(super) dropped_from_log: Vec<String>,
}

/// Why a commit cannot be applied to a head.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A requirement does not hold.
    Requirement,
    /// An update makes no valid table of this head.
    Update(iceberg::Error),
}

/// Checks the requirements against `head`, which is stored at `location`, and applies the updates to it.
pub(super) fn apply(
    head: &TableMetadata,
    location: &str,
    requirements: &[TableRequirement],
    updates: &[TableUpdate],
) -> Result<Applied, Refusal> {
    if requirements.iter().any(|requirement| requirement.check(Some(head)).is_err()) {
        return Err(Refusal::Requirement);
    }
    let mut builder = head.clone().into_builder(Some(location.to_owned()));
    for update in updates {
        builder = update.clone().apply(builder).map_err(Refusal::Update)?;
    }
    let built = builder.build().map_err(Refusal::Update)?;
    let kept: HashSet<&str> =
        built.metadata.metadata_log().iter().map(|entry| entry.metadata_file.as_str()).collect();
    let dropped_from_log = built
        .expired_metadata_logs
        .into_iter()
        .map(|entry| entry.metadata_file)
        .filter(|file| !kept.contains(file.as_str()) && file != location)
        .collect();
    Ok(Applied { metadata: built.metadata, dropped_from_log })
}

/// Whether a snapshot that the updates remove is the head of a ref that they neither remove nor move: the builder
/// would drop that ref in silence. Where `head` is not what the removal was decided on, someone made or moved the ref
/// since. Costs as much as serialising the head if the updates remove snapshots.
pub(super) fn drops_a_ref(head: &TableMetadata, updates: &[TableUpdate]) -> Result<bool> {
    let mut removed: HashSet<i64> = HashSet::new();
    let mut handled: HashSet<&String> = HashSet::new();
    for update in updates {
        match update {
            TableUpdate::RemoveSnapshots { snapshot_ids } => removed.extend(snapshot_ids),
            TableUpdate::RemoveSnapshotRef { ref_name } | TableUpdate::SetSnapshotRef { ref_name, .. } => {
                handled.insert(ref_name);
            }
            _ => {}
        }
    }
    if removed.is_empty() {
        return Ok(false);
    }
    let refs = refs(head)?;
    Ok(refs
        .iter()
        .any(|(name, reference)| removed.contains(&reference.snapshot_id) && !handled.contains(name)))
}
