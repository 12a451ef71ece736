//! Reading manifest lists and manifests.

use std::sync::Arc;

use bytes::Bytes;
use iceberg::io::FileIO;
use iceberg::spec::{
    DataFile, DataFileBuilder, FormatVersion, ManifestContentType, ManifestEntry, ManifestEntryRef,
    ManifestFile, ManifestStatus,
};
use iceberg::table::Table;

use super::{Entry, ManifestContents, avro, memo};
use crate::{Error, ErrorKind, Result, threads};

/// Above this size a manifest is parsed on a thread for blocking work.
const PARSE_INLINE_BYTES: usize = 128 * 1024;

/// The manifests of a snapshot of `table`, in the list's order: data and delete manifests.
pub async fn read_list(table: &Table, snapshot_id: i64) -> Result<Vec<ManifestFile>> {
    let metadata = table.metadata();
    let snapshot = metadata.snapshot_by_id(snapshot_id).ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            format!(
                "snapshot `{snapshot_id}` is not in the table's metadata: it was expired or never existed"
            ),
        )
    })?;
    read_list_at(table.file_io(), snapshot.manifest_list(), metadata.format_version()).await
}

/// The manifests that the manifest list at `location` names. `version` is the table's format version.
pub async fn read_list_at(
    file_io: &FileIO,
    location: &str,
    version: FormatVersion,
) -> Result<Vec<ManifestFile>> {
    let bytes = read_bytes(file_io, location).await?;
    let name = location.to_owned();
    parse(bytes, move |bytes| {
        avro::read_list(bytes, version)
            .map_err(|e| e.context(format_args!("manifest list `{name}` cannot be read")))
    })
    .await
}

/// Reads a manifest with the schema and the spec of its own header.
pub async fn read_manifest(file_io: &FileIO, manifest: &ManifestFile) -> Result<ManifestContents> {
    if manifest.key_metadata.as_ref().is_some_and(|key| !key.is_empty()) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "manifest `{}` is encrypted: firn does not read encrypted tables",
                manifest.manifest_path
            ),
        ));
    }
    let bytes = read_bytes(file_io, &manifest.manifest_path).await?;
    let manifest = manifest.clone();
    parse(bytes, move |bytes| contents(bytes, &manifest)).await
}

/// The entries of a manifest, tombstones included.
pub async fn read_entries(file_io: &FileIO, manifest: &ManifestFile) -> Result<Vec<Entry>> {
    Ok(read_manifest(file_io, manifest).await?.entries)
}

async fn read_bytes(file_io: &FileIO, location: &str) -> Result<Bytes> {
    let unreadable = |e| Error::from(e).context(format_args!("`{location}` cannot be read"));
    file_io.new_input(location).map_err(unreadable)?.read().await.map_err(unreadable)
}

/// Runs the parser here for small files, and on a thread for blocking work for large ones.
async fn parse<T: Send + 'static>(
    bytes: Bytes,
    parser: impl FnOnce(&[u8]) -> Result<T> + Send + 'static,
) -> Result<T> {
    if bytes.len() <= PARSE_INLINE_BYTES {
        return parser(&bytes);
    }
    threads::off_runtime(move || parser(&bytes)).await.map_err(|e| {
        Error::new(ErrorKind::Internal, "the thread that parses a manifest ended early").with_source(e)
    })?
}

fn contents(bytes: &[u8], manifest: &ManifestFile) -> Result<ManifestContents> {
    let path = &manifest.manifest_path;
    let parsed = memo::read_manifest(bytes)
        .map_err(|e| e.context(format_args!("manifest `{path}` cannot be read")))?;
    let (entries, header) = parsed.into_parts();
    let mut row_ids = RowIds::of(manifest);
    let entries = entries
        .into_iter()
        .map(|entry| explicit(owned(entry), manifest, &mut row_ids))
        .collect::<Result<Vec<_>>>()?;
    Ok(ManifestContents {
        schema: header.schema,
        spec: Arc::new(header.partition_spec),
        content: header.content,
        entries,
    })
}

fn owned(entry: ManifestEntryRef) -> ManifestEntry {
    Arc::try_unwrap(entry).unwrap_or_else(|shared| shared.as_ref().clone())
}

fn explicit(entry: ManifestEntry, manifest: &ManifestFile, row_ids: &mut RowIds) -> Result<Entry> {
    let inherits = entry.status == ManifestStatus::Added || manifest.sequence_number == 0;
    let inherited = inherits.then_some(manifest.sequence_number);
    let sequence_number = entry.sequence_number.or(inherited);
    let file_sequence_number = entry.file_sequence_number.or(inherited);
    let (Some(sequence_number), Some(file_sequence_number)) = (sequence_number, file_sequence_number) else {
        return Err(Error::new(
            ErrorKind::Data,
            format!(
                "manifest `{}` has no sequence number for the {} file `{}`: the manifest is not valid",
                manifest.manifest_path,
                if entry.is_alive() { "existing" } else { "deleted" },
                entry.file_path()
            ),
        ));
    };
    let live = entry.is_alive();
    Ok(Entry {
        status: entry.status,
        snapshot_id: entry.snapshot_id.unwrap_or(manifest.added_snapshot_id),
        sequence_number,
        file_sequence_number,
        file: Arc::new(row_ids.assign(entry.data_file, live)?),
    })
}

/// Hands out first row ids over the entries of one manifest.
#[derive(Debug)]
struct RowIds {
    /// The spec of the manifest's files, which a `DataFile` holds but does not tell.
    spec_id: i32,
    /// The next id; `None` where the manifest has none, and then its entries have none either.
    next: Option<i64>,
}

impl RowIds {
    fn of(manifest: &ManifestFile) -> Self {
        let first = match manifest.content {
            ManifestContentType::Data => manifest.first_row_id,
            ManifestContentType::Deletes => None,
        };
        Self { spec_id: manifest.partition_spec_id, next: first.and_then(|id| i64::try_from(id).ok()) }
    }

    fn assign(&mut self, file: DataFile, live: bool) -> Result<DataFile> {
        match (self.next, file.first_row_id()) {
            (None, None) | (Some(_), Some(_)) => Ok(file),
            (None, Some(_)) => with_first_row_id(&file, self.spec_id, None),
            (Some(_), None) if !live => Ok(file),
            (Some(next), None) => {
                self.next = i64::try_from(file.record_count()).ok().and_then(|rows| next.checked_add(rows));
                with_first_row_id(&file, self.spec_id, Some(next))
            }
        }
    }
}

/// A `DataFile` has no setters: builds it again with another first row id.
fn with_first_row_id(file: &DataFile, spec_id: i32, first_row_id: Option<i64>) -> Result<DataFile> {
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
    builder.build().map_err(|e| {
        Error::new(ErrorKind::Internal, format!("data file `{}` cannot be rebuilt", file.file_path()))
            .with_source(e)
    })
}
