//! The deletes of a table during a replace: those that apply to its inputs on a base, and the manifests that lose
//! some.
//!
//! **By state.** A group may land if the deletes that apply to its inputs on the base are those that were applied
//! when it was rewritten. Sequence numbers alone do not tell: a delete file may come with an explicit number from
//! before the plan (engines that rewrite delete files keep the old one), and a branch may be set to a line of
//! history that the planning snapshot is not on, where numbers below the plan's belong to deletes that it never saw.
//! An equality delete that was not applied is harmless where its number is above that of the outputs and its scope
//! holds them: it deletes from them what it would have deleted from the inputs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use iceberg::io::FileIO;
use iceberg::spec::{ManifestContentType, ManifestFile, TableMetadata};

use super::ReplaceGroup;
use super::handle::within;
use crate::layout::{
    DeleteIndex, DeleteKey, DeleteScope, LiveDelete, LiveFile, deletes_of, is_global, partition_key,
};
use crate::manifest::{ManifestContents, Output, has_live_files, read_manifest, write_filtered};
use crate::{Error, Result};

/// Reads and writes at once.
const CONCURRENT: usize = 16;

/// The delete manifests that were read. A manifest never changes, so what was found in it, and the manifest in its
/// place, are good for every attempt: a retry reads only those that are new.
#[derive(Default)]
pub(super) struct Deletes {
    by_manifest: HashMap<String, Known>,
}

struct Known {
    contents: ManifestContents,
    deletes: Vec<LiveDelete>,
    /// What takes its place without these deletes.
    filtered: Option<(HashSet<DeleteKey>, ManifestFile)>,
}

impl Deletes {
    /// Reads the delete manifests of a list, and makes the index of what is live in them.
    pub(super) async fn index(
        &mut self,
        file_io: &FileIO,
        manifests: &[ManifestFile],
        metadata: &TableMetadata,
        limit: Duration,
    ) -> Result<DeleteIndex> {
        let listed: Vec<&ManifestFile> =
            manifests.iter().filter(|manifest| holds_deletes(manifest)).collect();
        let mut reads = Vec::new();
        for manifest in listed.iter().filter(|m| !self.by_manifest.contains_key(&m.manifest_path)) {
            reads.push(async move {
                let read = within(limit, "reading a manifest", read_manifest(file_io, manifest)).await??;
                Ok::<_, Error>((manifest.manifest_path.clone(), Known::of(manifest, read)))
            });
        }
        let read: Vec<(String, Known)> = stream::iter(reads).buffered(CONCURRENT).try_collect().await?;
        self.by_manifest.extend(read);
        let known = listed.iter().filter_map(|manifest| self.by_manifest.get(&manifest.manifest_path));
        Ok(DeleteIndex::new(metadata, known.flat_map(|known| known.deletes.clone()).collect()))
    }

    /// Writes the manifests that take the place of those that hold what goes, unless an earlier attempt did.
    pub(super) async fn write(
        &mut self,
        output: Output<'_>,
        manifests: &[ManifestFile],
        gone: &HashSet<DeleteKey>,
        limit: Duration,
    ) -> Result<()> {
        let mut writes = Vec::new();
        for manifest in manifests.iter().filter(|manifest| holds_deletes(manifest)) {
            let Some(known) = self.by_manifest.get(&manifest.manifest_path) else { continue };
            let lost = known.lost(gone);
            if lost.is_empty() || known.filtered.as_ref().is_some_and(|(without, _)| *without == lost) {
                continue;
            }
            writes.push(async move {
                let write =
                    write_filtered(output, &known.contents, |file| lost.contains(&DeleteKey::of(file)));
                let filtered = within(limit, "writing a manifest", write).await??;
                Ok::<_, Error>((manifest.manifest_path.clone(), (lost, filtered)))
            });
        }
        let written: Vec<(String, (HashSet<DeleteKey>, ManifestFile))> =
            stream::iter(writes).buffered(CONCURRENT).try_collect().await?;
        for (path, filtered) in written {
            if let Some(known) = self.by_manifest.get_mut(&path) {
                known.filtered = Some(filtered);
            }
        }
        Ok(())
    }

    /// The manifest that takes the place of this one, where it holds what goes.
    pub(super) fn in_place_of(
        &self,
        manifest: &ManifestFile,
        gone: &HashSet<DeleteKey>,
    ) -> Option<&ManifestFile> {
        let known = self.by_manifest.get(&manifest.manifest_path)?;
        if known.lost(gone).is_empty() { None } else { known.filtered.as_ref().map(|(_, manifest)| manifest) }
    }
}

impl Known {
    fn of(manifest: &ManifestFile, contents: ManifestContents) -> Self {
        Self { deletes: deletes_of(manifest, contents.clone()), contents, filtered: None }
    }

    fn lost(&self, gone: &HashSet<DeleteKey>) -> HashSet<DeleteKey> {
        self.deletes.iter().map(LiveDelete::key).filter(|key| gone.contains(key)).collect()
    }
}

fn holds_deletes(manifest: &ManifestFile) -> bool {
    manifest.content == ManifestContentType::Deletes && has_live_files(manifest)
}

/// Why a group cannot land: a delete that was applied is gone, or one that was not applied would be lost. `None` where
/// it can. `sequence_number` is that of the outputs.
pub(super) fn changed(
    index: &DeleteIndex,
    metadata: &TableMetadata,
    group: &ReplaceGroup,
    sequence_number: i64,
) -> Option<String> {
    let live: BTreeMap<DeleteKey, i64> =
        index.deletes().iter().map(|delete| (delete.key(), delete.sequence_number)).collect();
    let applied: BTreeMap<DeleteKey, i64> =
        group.applied_deletes.iter().map(|delete| (delete.key(), delete.sequence_number)).collect();
    if let Some((gone, _)) = applied.iter().find(|(key, number)| live.get(key) != Some(number)) {
        return Some(format!("delete file `{}` was applied and is not in the table any more", gone.path));
    }
    let is_covered = |delete: &LiveDelete| {
        applied.contains_key(&delete.key())
            || (delete.scope() == DeleteScope::Equality
                && delete.sequence_number > sequence_number
                && holds_outputs(metadata, delete, group))
    };
    group.removed.iter().find_map(|input| {
        let missed = index.applying_to(input).into_iter().find(|delete| !is_covered(delete))?;
        Some(missed_delete(input, missed))
    })
}

/// Whether an equality delete is for the outputs of a group too.
fn holds_outputs(metadata: &TableMetadata, delete: &LiveDelete, group: &ReplaceGroup) -> bool {
    let partition = partition_key(delete.file.partition());
    is_global(metadata, delete.spec_id)
        || group.added.iter().all(|output| {
            output.spec_id == delete.spec_id && partition_key(output.file.partition()) == partition
        })
}

fn missed_delete(input: &LiveFile, delete: &LiveDelete) -> String {
    format!(
        "`{}` has deletes that were not applied when it was rewritten: those of `{}`",
        input.file.file_path(),
        delete.file.file_path()
    )
}
