//! What only removed snapshots reach: the difference that may be deleted. The module's documentation says why reading
//! the border is enough.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::stream::{self, StreamExt, TryStreamExt};
use iceberg::io::FileIO;
use iceberg::spec::{
    DataFileFormat, FormatVersion, ManifestContentType, ManifestFile, SnapshotRef, TableMetadata,
};

use crate::manifest::{Entry, read_entries, read_list_at};
use crate::storage::normalize;
use crate::{ErrorKind, Result};

/// Manifest lists and manifests that are read at a time.
const CONCURRENT_READS: usize = 8;

/// Files that no kept snapshot reaches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unreachable {
    pub(super) data_files: Vec<String>,
    pub(super) manifests: Vec<String>,
    pub(super) manifest_lists: Vec<String>,
    pub(super) statistics_files: Vec<String>,
}

/// The metadata before and after some snapshots were removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Removal<'a> {
    pub(super) before: &'a TableMetadata,
    pub(super) after: &'a TableMetadata,
    /// The heads of the refs before it.
    pub(super) heads: &'a BTreeMap<String, i64>,
}

/// The manifests of one snapshot, by path.
type Manifests = HashMap<String, ManifestFile>;

/// A file of a manifest that left.
#[derive(Debug)]
struct Candidate {
    path: String,
    added_by: i64,
    puffin: bool,
}

/// Finds what the removed snapshots reach and the kept ones do not.
///
/// # Errors
/// Whatever keeps a list or manifest of the kept side from being read: then nothing is known to be unreachable.
pub(super) async fn unreachable(file_io: &FileIO, removal: Removal<'_>) -> Result<Unreachable> {
    let version = removal.after.format_version();
    let removed = removal.removed();
    let border = removal.border(&removed);
    let removed_lists = read_lists(file_io, &removed, version, Gone::Skipped).await?;
    let border_lists = read_lists(file_io, &border, version, Gone::Fails).await?;

    let kept: HashSet<&String> = border_lists.iter().flat_map(HashMap::keys).collect();
    let left: BTreeMap<&String, &ManifestFile> =
        removed_lists.iter().flatten().filter(|(path, _)| !kept.contains(path)).collect();
    let candidates = candidates(file_io, left.values().map(|manifest| (*manifest).clone()).collect()).await?;
    let to_read = still_needed_manifests(&removed_lists, &border_lists, &left, &candidates);
    let live = live_paths(file_io, to_read).await?;

    let mut data_files: Vec<String> = candidates
        .into_iter()
        .filter(|(normalized, _)| !live.contains(normalized))
        .map(|(_, candidate)| candidate.path)
        .collect();
    data_files.sort();
    Ok(Unreachable {
        data_files,
        manifests: left.into_keys().cloned().collect(),
        manifest_lists: removal.unnamed(&removed, |snapshot| vec![snapshot.manifest_list().to_owned()]),
        statistics_files: removal.statistics(),
    })
}

impl Removal<'_> {
    fn removed(&self) -> Vec<SnapshotRef> {
        let mut removed: Vec<SnapshotRef> = self
            .before
            .snapshots()
            .filter(|snapshot| self.after.snapshot_by_id(snapshot.snapshot_id()).is_none())
            .cloned()
            .collect();
        removed.sort_by_key(|snapshot| (snapshot.sequence_number(), snapshot.snapshot_id()));
        removed
    }

    /// The kept snapshots through which anything shared with a removed one is shared.
    fn border(&self, removed: &[SnapshotRef]) -> Vec<SnapshotRef> {
        let heads: HashSet<i64> = self.heads.values().copied().collect();
        let parents: HashSet<i64> =
            removed.iter().filter_map(|snapshot| snapshot.parent_snapshot_id()).collect();
        let gone = |id: i64| self.before.snapshot_by_id(id).is_none();
        let below_a_gap = removed.iter().filter(|snapshot| snapshot.parent_snapshot_id().is_some_and(gone));
        let youngest_below_a_gap = below_a_gap.map(|snapshot| snapshot.sequence_number()).max();
        let on_border = |snapshot: &&SnapshotRef| {
            let id = snapshot.snapshot_id();
            let parent = snapshot.parent_snapshot_id();
            heads.contains(&id)
                || parents.contains(&id)
                || parent.is_none_or(|parent| self.after.snapshot_by_id(parent).is_none())
                || youngest_below_a_gap.is_some_and(|youngest| snapshot.sequence_number() <= youngest)
        };
        let mut border: Vec<SnapshotRef> = self.after.snapshots().filter(on_border).cloned().collect();
        border.sort_by_key(|snapshot| (snapshot.sequence_number(), snapshot.snapshot_id()));
        border
    }

    /// What `files` says of the removed snapshots and of no kept one.
    fn unnamed(&self, removed: &[SnapshotRef], files: impl Fn(&SnapshotRef) -> Vec<String>) -> Vec<String> {
        let kept: HashSet<String> =
            self.after.snapshots().flat_map(&files).map(|location| normalize(&location)).collect();
        removed
            .iter()
            .flat_map(files)
            .filter(|location| !location.is_empty() && !kept.contains(&normalize(location)))
            .collect()
    }

    fn statistics(&self) -> Vec<String> {
        let of = |metadata: &TableMetadata| -> Vec<String> {
            let statistics = metadata.statistics_iter().map(|file| file.statistics_path.clone());
            let partitions = metadata.partition_statistics_iter().map(|file| file.statistics_path.clone());
            statistics.chain(partitions).collect()
        };
        let kept: HashSet<String> = of(self.after).iter().map(|location| normalize(location)).collect();
        let mut gone: Vec<String> =
            of(self.before).into_iter().filter(|location| !kept.contains(&normalize(location))).collect();
        gone.sort();
        gone.dedup();
        gone
    }
}

/// What a missing manifest list means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gone {
    /// An expiry before this one was interrupted while it deleted: the rest is for orphan removal.
    Skipped,
    /// The table is damaged: nothing may be concluded.
    Fails,
}

async fn read_lists(
    file_io: &FileIO,
    snapshots: &[SnapshotRef],
    version: FormatVersion,
    gone: Gone,
) -> Result<Vec<Manifests>> {
    let reads: Vec<_> =
        snapshots.iter().cloned().map(|snapshot| read_one_list(file_io, snapshot, version, gone)).collect();
    stream::iter(reads).buffered(CONCURRENT_READS).try_collect().await
}

async fn read_one_list(
    file_io: &FileIO,
    snapshot: SnapshotRef,
    version: FormatVersion,
    gone: Gone,
) -> Result<Manifests> {
    match read_list_at(file_io, snapshot.manifest_list(), version).await {
        Ok(manifests) => Ok(by_path(manifests)),
        Err(error) if error.kind() == ErrorKind::NotFound && gone == Gone::Skipped => {
            let snapshot_id = snapshot.snapshot_id();
            tracing::warn!(snapshot_id, "manifest list of an expired snapshot is gone already");
            Ok(Manifests::new())
        }
        Err(error) => Err(error),
    }
}

fn by_path(manifests: Vec<ManifestFile>) -> Manifests {
    manifests.into_iter().map(|manifest| (manifest.manifest_path.clone(), manifest)).collect()
}

/// The live files of manifests that left, by normalised path.
async fn candidates(file_io: &FileIO, left: Vec<ManifestFile>) -> Result<HashMap<String, Candidate>> {
    let reads: Vec<_> =
        left.into_iter().map(|manifest| read_live(file_io, manifest, Gone::Skipped)).collect();
    let mut reads = stream::iter(reads).buffer_unordered(CONCURRENT_READS);
    let mut found = HashMap::new();
    while let Some(entries) = reads.next().await {
        for entry in entries? {
            let candidate = Candidate {
                path: entry.file.file_path().to_owned(),
                added_by: entry.snapshot_id,
                puffin: entry.file.file_format() == DataFileFormat::Puffin,
            };
            found.insert(normalize(&candidate.path), candidate);
        }
    }
    Ok(found)
}

async fn read_live(file_io: &FileIO, manifest: ManifestFile, gone: Gone) -> Result<Vec<Entry>> {
    match read_entries(file_io, &manifest).await {
        Ok(mut entries) => {
            entries.retain(Entry::is_live);
            Ok(entries)
        }
        Err(error) if error.kind() == ErrorKind::NotFound && gone == Gone::Skipped => {
            let manifest = manifest.manifest_path;
            tracing::warn!(manifest, "manifest of an expired snapshot is gone already");
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// The manifests of the border that may hold a candidate.
fn still_needed_manifests(
    removed: &[Manifests],
    border: &[Manifests],
    left: &BTreeMap<&String, &ManifestFile>,
    candidates: &HashMap<String, Candidate>,
) -> Vec<ManifestFile> {
    if candidates.is_empty() {
        return Vec::new();
    }
    // What every removed snapshot that had a candidate had too cannot hold that candidate a second time.
    let concerned: Vec<&Manifests> =
        removed.iter().filter(|list| list.keys().any(|path| left.contains_key(path))).collect();
    let added_by: HashSet<i64> = candidates.values().map(|candidate| candidate.added_by).collect();
    let puffin = candidates.values().any(|candidate| candidate.puffin);
    let may_hold = |path: &str, manifest: &ManifestFile| {
        let shared = concerned.iter().all(|list| list.contains_key(path));
        let moved = manifest.existing_files_count != Some(0);
        let original = added_by.contains(&manifest.added_snapshot_id);
        (puffin && manifest.content == ManifestContentType::Deletes) || (!shared && (moved || original))
    };
    let mut needed: BTreeMap<&str, &ManifestFile> = BTreeMap::new();
    for (path, manifest) in border.iter().flatten() {
        if may_hold(path, manifest) {
            needed.insert(path, manifest);
        }
    }
    needed.into_values().cloned().collect()
}

async fn live_paths(file_io: &FileIO, manifests: Vec<ManifestFile>) -> Result<HashSet<String>> {
    let reads: Vec<_> =
        manifests.into_iter().map(|manifest| read_live(file_io, manifest, Gone::Fails)).collect();
    let mut reads = stream::iter(reads).buffer_unordered(CONCURRENT_READS);
    let mut live = HashSet::new();
    while let Some(entries) = reads.next().await {
        live.extend(entries?.iter().map(|entry| normalize(entry.file.file_path())));
    }
    Ok(live)
}
