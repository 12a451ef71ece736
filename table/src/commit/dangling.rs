//! Deletes that a replace leaves without anything to delete: they go in the same commit.
//!
//! Deletion vectors and position deletes of one data file go with it. Other deletes go when no live file is left that
//! they could apply to: for a position delete none of its partition with its sequence number or below, for an equality
//! delete none below its own in its partition, or in the table where it is for all of it. **The files that the replace
//! adds count, with the old sequence number that they get**: without them, deletes would go that came between the
//! plan and the commit and still have rows to delete.
//!
//! To leave a delete is always right, so the search has a limit.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use iceberg::io::FileIO;
use iceberg::spec::{ManifestContentType, ManifestFile, TableMetadata};

use super::ReplaceGroup;
use super::handle::within;
use crate::layout::{DeleteIndex, DeleteKey, DeleteScope, LiveDelete, is_global, partition_key};
use crate::manifest::{ManifestKey, has_live_files, read_manifest};
use crate::{Error, Result};

/// Reads at once.
const CONCURRENT: usize = 16;
/// Manifests that are read in search of files that a delete still applies to, at most.
const MOST_SURVEYED: usize = 64;

/// A partition of a spec.
type Partition = (i32, String);

/// A live data file, as far as it matters here.
#[derive(Debug, Clone)]
struct Survivor {
    path: String,
    partition: Partition,
    sequence_number: i64,
}

/// The data manifests that were read for this, by their keys.
#[derive(Default)]
pub(super) struct Survey {
    by_manifest: HashMap<ManifestKey, Vec<Survivor>>,
}

/// The groups that land.
pub(super) struct Landing<'a> {
    pub(super) groups: Vec<&'a ReplaceGroup>,
    /// The sequence number of the outputs.
    pub(super) sequence_number: i64,
}

/// Where the manifests of a base are.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    pub(super) file_io: &'a FileIO,
    pub(super) metadata: &'a TableMetadata,
    pub(super) manifests: &'a [ManifestFile],
    pub(super) limit: Duration,
}

impl Survey {
    /// The deletes that go with the inputs of these groups.
    pub(super) async fn dangling(
        &mut self,
        base: Base<'_>,
        index: &DeleteIndex,
        landing: &Landing<'_>,
    ) -> Result<HashSet<DeleteKey>> {
        let removed: HashSet<&str> = landing
            .groups
            .iter()
            .flat_map(|group| &group.removed)
            .map(|input| input.file.file_path())
            .collect();
        let mut gone: HashSet<DeleteKey> = HashSet::new();
        let mut shared: Vec<&LiveDelete> = Vec::new();
        for delete in index.deletes() {
            match delete.scope() {
                DeleteScope::Vector(path) | DeleteScope::File(path) => {
                    if removed.contains(path.as_str()) {
                        gone.insert(delete.key());
                    }
                }
                DeleteScope::Paths | DeleteScope::Equality => shared.push(delete),
            }
        }
        let touched: HashSet<Partition> = landing.groups.iter().flat_map(|group| partitions(group)).collect();
        let added: Vec<Survivor> = landing.outputs();
        shared.retain(|delete| {
            let global = Reach::of(base.metadata, delete).is_global;
            (global || touched.contains(&partition(delete))) && !is_needed(base.metadata, delete, &added)
        });
        if shared.is_empty() || !self.read(base, &shared).await? {
            return Ok(gone);
        }
        let survivors: Vec<Survivor> = self.survivors(base.manifests, &removed);
        let unneeded = shared.into_iter().filter(|delete| !is_needed(base.metadata, delete, &survivors));
        gone.extend(unneeded.map(LiveDelete::key));
        Ok(gone)
    }

    /// Reads the manifests that may hold files to which one of these deletes applies; `false` where they are too many.
    async fn read(&mut self, base: Base<'_>, deletes: &[&LiveDelete]) -> Result<bool> {
        let global = deletes.iter().any(|delete| Reach::of(base.metadata, delete).is_global);
        let specs: HashSet<i32> = deletes.iter().map(|delete| delete.spec_id).collect();
        let highest = deletes.iter().map(|delete| delete.sequence_number).max().unwrap_or(i64::MIN);
        let may_hold = |manifest: &&ManifestFile| {
            manifest.content == ManifestContentType::Data
                && has_live_files(manifest)
                && (global || specs.contains(&manifest.partition_spec_id))
                && manifest.min_sequence_number <= highest
        };
        let unread: Vec<&ManifestFile> = base
            .manifests
            .iter()
            .filter(may_hold)
            .filter(|manifest| !self.by_manifest.contains_key(&ManifestKey::of(manifest)))
            .collect();
        if unread.len() > MOST_SURVEYED {
            tracing::debug!(manifests = unread.len(), "too many manifests to look for deletes without files");
            return Ok(false);
        }
        let mut reads = Vec::new();
        for manifest in unread {
            reads.push(async move {
                let read = read_manifest(base.file_io, manifest);
                let read = within(base.limit, "reading a manifest", read).await??;
                let live = read.entries.into_iter().filter(|entry| entry.is_live());
                let survivors = live.map(|entry| Survivor {
                    path: entry.file.file_path().to_owned(),
                    partition: (manifest.partition_spec_id, partition_key(entry.file.partition())),
                    sequence_number: entry.sequence_number,
                });
                Ok::<_, Error>((ManifestKey::of(manifest), survivors.collect()))
            });
        }
        let read: Vec<(ManifestKey, Vec<Survivor>)> =
            stream::iter(reads).buffered(CONCURRENT).try_collect().await?;
        self.by_manifest.extend(read);
        Ok(true)
    }

    fn survivors(&self, manifests: &[ManifestFile], removed: &HashSet<&str>) -> Vec<Survivor> {
        let read = manifests.iter().filter_map(|manifest| self.by_manifest.get(&ManifestKey::of(manifest)));
        read.flatten().filter(|file| !removed.contains(file.path.as_str())).cloned().collect()
    }
}

impl Landing<'_> {
    fn outputs(&self) -> Vec<Survivor> {
        let outputs = self.groups.iter().flat_map(|group| &group.added);
        outputs
            .map(|output| Survivor {
                path: output.file.file_path().to_owned(),
                partition: (output.spec_id, partition_key(output.file.partition())),
                sequence_number: self.sequence_number,
            })
            .collect()
    }
}

/// How far a delete reaches that is not for one file.
struct Reach {
    is_global: bool,
    /// The highest sequence number of files that it applies to.
    highest: i64,
}

impl Reach {
    fn of(metadata: &TableMetadata, delete: &LiveDelete) -> Self {
        match delete.scope() {
            DeleteScope::Equality => Self {
                is_global: is_global(metadata, delete.spec_id),
                highest: delete.sequence_number.saturating_sub(1),
            },
            _ => Self { is_global: false, highest: delete.sequence_number },
        }
    }
}

/// Whether one of these files may have rows that the delete takes away.
fn is_needed(metadata: &TableMetadata, delete: &LiveDelete, files: &[Survivor]) -> bool {
    let (reach, of) = (Reach::of(metadata, delete), partition(delete));
    files
        .iter()
        .any(|file| file.sequence_number <= reach.highest && (reach.is_global || file.partition == of))
}

fn partition(delete: &LiveDelete) -> Partition {
    (delete.spec_id, partition_key(delete.file.partition()))
}

fn partitions(group: &ReplaceGroup) -> impl Iterator<Item = Partition> + '_ {
    group.removed.iter().map(|input| (input.spec_id, partition_key(input.file.partition())))
}
