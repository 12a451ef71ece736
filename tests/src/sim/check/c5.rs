//! C5: the files of a snapshot exist as long as the snapshot does: nothing that a snapshot references is deleted.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use iceberg::table::Table;

use super::super::view::{Checker, Step, View, Violation};
use super::lake::Lake;
use crate::checks::SnapshotContents;

const NAME: &str = "C5";

/// The checker.
#[derive(Debug)]
pub struct C5 {
    lake: Lake,
    /// Locations that were deleted and not written again.
    gone: HashSet<String>,
    written: usize,
    deleted: usize,
    /// The snapshots that the table has, with what each references.
    snapshots: HashMap<i64, Arc<SnapshotContents>>,
    /// How many of them reference a location.
    references: HashMap<String, usize>,
}

impl C5 {
    /// A new one.
    #[must_use]
    pub fn new(lake: &Lake) -> Self {
        Self {
            lake: lake.clone(),
            gone: HashSet::new(),
            written: 0,
            deleted: 0,
            snapshots: HashMap::new(),
            references: HashMap::new(),
        }
    }

    /// Takes in what was deleted and written since the last step. What is not there and never was cannot be read by
    /// [`Lake`], which says so.
    fn take(&mut self, view: View<'_>) {
        // A file that is written again after its deletion is there, so deletes come first.
        self.gone.extend(view.records.deleted[self.deleted..].iter().map(|touched| touched.location.clone()));
        for touched in &view.records.written[self.written..] {
            let deleted_since = view.records.deleted[self.deleted..]
                .iter()
                .any(|deleted| deleted.location == touched.location && deleted.at >= touched.at);
            if !deleted_since {
                self.gone.remove(&touched.location);
            }
        }
        (self.written, self.deleted) = (view.records.written.len(), view.records.deleted.len());
    }

    /// Follows the table's snapshots, and fails where one comes that references a location that is gone.
    async fn follow(&mut self, view: View<'_>, table: &Table) -> Result<(), Violation> {
        let metadata = table.metadata();
        let there: BTreeSet<i64> = metadata.snapshots().map(|snapshot| snapshot.snapshot_id()).collect();
        let expired: Vec<i64> = self.snapshots.keys().filter(|id| !there.contains(*id)).copied().collect();
        for id in expired {
            let Some(contents) = self.snapshots.remove(&id) else { continue };
            for location in locations(&contents) {
                if let Some(count) = self.references.get_mut(location) {
                    *count -= 1;
                    if *count == 0 {
                        self.references.remove(location);
                    }
                }
            }
        }
        for id in there {
            if self.snapshots.contains_key(&id) {
                continue;
            }
            let Some(snapshot) = metadata.snapshot_by_id(id) else { continue };
            let contents = self.lake.contents(view, table, snapshot).await?;
            for location in locations(&contents) {
                if self.gone.contains(location) {
                    let what = format!(
                        "snapshot {id} came, and {location} was deleted before{}",
                        who(view, location)
                    );
                    return Err(Violation::new(NAME, what));
                }
                *self.references.entry(location.to_owned()).or_default() += 1;
            }
            self.snapshots.insert(id, contents);
        }
        Ok(())
    }
}

#[async_trait]
impl Checker for C5 {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation> {
        self.take(view);
        match (step, view.table, view.records.deleted.last()) {
            (Step::Commit, Some(table), _) => self.follow(view, table).await,
            (Step::Delete, _, Some(deleted)) if self.references.contains_key(&deleted.location) => {
                let snapshot = self
                    .snapshots
                    .iter()
                    .find(|(_, contents)| locations(contents).any(|location| location == deleted.location));
                let snapshot = snapshot.map_or(0, |(id, _)| *id);
                let (by, location) = (&deleted.by.name, &deleted.location);
                let what = format!("{by} deleted {location}, which snapshot {snapshot} references");
                Err(Violation::new(NAME, what))
            }
            _ => Ok(()),
        }
    }

    /// Looks at the store itself: all that is referenced is there.
    async fn at_end(&mut self, view: View<'_>) -> Result<(), Violation> {
        let mut locations: Vec<&String> = self.references.keys().collect();
        locations.sort();
        for location in locations {
            if !view.stores.exists(location).await.unwrap_or(false) {
                return Err(Violation::new(NAME, format!("{location} is referenced and is not there")));
            }
        }
        Ok(())
    }
}

/// What a snapshot references: its list, its manifests, its live files.
pub(super) fn locations(contents: &SnapshotContents) -> impl Iterator<Item = &str> {
    let list = std::iter::once(contents.snapshot.manifest_list());
    let manifests = contents.manifests.iter().map(|manifest| manifest.listed.manifest_path.as_str());
    // Vectors share a file: it counts once for each, and is let go of once for each.
    list.chain(manifests).chain(contents.live().map(|entry| entry.file_path()))
}

fn who(view: View<'_>, location: &str) -> String {
    let deleted = view.records.deleted.iter().rev().find(|deleted| deleted.location == location);
    deleted.map_or_else(String::new, |deleted| {
        format!(" by {} at {:.3} s", deleted.by.name, deleted.at.as_secs_f64())
    })
}
