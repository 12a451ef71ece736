//! The metadata tree of a table: snapshots, manifest lists, manifests, entries, as they are on storage.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use iceberg::io::FileIO;
use iceberg::spec::{Manifest, ManifestEntry, ManifestFile, ManifestList, SnapshotRef};
use iceberg::table::Table;

use crate::parsed;

/// Every snapshot of a table with its manifests.
#[derive(Debug, Clone)]
pub struct Contents {
    /// In order of sequence numbers.
    pub snapshots: Vec<SnapshotContents>,
}

/// A snapshot with its manifests.
#[derive(Debug, Clone)]
pub struct SnapshotContents {
    /// The snapshot.
    pub snapshot: SnapshotRef,
    /// The manifests of its list.
    pub manifests: Vec<LoadedManifest>,
}

/// A manifest: what the list says about it, and what it holds.
#[derive(Debug, Clone)]
pub struct LoadedManifest {
    /// The list's entry.
    pub listed: ManifestFile,
    /// The file, without anything inherited.
    pub manifest: Arc<Manifest>,
}

impl Contents {
    /// Reads all manifest lists and, once each, all manifests.
    pub async fn load(table: &Table) -> Result<Self> {
        let mut snapshots: Vec<SnapshotRef> = table.metadata().snapshots().cloned().collect();
        snapshots.sort_by_key(|snapshot| snapshot.sequence_number());
        let mut manifests: HashMap<String, Arc<Manifest>> = HashMap::new();
        let mut loaded = Vec::with_capacity(snapshots.len());
        for snapshot in snapshots {
            loaded.push(SnapshotContents::load(table, &snapshot, &mut manifests).await?);
        }
        Ok(Self { snapshots: loaded })
    }
}

impl SnapshotContents {
    /// Reads the manifest list of a snapshot, and those of its manifests that are not among `manifests` yet.
    pub async fn load(
        table: &Table,
        snapshot: &SnapshotRef,
        manifests: &mut HashMap<String, Arc<Manifest>>,
    ) -> Result<Self> {
        let bytes = read(table.file_io(), snapshot.manifest_list()).await?;
        let list = ManifestList::parse_with_version(&bytes, table.metadata().format_version())?;
        let mut of_snapshot = Vec::new();
        let entries: Vec<ManifestFile> = list.consume_entries().into_iter().collect();
        for listed in entries {
            let path = listed.manifest_path.clone();
            if !manifests.contains_key(&path) {
                let bytes = read(table.file_io(), &path).await?;
                let manifest = parsed::manifest(&bytes).with_context(|| path.clone())?;
                manifests.insert(path.clone(), manifest);
            }
            of_snapshot.push(LoadedManifest { listed, manifest: Arc::clone(&manifests[&path]) });
        }
        Ok(Self { snapshot: snapshot.clone(), manifests: of_snapshot })
    }

    /// The live files of the snapshot.
    pub fn live(&self) -> impl Iterator<Item = &ManifestEntry> {
        self.manifests.iter().flat_map(LoadedManifest::live)
    }
}

impl LoadedManifest {
    /// The entries that are not tombstones.
    pub fn live(&self) -> impl Iterator<Item = &ManifestEntry> {
        self.manifest.entries().iter().map(AsRef::as_ref).filter(|entry: &&ManifestEntry| entry.is_alive())
    }
}

async fn read(file_io: &FileIO, location: &str) -> Result<bytes::Bytes> {
    let input = file_io.new_input(location)?;
    input.read().await.with_context(|| format!("reading {location}"))
}
