//! The manifests that a replace takes files out of.
//!
//! A manifest never changes, so what was found in it, and the filtered manifest in its place, are kept by its path
//! and are good for every attempt. An append that wins the race adds a manifest that cannot hold an input (its
//! lowest sequence number is above all of theirs), so a retry reads nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use iceberg::io::FileIO;
use iceberg::spec::{DataFile, ManifestContentType, ManifestFile};

use super::ReplaceGroup;
use super::handle::within;
use crate::layout::LiveFile;
use crate::manifest::{ManifestContents, ManifestKey, Output, has_live_files, read_manifest, write_filtered};
use crate::{Error, ErrorKind, Result};

/// Reads and writes at once.
const CONCURRENT: usize = 16;

/// The files that all groups of a rewrite remove, by path.
pub(super) struct Inputs<'a> {
    /// In order, so that of several reasons the same one is told each time.
    by_path: BTreeMap<&'a str, (usize, &'a LiveFile)>,
    specs: HashSet<i32>,
    highest_sequence_number: i64,
}

impl<'a> Inputs<'a> {
    /// The inputs of these groups.
    pub(super) fn of(groups: &'a [ReplaceGroup]) -> Self {
        let mut inputs =
            Self { by_path: BTreeMap::new(), specs: HashSet::new(), highest_sequence_number: i64::MIN };
        for (index, group) in groups.iter().enumerate() {
            for input in &group.removed {
                inputs.by_path.insert(input.file.file_path(), (index, input));
                inputs.specs.insert(input.spec_id);
                inputs.highest_sequence_number = inputs.highest_sequence_number.max(input.sequence_number);
            }
        }
        inputs
    }

    /// Whether a manifest may hold one of them.
    fn may_be_in(&self, manifest: &ManifestFile) -> bool {
        manifest.content == ManifestContentType::Data
            && has_live_files(manifest)
            && self.specs.contains(&manifest.partition_spec_id)
            && manifest.min_sequence_number <= self.highest_sequence_number
    }
}

/// What is known of the manifests that were read.
#[derive(Default)]
pub(super) struct Filters {
    by_manifest: HashMap<ManifestKey, Filter>,
}

struct Filter {
    /// Kept as long as it may have to be filtered (again): only where it holds an input.
    contents: Option<ManifestContents>,
    hits: Vec<Hit>,
    /// What takes its place when these groups land.
    filtered: Option<(BTreeSet<usize>, ManifestFile)>,
}

struct Hit {
    group: usize,
    path: String,
    sequence_number: i64,
    file_sequence_number: i64,
    first_row_id: Option<i64>,
    volume: (u64, u64),
}

/// Rows and bytes.
fn volume(file: &DataFile) -> (u64, u64) {
    (file.record_count(), file.file_size_in_bytes())
}

impl Filters {
    /// Reads manifests until every input is found, or none is left that may hold one: first those that held them
    /// when the rewrite was planned.
    pub(super) async fn find(
        &mut self,
        file_io: &FileIO,
        manifests: &[ManifestFile],
        inputs: &Inputs<'_>,
        limit: Duration,
    ) -> Result<()> {
        let hinted: HashSet<&str> =
            inputs.by_path.values().map(|(_, input)| input.manifest_path.as_ref()).collect();
        let mut candidates: Vec<&ManifestFile> = manifests.iter().filter(|m| inputs.may_be_in(m)).collect();
        candidates.sort_by_key(|manifest| !hinted.contains(manifest.manifest_path.as_str()));
        let first = candidates.partition_point(|manifest| hinted.contains(manifest.manifest_path.as_str()));
        self.read(file_io, &candidates[..first], inputs, limit).await?;
        if self.found(manifests) < inputs.by_path.len() {
            self.read(file_io, &candidates[first..], inputs, limit).await?;
        }
        Ok(())
    }

    async fn read(
        &mut self,
        file_io: &FileIO,
        manifests: &[&ManifestFile],
        inputs: &Inputs<'_>,
        limit: Duration,
    ) -> Result<()> {
        let mut reads = Vec::new();
        for manifest in manifests {
            if self.by_manifest.contains_key(&ManifestKey::of(manifest)) {
                continue;
            }
            reads.push(async move {
                let contents =
                    within(limit, "reading a manifest", read_manifest(file_io, manifest)).await??;
                Ok::<_, Error>((ManifestKey::of(manifest), Filter::of(contents, inputs)))
            });
        }
        let read: Vec<(ManifestKey, Filter)> = stream::iter(reads).buffered(CONCURRENT).try_collect().await?;
        self.by_manifest.extend(read);
        Ok(())
    }

    fn hits<'a>(&'a self, manifests: &'a [ManifestFile]) -> impl Iterator<Item = &'a Hit> {
        manifests
            .iter()
            .filter_map(|manifest| self.by_manifest.get(&ManifestKey::of(manifest)))
            .flat_map(|filter| &filter.hits)
    }

    fn found(&self, manifests: &[ManifestFile]) -> usize {
        self.hits(manifests).count()
    }

    /// The groups with an input that is not as it was planned, each with the reason. `Data` where a file is live
    /// twice: such a table is broken.
    pub(super) fn changed(
        &self,
        manifests: &[ManifestFile],
        inputs: &Inputs<'_>,
    ) -> Result<Vec<(usize, String)>> {
        let mut live: HashMap<&str, &Hit> = HashMap::new();
        for hit in self.hits(manifests) {
            if live.insert(&hit.path, hit).is_some() {
                return Err(Error::new(
                    ErrorKind::Data,
                    format!("`{}` is live twice in the table: nothing was changed", hit.path),
                ));
            }
        }
        let mut changed: BTreeMap<usize, String> = BTreeMap::new();
        for (path, (group, input)) in &inputs.by_path {
            let reason = match live.get(path) {
                None => format!("`{path}` is not in the table any more"),
                Some(hit) if !hit.is_as_planned(input) => {
                    format!("`{path}` is in the table with other numbers than planned: it was added again")
                }
                Some(_) => continue,
            };
            changed.entry(*group).or_insert(reason);
        }
        Ok(changed.into_iter().collect())
    }

    /// Writes the manifests that take the place of those that hold inputs of active groups, unless an earlier attempt
    /// did.
    pub(super) async fn write(
        &mut self,
        output: Output<'_>,
        manifests: &[ManifestFile],
        active: &[bool],
        limit: Duration,
    ) -> Result<()> {
        let mut writes = Vec::new();
        for manifest in manifests {
            let Some(filter) = self.by_manifest.get(&ManifestKey::of(manifest)) else { continue };
            let Some(contents) = filter.contents.as_ref() else { continue };
            let landing = filter.landing(active);
            if landing.is_empty() || filter.filtered.as_ref().is_some_and(|(groups, _)| *groups == landing) {
                continue;
            }
            let hits = filter.hits.iter().filter(|hit| active[hit.group]);
            let removed: HashSet<&str> = hits.map(|hit| hit.path.as_str()).collect();
            let write = write_filtered(output, contents, move |file| removed.contains(file.file_path()));
            writes.push(async move {
                let filtered = within(limit, "writing a manifest", write).await??;
                Ok::<_, Error>((ManifestKey::of(manifest), (landing, filtered)))
            });
        }
        let written: Vec<(ManifestKey, (BTreeSet<usize>, ManifestFile))> =
            stream::iter(writes).buffered(CONCURRENT).try_collect().await?;
        for (manifest, filtered) in written {
            if let Some(filter) = self.by_manifest.get_mut(&manifest) {
                filter.filtered = Some(filtered);
            }
        }
        Ok(())
    }

    /// The manifest that takes the place of this one, where it holds an input of an active group.
    pub(super) fn in_place_of(&self, manifest: &ManifestFile, active: &[bool]) -> Option<&ManifestFile> {
        let filter = self.by_manifest.get(&ManifestKey::of(manifest))?;
        if filter.landing(active).is_empty() { None } else { filter.filtered.as_ref().map(|(_, new)| new) }
    }
}

impl Filter {
    fn of(contents: ManifestContents, inputs: &Inputs<'_>) -> Self {
        let hit = |entry: &crate::manifest::Entry| {
            let (group, _) = inputs.by_path.get(entry.file.file_path())?;
            Some(Hit {
                group: *group,
                path: entry.file.file_path().to_owned(),
                sequence_number: entry.sequence_number,
                file_sequence_number: entry.file_sequence_number,
                first_row_id: entry.file.first_row_id(),
                volume: volume(&entry.file),
            })
        };
        let hits: Vec<Hit> =
            contents.entries.iter().filter(|entry| entry.is_live()).filter_map(hit).collect();
        let contents = (!hits.is_empty()).then_some(contents);
        Self { contents, hits, filtered: None }
    }

    /// The active groups whose inputs it holds.
    fn landing(&self, active: &[bool]) -> BTreeSet<usize> {
        self.hits.iter().map(|hit| hit.group).filter(|group| active[*group]).collect()
    }
}

impl Hit {
    /// The same file, added by the same commit. Its first row id may differ after an upgrade to format version 3: then
    /// its rows got ids that the outputs do not have.
    fn is_as_planned(&self, input: &LiveFile) -> bool {
        self.sequence_number == input.sequence_number
            && self.file_sequence_number == input.file_sequence_number
            && self.first_row_id == input.file.first_row_id()
            && self.volume == volume(&input.file)
    }
}
