//! Files on storage against files that the table's metadata names.

use std::collections::HashSet;

use anyhow::{Context, Result};
use firn_table::storage::Stores;
use futures::TryStreamExt;
use iceberg::table::Table;
use object_store::path::Path;

use super::Contents;

/// Files that a live snapshot or the table needs and that are not there.
pub async fn missing(table: &Table, contents: &Contents, stores: &Stores) -> Result<Vec<String>> {
    let there = listed(table, stores).await?;
    let mut missing = Vec::new();
    for location in needed(table, contents) {
        if !there.contains(&stores.resolve(&location)?.1) && !stores.exists(&location).await? {
            missing.push(format!("{location} is needed and is not there"));
        }
    }
    Ok(missing)
}

/// Files at the table's location that no live snapshot needs and that are no former metadata of the table.
pub async fn unreferenced(table: &Table, contents: &Contents, stores: &Stores) -> Result<Vec<String>> {
    let mut known = HashSet::new();
    let former = table.metadata().metadata_log().iter().map(|log| log.metadata_file.clone());
    for location in needed(table, contents).into_iter().chain(former) {
        known.insert(stores.resolve(&location)?.1);
    }
    let listed = listed(table, stores).await?.into_iter();
    let mut left: Vec<Path> = listed.filter(|path| !known.contains(&covered_by(path))).collect();
    left.sort();
    Ok(left.into_iter().map(|path| path.to_string()).collect())
}

/// The file that Hadoop's checksum file `.name.crc` belongs to; any other file itself.
fn covered_by(path: &Path) -> Path {
    let text = path.as_ref();
    let (folder, name) = text.rsplit_once('/').unwrap_or(("", text));
    match name.strip_prefix('.').and_then(|name| name.strip_suffix(".crc")) {
        Some(name) => Path::parse(format!("{folder}/{name}")).unwrap_or_else(|_| path.clone()),
        None => path.clone(),
    }
}

/// The current metadata, statistics, and of every snapshot its list, its manifests and its live files.
fn needed(table: &Table, contents: &Contents) -> HashSet<String> {
    let metadata = table.metadata();
    let mut needed: HashSet<String> = table.metadata_location().map(str::to_owned).into_iter().collect();
    needed.extend(metadata.statistics_iter().map(|statistics| statistics.statistics_path.clone()));
    needed.extend(metadata.partition_statistics_iter().map(|statistics| statistics.statistics_path.clone()));
    for snapshot in &contents.snapshots {
        needed.insert(snapshot.snapshot.manifest_list().to_owned());
        needed.extend(snapshot.manifests.iter().map(|manifest| manifest.listed.manifest_path.clone()));
        needed.extend(snapshot.live().map(|entry| entry.file_path().to_owned()));
    }
    needed
}

async fn listed(table: &Table, stores: &Stores) -> Result<HashSet<Path>> {
    let location = table.metadata().location();
    let (store, prefix) = stores.resolve(location)?;
    let objects: Vec<_> =
        store.list(Some(&prefix)).try_collect().await.with_context(|| location.to_owned())?;
    Ok(objects.into_iter().map(|object| object.location).collect())
}
