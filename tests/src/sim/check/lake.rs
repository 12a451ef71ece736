//! What the checkers read of the table's files, each file once: manifests and data files never change.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use iceberg::spec::{Manifest, ManifestContentType, SnapshotRef};
use iceberg::table::Table;
use tokio::sync::Mutex;

use super::super::records::Commit;
use super::super::view::{View, Violation};
use crate::checks::{LoadedManifest, SnapshotContents};
use crate::foreign::{Entry, LiveRow, Reader, entries_of};

/// Everything that was read so far. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Lake {
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    reader: Option<Reader>,
    manifests: HashMap<String, Arc<Manifest>>,
    entries: HashMap<String, Arc<Vec<Entry>>>,
    snapshots: HashMap<i64, Arc<SnapshotContents>>,
    /// The parent of every snapshot that ever was.
    parents: HashMap<i64, Option<i64>>,
}

/// A snapshot that a commit added.
#[derive(Debug, Clone)]
pub struct Added {
    /// The branches that it became the head of.
    pub branches: Vec<String>,
    /// The snapshot.
    pub contents: Arc<SnapshotContents>,
    /// The one that it builds on.
    pub parent: Option<Arc<SnapshotContents>>,
}

/// How a snapshot differs from its parent.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Data files that the parent lacks.
    pub added: Vec<Entry>,
    /// Data files of the parent that are gone.
    pub removed: Vec<Entry>,
    /// Delete files that the parent lacks.
    pub deletes_added: Vec<Entry>,
    /// Delete files of the parent that are gone.
    pub deletes_removed: Vec<Entry>,
}

impl Added {
    /// Its summary's operation is this.
    #[must_use]
    pub fn is(&self, operation: &iceberg::spec::Operation) -> bool {
        self.contents.snapshot.summary().operation == *operation
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.contents.snapshot.snapshot_id()
    }
}

impl Lake {
    /// The snapshots that the last commit added.
    pub async fn added(&self, view: View<'_>) -> Result<Vec<Added>, Violation> {
        let Some(commit) = view.records.commits.last() else { return Ok(Vec::new()) };
        let Some(after) = &commit.after else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for id in commit.added_snapshots() {
            let Some(snapshot) = after.metadata().snapshot_by_id(id) else { continue };
            let contents = self.contents(view, after, snapshot).await?;
            let parent = snapshot.parent_snapshot_id().and_then(|id| after.metadata().snapshot_by_id(id));
            let parent = match parent {
                Some(parent) => Some(self.contents(view, after, parent).await?),
                None => None,
            };
            all.push(Added { branches: branches_of(commit, id), contents, parent });
        }
        Ok(all)
    }

    /// A snapshot with its manifests.
    pub async fn contents(
        &self,
        view: View<'_>,
        table: &Table,
        snapshot: &SnapshotRef,
    ) -> Result<Arc<SnapshotContents>, Violation> {
        let known = &mut *self.known.lock().await;
        let id = snapshot.snapshot_id();
        // A commit that landed, was rolled back and expired may land once more, with its id.
        let same =
            |known: &&Arc<SnapshotContents>| known.snapshot.manifest_list() == snapshot.manifest_list();
        if let Some(contents) = known.snapshots.get(&id).filter(same) {
            return Ok(contents.clone());
        }
        let contents = SnapshotContents::load(table, snapshot, &mut known.manifests).await;
        let contents = Arc::new(contents.map_err(|error| unreadable(id, &error))?);
        known.parents.insert(id, snapshot.parent_snapshot_id());
        known.snapshots.insert(id, contents.clone());
        if let Some(table) = view.table {
            known.forget(table);
        }
        Ok(contents)
    }

    /// Whether a snapshot is another one, or an ancestor of it, also of those that are expired.
    pub async fn is_in_line(&self, older: i64, newer: i64) -> bool {
        let known = self.known.lock().await;
        let mut next = Some(newer);
        while let Some(id) = next {
            if id == older {
                return true;
            }
            next = known.parents.get(&id).copied().flatten();
        }
        false
    }

    /// How a snapshot differs from its parent: only manifests that they do not share are looked at.
    pub async fn changes(&self, added: &Added) -> Result<Changes, Violation> {
        let of_parent = added.parent.as_deref().map_or(&[][..], |parent| &parent.manifests);
        let before = self.only_in(of_parent, &added.contents.manifests).await?;
        let after = self.only_in(&added.contents.manifests, of_parent).await?;
        let keys = |entries: &[Entry]| entries.iter().map(Entry::key).collect::<HashSet<_>>();
        let (keys_before, keys_after) = (keys(&before), keys(&after));
        let mut changes = Changes::default();
        for entry in after.into_iter().filter(|entry| !keys_before.contains(&entry.key())) {
            if entry.is_data() { &mut changes.added } else { &mut changes.deletes_added }.push(entry);
        }
        for entry in before.into_iter().filter(|entry| !keys_after.contains(&entry.key())) {
            if entry.is_data() { &mut changes.removed } else { &mut changes.deletes_removed }.push(entry);
        }
        Ok(changes)
    }

    /// The live entries of manifests that are not among `others`.
    async fn only_in(
        &self,
        manifests: &[LoadedManifest],
        others: &[LoadedManifest],
    ) -> Result<Vec<Entry>, Violation> {
        let shared: BTreeSet<&str> = others.iter().map(|other| other.listed.manifest_path.as_str()).collect();
        self.entries(manifests.iter().filter(|own| !shared.contains(own.listed.manifest_path.as_str()))).await
    }

    /// The delete files of a snapshot.
    pub async fn deletes(&self, contents: &SnapshotContents) -> Result<Vec<Entry>, Violation> {
        let of_deletes = |manifest: &&LoadedManifest| manifest.listed.content == ManifestContentType::Deletes;
        self.entries(contents.manifests.iter().filter(of_deletes)).await
    }

    /// The live entries of manifests.
    async fn entries(
        &self,
        manifests: impl Iterator<Item = &LoadedManifest>,
    ) -> Result<Vec<Entry>, Violation> {
        let known = &mut *self.known.lock().await;
        let mut all = Vec::new();
        for manifest in manifests {
            let path = &manifest.listed.manifest_path;
            let entries = match known.entries.get(path) {
                Some(entries) => entries.clone(),
                None => {
                    let entries = entries_of(&manifest.manifest, &manifest.listed);
                    let entries = Arc::new(entries.map_err(|error| unreadable(path, &error))?);
                    known.entries.insert(path.clone(), entries.clone());
                    entries
                }
            };
            all.extend(entries.iter().filter(|entry| entry.is_live()).cloned());
        }
        Ok(all)
    }

    /// The rows of data files, with nothing deleted.
    pub async fn rows_of_files(
        &self,
        view: View<'_>,
        table: &Table,
        files: &[Entry],
    ) -> Result<Vec<LiveRow>, Violation> {
        let known = &mut *self.known.lock().await;
        let reader = known.reader.get_or_insert_with(|| Reader::new(view.stores));
        let mut rows = Vec::new();
        for file in files {
            let of_file = reader.rows_of(file, table.metadata().current_schema(), &HashSet::new()).await;
            rows.extend(of_file.map_err(|error| unreadable(file.file.file_path(), &error))?);
        }
        Ok(rows)
    }

    /// The rows of a snapshot that no delete takes away.
    pub async fn live_rows(
        &self,
        view: View<'_>,
        table: &Table,
        snapshot_id: i64,
    ) -> Result<Vec<LiveRow>, Violation> {
        let known = &mut *self.known.lock().await;
        let reader = known.reader.get_or_insert_with(|| Reader::new(view.stores));
        reader.live(table, snapshot_id).await.map_err(|error| unreadable(snapshot_id, &error))
    }
}

impl Known {
    /// Lets go of what the table has expired.
    fn forget(&mut self, table: &Table) {
        let metadata = table.metadata();
        if self.snapshots.len() > 2 * metadata.snapshots().len() + 50 {
            self.snapshots.retain(|id, _| metadata.snapshot_by_id(*id).is_some());
            let listed = self.snapshots.values().flat_map(|contents| &contents.manifests);
            let used: HashSet<&str> = listed.map(|m| m.listed.manifest_path.as_str()).collect();
            self.manifests.retain(|path, _| used.contains(path.as_str()));
            self.entries.retain(|path, _| used.contains(path.as_str()));
        }
    }
}

/// A file that a live snapshot names and that cannot be read.
fn unreadable(what: impl std::fmt::Display, error: &anyhow::Error) -> Violation {
    Violation::new("C5", format!("{what} cannot be read: {error:#}"))
}

/// The branches whose head a commit made this snapshot.
fn branches_of(commit: &Commit, snapshot_id: i64) -> Vec<String> {
    let moved = commit.updates.iter().filter_map(|update| match update {
        iceberg::TableUpdate::SetSnapshotRef { ref_name, reference }
            if reference.snapshot_id == snapshot_id =>
        {
            Some(ref_name.clone())
        }
        _ => None,
    });
    moved.collect()
}
