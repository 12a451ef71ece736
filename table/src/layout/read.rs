//! Reading of the live files from manifests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::{ManifestContentType, ManifestFile, Struct};
use iceberg::table::Table;

use super::{LiveDelete, LiveFile};
use crate::files::partition_path;
use crate::manifest::{ManifestContents, has_live_files, read_list, read_manifest};
use crate::threads::in_task;
use crate::{Error, ErrorKind, Result};

/// Manifests that are read at a time.
const CONCURRENT_MANIFESTS: usize = 16;

/// The manifests of a snapshot, of data and of deletes, in the list's order.
pub async fn manifests(table: &Table, snapshot_id: i64) -> Result<Vec<ManifestFile>> {
    read_list(table, snapshot_id).await
}

/// What is live in a snapshot.
#[derive(Debug, Default)]
pub struct Live {
    /// The data files, in manifest order.
    pub files: Vec<LiveFile>,
    /// The delete files and deletion vectors, in manifest order.
    pub deletes: Vec<LiveDelete>,
}

/// All live files of a snapshot, manifests read concurrently. A file of no rows or no bytes is a file like any
/// other. `Data` where the path of a data file is live twice.
pub async fn live(table: &Table, snapshot_id: i64) -> Result<Live> {
    let list = manifests(table, snapshot_id).await?;
    let parts: Vec<Live> = stream::iter(list.into_iter().filter(has_live_files))
        .map(|manifest| read_one(table.clone(), manifest))
        .buffered(CONCURRENT_MANIFESTS)
        .try_collect()
        .await?;
    let mut live = Live::default();
    for part in parts {
        live.files.extend(part.files);
        live.deletes.extend(part.deletes);
    }
    refuse_twice_live(&live.files)?;
    Ok(live)
}

/// The live data files of a snapshot whose rows are all there: as [`live`], and `Unsupported` where the snapshot has
/// delete files.
pub async fn live_files(table: &Table, snapshot_id: i64) -> Result<Vec<LiveFile>> {
    let live = live(table, snapshot_id).await?;
    match live.deletes.first() {
        None => Ok(live.files),
        Some(delete) => Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "the table has delete files, such as `{}`: firn does not yet read \
                 tables with row-level deletes",
                delete.file.file_path()
            ),
        )),
    }
}

/// Reads a manifest in a task of its own, so that several are parsed at a time.
async fn read_one(table: Table, manifest: ManifestFile) -> Result<Live> {
    in_task(async move { live_of(&table, &manifest).await }).await.map_err(|cause| {
        Error::new(ErrorKind::Internal, "the task that reads a manifest ended early").with_source(cause)
    })?
}

async fn live_of(table: &Table, manifest: &ManifestFile) -> Result<Live> {
    let contents = read_manifest(table.file_io(), manifest).await?;
    Ok(match manifest.content {
        ManifestContentType::Data => {
            Live { files: files_of(table, manifest, contents)?, deletes: Vec::new() }
        }
        ManifestContentType::Deletes => Live { files: Vec::new(), deletes: deletes_of(manifest, contents) },
    })
}

/// The live deletes of a delete manifest.
pub(crate) fn deletes_of(manifest: &ManifestFile, contents: ManifestContents) -> Vec<LiveDelete> {
    let manifest_path: Arc<str> = manifest.manifest_path.as_str().into();
    let live = contents.entries.into_iter().filter(|entry| entry.is_live());
    live.map(|entry| LiveDelete {
        file: entry.file,
        spec_id: manifest.partition_spec_id,
        sequence_number: entry.sequence_number,
        manifest_path: Arc::clone(&manifest_path),
    })
    .collect()
}

fn files_of(table: &Table, manifest: &ManifestFile, contents: ManifestContents) -> Result<Vec<LiveFile>> {
    let live = contents.entries.into_iter().filter(|entry| entry.is_live());
    let manifest_path: Arc<str> = manifest.manifest_path.as_str().into();
    let mut paths: HashMap<Struct, String> = HashMap::new();
    live.map(|entry| {
        let partition = entry.file.partition();
        let partition_path = match paths.get(partition) {
            Some(path) => path.clone(),
            None => {
                let path = partition_path(&contents.spec, &contents.schema, partition)?;
                paths.insert(partition.clone(), path.clone());
                path
            }
        };
        Ok(LiveFile {
            spec_id: manifest.partition_spec_id,
            partition_path,
            sequence_number: entry.sequence_number,
            file_sequence_number: entry.file_sequence_number,
            snapshot_id: entry.snapshot_id,
            added_at_ms: table.metadata().snapshot_by_id(entry.snapshot_id).map(|added| added.timestamp_ms()),
            manifest_path: Arc::clone(&manifest_path),
            file: entry.file,
        })
    })
    .collect()
}

fn refuse_twice_live(files: &[LiveFile]) -> Result<()> {
    let mut seen = HashSet::with_capacity(files.len());
    match files.iter().find(|live| !seen.insert(live.file.file_path())) {
        None => Ok(()),
        Some(twice) => Err(Error::new(
            ErrorKind::Data,
            format!(
                "data file `{}` is live twice in the snapshot, so its rows count twice: \
                 repair the table first",
                twice.file.file_path()
            ),
        )),
    }
}
