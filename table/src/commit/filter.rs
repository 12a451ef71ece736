//! The manifests that a replace takes files out of.
//!
//! A manifest never changes, so what was found in it, and the filtered manifest in its place, are kept by its path
//! and are good for every attempt. An append that wins the race adds a manifest that cannot hold an input (its
//! lowest sequence number is above all of theirs), so a retry reads nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use iceberg::io::FileIO;
use iceberg::spec::{ManifestContentType, ManifestFile};

use super::ReplaceGroup;
use super::handle::within;
use crate::layout::LiveFile;
use crate::manifest::{ManifestContents, Output, has_live_files, read_manifest, write_filtered};
use crate::{Error, ErrorKind, Result};

/// Reads and writes at once.
const CONCURRENT: usize = 16;

/// The files that the active groups remove, by path.
pub(super) struct Inputs<'a> {
    /// In order, so that of several reasons the same one is told each time.
    by_path: BTreeMap<&'a str, (usize, &'a LiveFile)>,
    specs: HashSet<i32>,
    highest_sequence_number: i64,
}

impl<'a> Inputs<'a> {
    /// The inputs of the groups that are active.
    pub(super) fn of(groups: &'a [ReplaceGroup], active: &[bool]) -> Self {
        let mut inputs =
            Self { by_path: BTreeMap::new(), specs: HashSet::new(), highest_sequence_number: i64::MIN };
        for (index, group) in groups.iter().enumerate().filter(|(index, _)| active[*index]) {
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
    by_manifest: HashMap<String, Filter>,
}

struct Filter {
    /// Kept as long as it may have to be filtered (again): only where it holds an input.
    contents: Option<ManifestContents>,
    hits: Vec<Hit>,
    filtered: Option<ManifestFile>,
}

struct Hit {
    group: usize,
    path: String,
    sequence_number: i64,
    file_sequence_number: i64,
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
            if self.by_manifest.contains_key(&manifest.manifest_path) {
                continue;
            }
            reads.push(async move {
                let contents =
                    within(limit, "reading a manifest", read_manifest(file_io, manifest)).await??;
                Ok::<_, Error>((manifest.manifest_path.clone(), Filter::of(contents, inputs)))
            });
        }
        let read: Vec<(String, Filter)> = stream::iter(reads).buffered(CONCURRENT).try_collect().await?;
        self.by_manifest.extend(read);
        Ok(())
    }

    fn hits<'a>(&'a self, manifests: &'a [ManifestFile]) -> impl Iterator<Item = &'a Hit> {
        manifests
            .iter()
            .filter_map(|manifest| self.by_manifest.get(&manifest.manifest_path))
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
                    format!("`{path}` is in the table with another sequence number than planned")
                }
                Some(_) => continue,
            };
            changed.entry(*group).or_insert(reason);
        }
        Ok(changed.into_iter().collect())
    }

    /// Forgets a group that was dropped: the manifests that hold its inputs are filtered anew.
    pub(super) fn forget_group(&mut self, group: usize) {
        for filter in self.by_manifest.values_mut() {
            let before = filter.hits.len();
            filter.hits.retain(|hit| hit.group != group);
            if filter.hits.len() != before {
                filter.filtered = None;
            }
        }
    }

    /// Writes the manifests that take the place of those that hold inputs, unless an earlier attempt did.
    pub(super) async fn write(
        &mut self,
        output: Output<'_>,
        manifests: &[ManifestFile],
        inputs: &Inputs<'_>,
        limit: Duration,
    ) -> Result<()> {
        let removed: HashSet<&str> = inputs.by_path.keys().copied().collect();
        let mut writes = Vec::new();
        for manifest in manifests {
            let Some(filter) = self.by_manifest.get(&manifest.manifest_path) else { continue };
            let Some(contents) = filter.contents.as_ref() else { continue };
            if filter.filtered.is_some() || filter.hits.is_empty() {
                continue;
            }
            let write = write_filtered(output, contents, &removed);
            writes.push(async move {
                let filtered = within(limit, "writing a manifest", write).await??;
                Ok::<_, Error>((manifest.manifest_path.clone(), filtered))
            });
        }
        let written: Vec<(String, ManifestFile)> =
            stream::iter(writes).buffered(CONCURRENT).try_collect().await?;
        for (path, filtered) in written {
            if let Some(filter) = self.by_manifest.get_mut(&path) {
                filter.filtered = Some(filtered);
            }
        }
        Ok(())
    }

    /// The manifest that takes the place of this one, where it holds an input.
    pub(super) fn in_place_of(&self, manifest: &ManifestFile) -> Option<&ManifestFile> {
        let filter = self.by_manifest.get(&manifest.manifest_path)?;
        if filter.hits.is_empty() { None } else { filter.filtered.as_ref() }
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
            })
        };
        let hits: Vec<Hit> =
            contents.entries.iter().filter(|entry| entry.is_live()).filter_map(hit).collect();
        let contents = (!hits.is_empty()).then_some(contents);
        Self { contents, hits, filtered: None }
    }
}

impl Hit {
    fn is_as_planned(&self, input: &LiveFile) -> bool {
        self.sequence_number == input.sequence_number
            && self.file_sequence_number == input.file_sequence_number
    }
}
