//! Writing manifests and manifest lists of format versions 2 and 3.

use std::collections::BTreeMap;

use iceberg::io::FileIO;
use iceberg::spec::{
    DataFile, FormatVersion, ManifestContentType, ManifestFile, ManifestListWriter, ManifestWriter,
    ManifestWriterBuilder, PartitionSpec, SchemaRef, TableMetadata, UNASSIGNED_SEQUENCE_NUMBER,
};
use iceberg::table::Table;

use super::{Entry, ManifestContents, MetadataNames, check_spec, schema_of_spec};
use crate::files::NewFile;
use crate::{Error, ErrorKind, Result, threads};

/// A manifest entry with few metrics takes about this much; each metric value about [`METRIC_BYTES`].
const ENTRY_BYTES: u64 = 200;
const METRIC_BYTES: u64 = 10;

/// Above this number of entries a manifest is encoded on a thread for blocking work.
const ENCODE_INLINE_ENTRIES: usize = 500;

/// Where the manifests of one commit go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output<'a> {
    /// The table's files.
    pub(crate) file_io: &'a FileIO,
    /// Names that were never used.
    pub(crate) names: &'a MetadataNames,
    /// The snapshot that the commit adds.
    pub(crate) snapshot_id: i64,
    /// The table's format version.
    pub(crate) version: FormatVersion,
}

impl<'a> Output<'a> {
    /// The manifests of a commit on top of `base`.
    pub(crate) fn on(base: &'a Table, names: &'a MetadataNames, snapshot_id: i64) -> Self {
        let version = base.metadata().format_version();
        Self { file_io: base.file_io(), names, snapshot_id, version }
    }

    fn writer(
        &self,
        schema: SchemaRef,
        spec: &PartitionSpec,
        content: ManifestContentType,
    ) -> Result<ManifestWriter> {
        let builder = self.builder(schema, spec)?;
        match (self.version, content) {
            (FormatVersion::V2, ManifestContentType::Data) => Ok(builder.build_v2_data()),
            (FormatVersion::V2, ManifestContentType::Deletes) => Ok(builder.build_v2_deletes()),
            (FormatVersion::V3, ManifestContentType::Data) => Ok(builder.build_v3_data()),
            (FormatVersion::V3, ManifestContentType::Deletes) => Ok(builder.build_v3_deletes()),
            (FormatVersion::V1, _) => Err(version_1()),
        }
    }

    fn builder(&self, schema: SchemaRef, spec: &PartitionSpec) -> Result<ManifestWriterBuilder> {
        check_spec(spec, &schema)?;
        let location = self.names.manifest();
        let output = self
            .file_io
            .new_output(&location)
            .map_err(|e| Error::from(e).context(format_args!("manifest `{location}` cannot be written")))?;
        Ok(ManifestWriterBuilder::new(output, Some(self.snapshot_id), schema, spec.clone()))
    }
}

/// Writes manifests of added files: one for each partition spec, and more where one would exceed `target_bytes`.
/// `sequence_number` is the data sequence number of the files; `None` inherits that of the commit.
pub(crate) async fn write_added(
    output: Output<'_>,
    metadata: &TableMetadata,
    files: &[NewFile],
    sequence_number: Option<i64>,
    target_bytes: u64,
) -> Result<Vec<ManifestFile>> {
    let mut by_spec: BTreeMap<i32, Vec<&DataFile>> = BTreeMap::new();
    for file in files {
        by_spec.entry(file.spec_id).or_default().push(&file.file);
    }
    let mut manifests = Vec::new();
    for (spec_id, files) in by_spec {
        let spec = metadata.partition_spec_by_id(spec_id).ok_or_else(|| unknown_spec(spec_id))?;
        let schema = schema_of_spec(metadata, spec)?;
        for chunk in chunks(&files, target_bytes) {
            let mut writer = output.writer(schema.clone(), spec, ManifestContentType::Data)?;
            for file in chunk {
                check_partition(spec, file)?;
                let number = sequence_number.unwrap_or(UNASSIGNED_SEQUENCE_NUMBER);
                writer.add_file((*file).clone(), number).map_err(unwritable)?;
            }
            manifests.push(finish(writer, chunk.len()).await?);
        }
    }
    Ok(manifests)
}

/// Writes the manifest that takes the place of one that lost files: survivors as existing with their snapshot and
/// sequence numbers, the removed ones as deleted by the new snapshot; tombstones that were there before are left out.
/// All of them keep the first row id that they have or inherit.
pub(crate) async fn write_filtered(
    output: Output<'_>,
    source: &ManifestContents,
    is_removed: impl Fn(&DataFile) -> bool,
) -> Result<ManifestFile> {
    let mut writer = output.writer(source.schema.clone(), &source.spec, source.content)?;
    for entry in source.entries.iter().filter(|entry| entry.is_live()) {
        let file = entry.file.as_ref().clone();
        let file_number = Some(entry.file_sequence_number);
        if is_removed(&file) {
            writer.add_delete_file(file, entry.sequence_number, file_number).map_err(unwritable)?;
        } else {
            add_existing(&mut writer, entry)?;
        }
    }
    finish(writer, source.entries.len()).await
}

/// Writes one manifest with the live entries of several that have equal schema, spec and content.
pub(crate) async fn write_merged(output: Output<'_>, sources: &[ManifestContents]) -> Result<ManifestFile> {
    let first = sources
        .first()
        .ok_or_else(|| Error::new(ErrorKind::Internal, "a merge of no manifests was asked for"))?;
    let mut writer = output.writer(first.schema.clone(), &first.spec, first.content)?;
    for entry in sources.iter().flat_map(|source| &source.entries).filter(|entry| entry.is_live()) {
        add_existing(&mut writer, entry)?;
    }
    finish(writer, sources.iter().map(|source| source.entries.len()).sum()).await
}

fn add_existing(writer: &mut ManifestWriter, entry: &Entry) -> Result<()> {
    let file = entry.file.as_ref().clone();
    let (sequence, file_sequence) = (entry.sequence_number, Some(entry.file_sequence_number));
    writer.add_existing_file(file, entry.snapshot_id, sequence, file_sequence).map_err(unwritable)
}

/// Which manifest list is written.
#[derive(Debug, Clone)]
pub(crate) struct ListTarget {
    /// Its location.
    pub(crate) location: String,
    /// The snapshot that it belongs to.
    pub(crate) snapshot_id: i64,
    /// That snapshot's parent.
    pub(crate) parent_id: Option<i64>,
    /// That snapshot's sequence number, which new manifests inherit.
    pub(crate) sequence_number: i64,
    /// The table's next row id, from which manifests that have none get theirs: in format version 3, and only there.
    pub(crate) first_row_id: Option<u64>,
}

/// A manifest list that was written.
#[derive(Debug)]
pub(crate) struct WrittenList {
    /// Its manifests as a reader will see them.
    pub(crate) manifests: Vec<ManifestFile>,
    /// The row ids that it gave out: in format version 3.
    pub(crate) added_rows: Option<u64>,
}

/// Writes a manifest list.
pub(crate) async fn write_list(
    file_io: &FileIO,
    target: &ListTarget,
    mut manifests: Vec<ManifestFile>,
) -> Result<WrittenList> {
    let unwritable = |e| unwritable(e).context(format_args!("manifest list `{}`", target.location));
    for manifest in &mut manifests {
        if manifest.sequence_number == UNASSIGNED_SEQUENCE_NUMBER {
            manifest.sequence_number = target.sequence_number;
        }
        if manifest.min_sequence_number == UNASSIGNED_SEQUENCE_NUMBER {
            manifest.min_sequence_number = target.sequence_number;
        }
    }
    let next_row_id = target.first_row_id.map(|first| assign_row_ids(&mut manifests, first)).transpose()?;
    let output = file_io.new_output(&target.location).map_err(unwritable)?;
    let file = output.writer().await.map_err(unwritable)?;
    let (id, parent, number) = (target.snapshot_id, target.parent_id, target.sequence_number);
    let mut writer = match target.first_row_id {
        None => ManifestListWriter::v2(file, id, parent, number),
        Some(first) => ManifestListWriter::v3(file, id, parent, number, Some(first)),
    };
    writer.add_manifests(manifests.iter().cloned()).map_err(unwritable)?;
    writer.close().await.map_err(unwritable)?;
    let added_rows = next_row_id.zip(target.first_row_id).map(|(next, first)| next - first);
    Ok(WrittenList { manifests, added_rows })
}

/// Gives row ids to the data manifests that have none: new ones, and those from before format version 3. Returns the
/// next row id after them (specification, "First row ID inheritance").
fn assign_row_ids(manifests: &mut [ManifestFile], first: u64) -> Result<u64> {
    let mut next = first;
    let unassigned = manifests
        .iter_mut()
        .filter(|manifest| manifest.content == ManifestContentType::Data && manifest.first_row_id.is_none());
    for manifest in unassigned {
        let (added, existing) = (manifest.added_rows_count, manifest.existing_rows_count);
        let rows = added.zip(existing).and_then(|(added, existing)| added.checked_add(existing));
        let after = rows.and_then(|rows| next.checked_add(rows)).ok_or_else(|| {
            Error::new(
                ErrorKind::Data,
                format!(
                    "manifest `{}` does not say how many rows it has, so they can get no row ids: rewrite the \
                     table's manifests first",
                    manifest.manifest_path
                ),
            )
        })?;
        manifest.first_row_id = Some(next);
        next = after;
    }
    Ok(next)
}

/// Encodes and writes: here for few entries, and on a thread for blocking work for many.
async fn finish(writer: ManifestWriter, entries: usize) -> Result<ManifestFile> {
    if entries <= ENCODE_INLINE_ENTRIES || threads::is_inline() {
        return writer.write_manifest_file().await.map_err(unwritable);
    }
    let runtime = tokio::runtime::Handle::current();
    let encode = move || runtime.block_on(writer.write_manifest_file());
    let written = tokio::task::spawn_blocking(encode).await.map_err(|e| {
        Error::new(ErrorKind::Internal, "the thread that encodes a manifest ended early").with_source(e)
    })?;
    written.map_err(unwritable)
}

/// What `iceberg` does not classify when it writes is a failure of the store, which may be gone the next time.
fn unwritable(error: iceberg::Error) -> Error {
    let error = Error::from(error);
    match error.kind() {
        ErrorKind::Internal => Error::new(ErrorKind::Unavailable, error.to_string()).with_source(error),
        _ => error,
    }
    .context("writing metadata")
}

fn version_1() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "manifests of format version 1 are not written: upgrade the table first",
    )
}

fn unknown_spec(spec_id: i32) -> Error {
    Error::new(
        ErrorKind::Data,
        format!("partition spec `{spec_id}` of a new file is not in the table: the file cannot be committed"),
    )
}

/// `ManifestWriter` panics on a tuple that does not fit its spec.
fn check_partition(spec: &PartitionSpec, file: &DataFile) -> Result<()> {
    let fields = file.partition().fields();
    let primitive = |value: &iceberg::spec::Literal| value.as_primitive_literal().is_some();
    if fields.len() == spec.fields().len() && fields.iter().flatten().all(primitive) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Internal,
        format!(
            "the partition tuple of `{}` has {} values and its spec {} has {} fields: the file cannot be committed",
            file.file_path(),
            fields.len(),
            spec.spec_id(),
            spec.fields().len()
        ),
    ))
}

/// Splits files so that each manifest stays near the target size.
fn chunks<'a, 'b>(files: &'b [&'a DataFile], target_bytes: u64) -> Vec<&'b [&'a DataFile]> {
    let mut chunks = Vec::new();
    let (mut start, mut bytes) = (0, 0_u64);
    for (index, file) in files.iter().enumerate() {
        let size = entry_bytes(file);
        if index > start && bytes.saturating_add(size) > target_bytes {
            chunks.push(&files[start..index]);
            (start, bytes) = (index, 0);
        }
        bytes = bytes.saturating_add(size);
    }
    chunks.push(&files[start..]);
    chunks
}

fn entry_bytes(file: &DataFile) -> u64 {
    let counts = file.column_sizes().len()
        + file.value_counts().len()
        + file.null_value_counts().len()
        + file.nan_value_counts().len()
        + 2 * file.lower_bounds().len()
        + 2 * file.upper_bounds().len();
    ENTRY_BYTES
        + u64::try_from(file.file_path().len() + counts * usize::try_from(METRIC_BYTES).unwrap_or(10))
            .unwrap_or(0)
}
