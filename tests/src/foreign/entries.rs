//! Entries of manifests with everything that they inherit made explicit, read with nothing of firn's.

use anyhow::{Context, Result};
use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, Manifest, ManifestContentType, ManifestFile, ManifestList,
    ManifestStatus, SnapshotRef,
};
use iceberg::table::Table;

use crate::parsed;

/// An entry of a manifest.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its status in the manifest.
    pub status: ManifestStatus,
    /// The snapshot that added or removed it.
    pub snapshot_id: i64,
    /// The data sequence number.
    pub sequence_number: i64,
    /// The file sequence number.
    pub file_sequence_number: i64,
    /// The spec of the file.
    pub spec_id: i32,
    /// The file, with its first row id.
    pub file: DataFile,
}

/// What tells files of a table apart: vectors share a Puffin file.
pub type FileKey = (String, Option<i64>);

impl Entry {
    /// Whether the file is part of the snapshot.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.status != ManifestStatus::Deleted
    }

    /// What it is called.
    #[must_use]
    pub fn key(&self) -> FileKey {
        (self.file.file_path().to_owned(), self.file.content_offset())
    }

    /// Whether it is a data file.
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.file.content_type() == DataContentType::Data
    }
}

/// The manifests of a snapshot.
pub(super) async fn manifests(table: &Table, snapshot: &SnapshotRef) -> Result<Vec<ManifestFile>> {
    let input = table.file_io().new_input(snapshot.manifest_list())?;
    let bytes = input.read().await.with_context(|| snapshot.manifest_list().to_owned())?;
    let list = ManifestList::parse_with_version(&bytes, table.metadata().format_version())?;
    Ok(list.consume_entries().into_iter().collect())
}

/// The entries of a manifest, tombstones included.
pub(super) async fn entries(file_io: &FileIO, manifest: &ManifestFile) -> Result<Vec<Entry>> {
    let path = &manifest.manifest_path;
    let bytes = file_io.new_input(path)?.read().await.with_context(|| path.clone())?;
    let loaded = parsed::manifest(&bytes).with_context(|| path.clone())?;
    entries_of(&loaded, manifest)
}

/// The entries of a manifest that was read, tombstones included, with what they inherit from its place in a list.
pub(crate) fn entries_of(loaded: &Manifest, manifest: &ManifestFile) -> Result<Vec<Entry>> {
    let mut next = match manifest.content {
        ManifestContentType::Data => manifest.first_row_id.map(i64::try_from).transpose()?,
        ManifestContentType::Deletes => None,
    };
    let mut entries = Vec::new();
    for entry in loaded.entries() {
        let missing = || format!("{} has no sequence number", entry.file_path());
        let file = entry.data_file();
        let inherited = (entry.status == ManifestStatus::Added).then_some(manifest.sequence_number);
        let first_row_id = match (next, file.first_row_id(), entry.is_alive()) {
            (None, _, _) => None,
            (Some(_), Some(id), _) => Some(id),
            (Some(_), None, false) => None,
            (Some(id), None, true) => {
                next = Some(id + i64::try_from(file.record_count())?);
                Some(id)
            }
        };
        entries.push(Entry {
            status: entry.status,
            snapshot_id: entry.snapshot_id.unwrap_or(manifest.added_snapshot_id),
            sequence_number: entry.sequence_number.or(inherited).with_context(missing)?,
            file_sequence_number: entry.file_sequence_number.or(inherited).with_context(missing)?,
            spec_id: manifest.partition_spec_id,
            file: rebuilt(file, manifest.partition_spec_id, first_row_id)?,
        });
    }
    Ok(entries)
}

/// The same file with a first row id.
fn rebuilt(file: &DataFile, spec_id: i32, first_row_id: Option<i64>) -> Result<DataFile> {
    let mut builder = DataFileBuilder::default();
    builder
        .content(file.content_type())
        .file_path(file.file_path().to_owned())
        .file_format(file.file_format())
        .partition(file.partition().clone())
        .record_count(file.record_count())
        .file_size_in_bytes(file.file_size_in_bytes())
        .column_sizes(file.column_sizes().clone())
        .value_counts(file.value_counts().clone())
        .null_value_counts(file.null_value_counts().clone())
        .nan_value_counts(file.nan_value_counts().clone())
        .lower_bounds(file.lower_bounds().clone())
        .upper_bounds(file.upper_bounds().clone())
        .key_metadata(file.key_metadata().map(<[u8]>::to_vec))
        .split_offsets(file.split_offsets().map(<[i64]>::to_vec))
        .equality_ids(file.equality_ids())
        .first_row_id(first_row_id)
        .partition_spec_id(spec_id)
        .referenced_data_file(file.referenced_data_file())
        .content_offset(file.content_offset())
        .content_size_in_bytes(file.content_size_in_bytes());
    if let Some(order) = file.sort_order_id() {
        builder.sort_order_id(order);
    }
    Ok(builder.build()?)
}
