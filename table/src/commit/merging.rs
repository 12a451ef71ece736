//! Merging of small manifests by an append: done once, good for every attempt as long as its sources are there.

use std::collections::HashSet;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::ManifestFile;

use super::handle::Turn;
use super::summary::Changes;
use crate::manifest::{
    ManifestContents, ManifestKey, MergePolicy, Output, has_live_files, plan_merge, read_manifest,
    write_merged,
};
use crate::{Error, Result};

/// Reads at once.
const CONCURRENT_READS: usize = 16;

/// The merge of one commit.
#[derive(Debug, Default)]
pub(super) struct Merges {
    done: Option<(HashSet<ManifestKey>, ManifestFile)>,
    /// Whether a merge failed: an append does not try again, and does without.
    failed: bool,
}

impl Merges {
    /// Merges what is due in the parent's list. A merge that fails leaves the append as it is.
    pub(super) async fn prepare(
        &mut self,
        turn: &mut Turn,
        parent: &[ManifestFile],
        policy: MergePolicy,
        output: Output<'_>,
    ) {
        let there = |sources: &HashSet<ManifestKey>| {
            parent.iter().filter(|manifest| sources.contains(&ManifestKey::of(manifest))).count()
                == sources.len()
        };
        if self.failed || self.done.as_ref().is_some_and(|(sources, _)| there(sources)) {
            return;
        }
        self.done = None;
        turn.unmergeable.retain(|path| parent.iter().any(|manifest| &manifest.manifest_path == path));
        let Some(due) = plan_merge(parent, policy, &turn.unmergeable) else { return };
        let due: Vec<&ManifestFile> = due.into_iter().map(|index| &parent[index]).collect();
        match merge(output, &due).await {
            Ok(Some(done)) => self.done = Some(done),
            Ok(None) => turn.unmergeable.extend(due.iter().map(|manifest| manifest.manifest_path.clone())),
            Err(error) => self.give_up(&error),
        }
    }

    /// Does without a merge.
    pub(super) fn give_up(&mut self, error: &Error) {
        self.failed = true;
        self.done = None;
        tracing::warn!(%error, "small manifests were not merged: the append goes on without");
    }

    /// Adds the parent's manifests to a new list: the merged one in place of its sources, and none without live files.
    pub(super) fn apply(
        &self,
        parent: &[ManifestFile],
        manifests: &mut Vec<ManifestFile>,
        changes: &mut Changes,
    ) {
        if let Some((_, merged)) = &self.done {
            manifests.push(merged.clone());
        }
        changes.manifests_created = manifests.len();
        let merged = |manifest: &ManifestFile| {
            self.done.as_ref().is_some_and(|(sources, _)| sources.contains(&ManifestKey::of(manifest)))
        };
        for manifest in parent {
            if merged(manifest) {
                changes.manifests_replaced += 1;
            } else if has_live_files(manifest) {
                changes.manifests_kept += 1;
                manifests.push(manifest.clone());
            }
        }
    }
}

/// Merges those manifests that have the schema and spec of most; `None` where no two have the same.
async fn merge(
    output: Output<'_>,
    due: &[&ManifestFile],
) -> Result<Option<(HashSet<ManifestKey>, ManifestFile)>> {
    let mut reads = Vec::with_capacity(due.len());
    for manifest in due {
        reads.push(async move {
            let contents = read_manifest(output.file_io, manifest).await?;
            Ok::<_, Error>((ManifestKey::of(manifest), contents))
        });
    }
    let contents: Vec<(ManifestKey, ManifestContents)> =
        stream::iter(reads).buffered(CONCURRENT_READS).try_collect().await?;
    let mut groups: Vec<Vec<(ManifestKey, ManifestContents)>> = Vec::new();
    for item in contents {
        match groups.iter_mut().find(|group| is_same_kind(&group[0].1, &item.1)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    let largest = groups.into_iter().max_by_key(Vec::len).filter(|group| group.len() > 1);
    let Some(group) = largest else { return Ok(None) };
    let (sources, contents): (HashSet<ManifestKey>, Vec<ManifestContents>) = group.into_iter().unzip();
    let merged = write_merged(output, &contents).await?;
    Ok(Some((sources, merged)))
}

/// Only manifests with equal headers are merged: an entry's metrics and partition mean what its header says.
fn is_same_kind(a: &ManifestContents, b: &ManifestContents) -> bool {
    let same_schema = Arc::ptr_eq(&a.schema, &b.schema)
        || (a.schema.schema_id() == b.schema.schema_id() && a.schema == b.schema);
    same_schema && a.spec == b.spec && a.content == b.content
}
