//! The head goes back; snapshots expire.

use std::collections::HashSet;

use anyhow::Result;
use async_trait::async_trait;
use iceberg::TableUpdate;
use iceberg::spec::{SnapshotReference, SnapshotRetention};
use iceberg::table::Table;
use rand::seq::IndexedRandom;

use super::engine::{Deed, Engine, Outcome};
use super::entries::{entries, manifests};
use super::snapshot::Change;

/// Makes an ancestor of the head the head.
#[derive(Debug, Clone)]
pub enum RollBack {
    /// This snapshot.
    To(i64),
    /// The ancestor so many steps back, or the oldest that there is.
    Steps(usize),
}

#[async_trait]
impl Deed for RollBack {
    async fn decide(&self, _engine: &mut Engine, base: &Table) -> Result<Option<Change>> {
        let line = ancestry(base);
        let target = match self {
            Self::To(id) => Some(*id).filter(|id| line.contains(id)),
            Self::Steps(steps) => line.get(*steps).or(line.last()).copied(),
        };
        Ok(target.filter(|id| line.first() != Some(id)).map(head_at))
    }
}

/// Makes a snapshot the head that is not in its line, drawn by chance: history goes on where it was left by a roll
/// back.
#[derive(Debug, Clone)]
pub struct SwitchLine;

#[async_trait]
impl Deed for SwitchLine {
    async fn decide(&self, engine: &mut Engine, base: &Table) -> Result<Option<Change>> {
        let line = ancestry(base);
        let all = base.metadata().snapshots().map(|snapshot| snapshot.snapshot_id());
        let mut others: Vec<i64> = all.filter(|id| !line.contains(id)).collect();
        others.sort_unstable();
        Ok(others.choose(&mut engine.random).copied().map(head_at))
    }
}

fn head_at(snapshot_id: i64) -> Change {
    let retention = SnapshotRetention::branch(None, None, None);
    let reference = SnapshotReference::new(snapshot_id, retention);
    let update = TableUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference };
    Change { draft: None, updates: vec![update] }
}

/// Removes all snapshots but the newest of the head's line, and with [`Engine::expire`] the files that only they
/// reached. Other branches and tags lose theirs too: none are expected.
#[derive(Debug, Clone)]
pub struct Expire {
    /// Snapshots that stay.
    pub keep: usize,
}

#[async_trait]
impl Deed for Expire {
    async fn decide(&self, _engine: &mut Engine, base: &Table) -> Result<Option<Change>> {
        let line = ancestry(base);
        let kept: HashSet<i64> = line.into_iter().take(self.keep.max(1)).collect();
        let all = base.metadata().snapshots().map(|snapshot| snapshot.snapshot_id());
        let mut expired: Vec<i64> = all.filter(|id| !kept.contains(id)).collect();
        expired.sort_unstable();
        if expired.is_empty() || kept.is_empty() {
            return Ok(None);
        }
        let update = TableUpdate::RemoveSnapshots { snapshot_ids: expired };
        Ok(Some(Change { draft: None, updates: vec![update] }))
    }
}

impl Engine {
    /// Expires snapshots and deletes the files that no snapshot of the table names any more.
    pub async fn expire(&mut self, expire: &Expire) -> Result<Outcome> {
        let before = self.table().await?;
        let outcome = self.perform(expire).await?;
        let Outcome::Done(after) = &outcome else { return Ok(outcome) };
        let kept = named(after, |_| true).await?;
        let is_gone = |id: i64| after.metadata().snapshot_by_id(id).is_none();
        let mut gone: Vec<String> = named(&before, is_gone).await?.difference(&kept).cloned().collect();
        gone.sort();
        for path in gone {
            self.stores.delete(&path).await?;
        }
        Ok(outcome)
    }
}

/// What the chosen snapshots of a table name: lists, manifests, files.
async fn named(table: &Table, chosen: impl Fn(i64) -> bool) -> Result<HashSet<String>> {
    let mut named = HashSet::new();
    for snapshot in table.metadata().snapshots().filter(|snapshot| chosen(snapshot.snapshot_id())) {
        named.insert(snapshot.manifest_list().to_owned());
        for manifest in manifests(table, snapshot).await? {
            let read = entries(table.file_io(), &manifest).await?;
            let live = read.iter().filter(|entry| entry.is_live());
            named.extend(live.map(|entry| entry.file.file_path().to_owned()));
            named.insert(manifest.manifest_path);
        }
    }
    Ok(named)
}

/// The head and its ancestors, newest first, as far as they are in the metadata.
fn ancestry(table: &Table) -> Vec<i64> {
    let metadata = table.metadata();
    let mut line = Vec::new();
    let mut next = metadata.current_snapshot();
    while let Some(snapshot) = next {
        line.push(snapshot.snapshot_id());
        next = snapshot.parent_snapshot_id().and_then(|id| metadata.snapshot_by_id(id));
    }
    line
}
