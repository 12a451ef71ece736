//! The two layouts of the same rows: as the writer made them, and as they are now.

use std::collections::BTreeMap;

use firn_table::layout::{LiveFile, live_files};
use iceberg::spec::{Operation, TableMetadata};
use iceberg::table::Table;

use crate::exit::Failure;
use crate::render::histogram::Sizes;

/// Data files and their sizes.
#[derive(Debug)]
pub(crate) struct Files {
    /// Locations as the table has them.
    pub paths: Vec<String>,
    /// Their sizes.
    pub sizes: Sizes,
    /// Rows by the manifests.
    pub rows: u64,
}

/// Both layouts.
#[derive(Debug)]
pub(crate) struct Layouts {
    /// Every file that an append snapshot added.
    pub before: Files,
    /// The files of the current snapshot.
    pub after: Files,
}

impl Layouts {
    /// Reads both from a table whose whole history is still there.
    ///
    /// A file that was appended is either live in the head, or was live in the parent of the `replace` snapshot that
    /// removed it. So the union over those few snapshots holds every appended file, without reading the manifests of
    /// every append.
    pub(crate) async fn of(table: &Table) -> anyhow::Result<Self> {
        let metadata = table.metadata();
        let Some(head) = metadata.current_snapshot_id() else {
            return Ok(Self { before: Files::of(&[]), after: Files::of(&[]) });
        };
        let now = live_files(table, head).await?;
        let mut appended: BTreeMap<String, LiveFile> = BTreeMap::new();
        for snapshot in before_replacements(metadata).into_iter().chain([head]) {
            let files = if snapshot == head { now.clone() } else { live_files(table, snapshot).await? };
            for file in files {
                if was_appended(metadata, file.snapshot_id)? {
                    appended.insert(file.file.file_path().to_owned(), file);
                }
            }
        }
        let appended: Vec<LiveFile> = appended.into_values().collect();
        Ok(Self { before: Files::of(&appended), after: Files::of(&now) })
    }
}

impl Files {
    fn of(files: &[LiveFile]) -> Self {
        Self {
            paths: files.iter().map(|file| file.file.file_path().to_owned()).collect(),
            sizes: Sizes::of(files.iter().map(|file| file.file.file_size_in_bytes())),
            rows: files.iter().map(|file| file.file.record_count()).sum(),
        }
    }
}

/// The parents of all snapshots that replaced files.
fn before_replacements(metadata: &TableMetadata) -> Vec<i64> {
    metadata
        .snapshots()
        .filter(|snapshot| snapshot.summary().operation == Operation::Replace)
        .filter_map(|snapshot| snapshot.parent_snapshot_id())
        .collect()
}

fn was_appended(metadata: &TableMetadata, snapshot_id: i64) -> Result<bool, Failure> {
    let snapshot = metadata.snapshot_by_id(snapshot_id).ok_or_else(|| {
        Failure::internal(format!(
            "snapshot {snapshot_id} was expired, so the writer's files cannot be counted"
        ))
    })?;
    Ok(snapshot.summary().operation == Operation::Append)
}
