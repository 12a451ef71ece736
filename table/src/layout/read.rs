//! Reading of the live files from manifests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::{ManifestContentType, ManifestFile, Struct};
use iceberg::table::Table;

use super::LiveFile;
use crate::files::partition_path;
use crate::manifest::{has_live_files, read_list, read_manifest};
use crate::threads::in_task;
use crate::{Error, ErrorKind, Result};

/// Manifests that are read at a time.
const CONCURRENT_MANIFESTS: usize = 16;

/// The manifests of a snapshot, of data and of deletes, in the list's order.
pub async fn manifests(table: &Table, snapshot_id: i64) -> Result<Vec<ManifestFile>> {
    read_list(table, snapshot_id).await
}

/// All live data files of a snapshot, manifests read concurrently, in manifest order. A file of no rows or no
/// bytes is a file like any other. `Unsupported` where the snapshot has delete files, and `Data` where a path
/// is live twice.
pub async fn live_files(table: &Table, snapshot_id: i64) -> Result<Vec<LiveFile>> {
    let list = manifests(table, snapshot_id).await?;
    let parts: Vec<Vec<LiveFile>> = stream::iter(list.into_iter().filter(has_live_files))
        .map(|manifest| read_one(table.clone(), manifest))
        .buffered(CONCURRENT_MANIFESTS)
        .try_collect()
        .await?;
    let files: Vec<LiveFile> = parts.into_iter().flatten().collect();
    refuse_twice_live(&files)?;
    Ok(files)
}

/// Reads a manifest in a task of its own, so that several are parsed at a time.
async fn read_one(table: Table, manifest: ManifestFile) -> Result<Vec<LiveFile>> {
    in_task(async move { files_of(&table, &manifest).await }).await.map_err(|cause| {
        Error::new(ErrorKind::Internal, "the task that reads a manifest ended early").with_source(cause)
    })?
}

async fn files_of(table: &Table, manifest: &ManifestFile) -> Result<Vec<LiveFile>> {
    let contents = read_manifest(table.file_io(), manifest).await?;
    let mut live = contents.entries.into_iter().filter(|entry| entry.is_live());
    if manifest.content == ManifestContentType::Deletes {
        return match live.next() {
            None => Ok(Vec::new()),
            Some(entry) => Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the table has delete files, such as `{}`: firn does not yet read \
                     tables with row-level deletes",
                    entry.file.file_path()
                ),
            )),
        };
    }
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
