//! Manifests and manifest lists: the one module that reads and writes them.
//!
//! Reading ([`read_list`], [`read_manifest`], [`read_entries`]) makes everything explicit that an entry inherits:
//! snapshot id, both sequence numbers, and for format version 3 the first row id. A manifest is always read with
//! the schema and the partition spec of its own header, because the table's current schema may lack a dropped
//! partition source, and a promoted one changes the partition's type.
//!
//! Writing is for format versions 2 and 3: a manifest of added files per partition spec, a *filtered* manifest in place of
//! one that lost files, a *merged* manifest in place of many small ones, and the manifest list of a snapshot.
//! Whatever is written goes under a name that was never used before.
//!
//! In format version 3, entries that are carried on have their first row id explicitly, added ones inherit it from
//! their manifest, and manifests that have none get it from the list.
//!
//! Specification: "Manifests", "Manifest lists", "Sequence number inheritance", "First row ID inheritance".

mod avro;
mod memo;
mod merge;
mod names;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use iceberg::spec::{DataFile, ManifestContentType, ManifestFile, ManifestStatus, PartitionSpec, SchemaRef};

pub(crate) use merge::{MergePolicy, plan_merge};
pub(crate) use names::{MetadataNames, check_spec, is_avro_name, schema_of_spec};
pub use read::{read_entries, read_list, read_list_at, read_manifest};
pub(crate) use write::{ListTarget, Output, write_added, write_filtered, write_list, write_merged};

/// An entry of a manifest, with everything that it inherits made explicit.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Whether the file was added or removed by the manifest's snapshot, or was there before.
    pub status: ManifestStatus,
    /// The snapshot that added the file, or that removed it where the status says so.
    pub snapshot_id: i64,
    /// The data sequence number.
    pub sequence_number: i64,
    /// The file sequence number.
    pub file_sequence_number: i64,
    /// The file, with its partition spec id and, in format version 3, its first row id.
    pub file: Arc<DataFile>,
}

impl Entry {
    /// Whether the file is part of the snapshot (and not a tombstone).
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.status != ManifestStatus::Deleted
    }
}

/// A manifest: what its header says, and its entries.
#[derive(Debug, Clone)]
pub struct ManifestContents {
    /// The table's schema when the manifest was written.
    pub schema: SchemaRef,
    /// The partition spec of all its files.
    pub spec: Arc<PartitionSpec>,
    /// Whether it holds data files or delete files.
    pub content: ManifestContentType,
    /// The entries in their order, tombstones included.
    pub entries: Vec<Entry>,
}

/// What tells manifests apart for whoever keeps what was found in them: the path, and the first row id, which a
/// manifest from before format version 3 gets from the list of a later snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ManifestKey {
    path: String,
    first_row_id: Option<u64>,
}

impl ManifestKey {
    /// The key of a list's entry.
    pub(crate) fn of(manifest: &ManifestFile) -> Self {
        Self { path: manifest.manifest_path.clone(), first_row_id: manifest.first_row_id }
    }
}

/// Whether a manifest may hold live files. Absent counts (format version 1) mean that it may.
#[must_use]
pub fn has_live_files(manifest: &ManifestFile) -> bool {
    manifest.added_files_count != Some(0) || manifest.existing_files_count != Some(0)
}
