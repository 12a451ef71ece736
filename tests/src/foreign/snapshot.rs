//! A snapshot from files added and removed.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Context, Result, bail};
use iceberg::TableUpdate;
use iceberg::spec::{
    DataContentType, DataFile, DataFileFormat, FormatVersion, ManifestContentType, ManifestFile,
    ManifestListWriter, ManifestWriter, ManifestWriterBuilder, Operation, Snapshot, SnapshotReference,
    SnapshotRetention, Summary, UNASSIGNED_SEQUENCE_NUMBER,
};
use iceberg::table::Table;

use super::engine::Engine;
use super::entries::{Entry, FileKey, entries, manifests};

/// A file to be added.
#[derive(Debug, Clone)]
pub struct Added {
    /// The file.
    pub file: DataFile,
    /// Its spec.
    pub spec_id: i32,
    /// Its data sequence number; `None` for that of the commit.
    pub sequence_number: Option<i64>,
}

/// Files that a snapshot adds and removes.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The snapshot's operation.
    pub operation: Operation,
    /// What comes.
    pub added: Vec<Added>,
    /// What goes. Each must be live.
    pub removed: HashSet<FileKey>,
}

/// What a deed changes: a snapshot, or other metadata.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// The snapshot.
    pub draft: Option<Draft>,
    /// Other updates.
    pub updates: Vec<TableUpdate>,
}

impl Draft {
    /// A snapshot that only adds.
    #[must_use]
    pub fn adding(operation: Operation, added: Vec<Added>) -> Self {
        Self { operation, added, removed: HashSet::new() }
    }
}

impl From<Draft> for Change {
    fn from(draft: Draft) -> Self {
        Self { draft: Some(draft), updates: Vec::new() }
    }
}

/// A request to the catalog.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) updates: Vec<TableUpdate>,
    pub(super) snapshot_id: Option<i64>,
}

/// One snapshot on its way: where it writes to, and what it counts.
struct Making<'a> {
    base: &'a Table,
    snapshot_id: i64,
    sequence_number: i64,
    prefix: String,
    manifests: usize,
}

impl Engine {
    /// Writes the snapshot of a change on a base.
    pub(super) async fn request(&mut self, base: &Table, change: Change) -> Result<Request> {
        let Some(draft) = change.draft else {
            return Ok(Request { updates: change.updates, snapshot_id: None });
        };
        let metadata = base.metadata();
        let mut making = Making {
            base,
            snapshot_id: self.snapshot_id(),
            sequence_number: metadata.next_sequence_number(),
            prefix: format!("{}/metadata/foreign-{}", metadata.location(), self.uuid()),
            manifests: 0,
        };
        let (mut list, removed) = making.survivors(&draft.removed).await?;
        list.extend(making.added(&draft.added).await?);
        let location = format!("{}-list.avro", making.prefix);
        let added_rows = making.write_list(&location, list).await?;
        let parent = metadata.current_snapshot();
        let builder = Snapshot::builder()
            .with_snapshot_id(making.snapshot_id)
            .with_parent_snapshot_id(parent.map(|parent| parent.snapshot_id()))
            .with_sequence_number(making.sequence_number)
            .with_timestamp_ms((self.clock)().max(metadata.last_updated_ms() + 1))
            .with_manifest_list(location)
            .with_summary(summary(draft.operation, parent.map(AsRef::as_ref), &draft.added, &removed))
            .with_schema_id(metadata.current_schema_id());
        let snapshot = match added_rows {
            Some(rows) => builder.with_row_range(metadata.next_row_id(), rows).build(),
            None => builder.build(),
        };
        let retention = SnapshotRetention::branch(None, None, None);
        let mut updates = vec![TableUpdate::AddSnapshot { snapshot }];
        updates.extend(change.updates);
        updates.push(TableUpdate::SetSnapshotRef {
            ref_name: "main".to_owned(),
            reference: SnapshotReference::new(making.snapshot_id, retention),
        });
        Ok(Request { updates, snapshot_id: Some(making.snapshot_id) })
    }
}

impl Making<'_> {
    fn writer(&mut self, spec_id: i32, content: ManifestContentType) -> Result<ManifestWriter> {
        let metadata = self.base.metadata();
        let spec = metadata.partition_spec_by_id(spec_id).context("a spec of the table")?;
        let current = metadata.current_schema();
        let schema = match spec.partition_type(current) {
            Ok(_) => current.clone(),
            Err(_) => metadata
                .schemas_iter()
                .find(|schema| spec.partition_type(schema).is_ok())
                .context("a schema with the partition's source")?
                .clone(),
        };
        let location = format!("{}-m{}.avro", self.prefix, self.manifests);
        self.manifests += 1;
        let output = self.base.file_io().new_output(location)?;
        let builder =
            ManifestWriterBuilder::new(output, Some(self.snapshot_id), schema, spec.as_ref().clone());
        Ok(match (metadata.format_version(), content) {
            (FormatVersion::V1, _) => bail!("this engine writes no format version 1"),
            (FormatVersion::V2, ManifestContentType::Data) => builder.build_v2_data(),
            (FormatVersion::V2, ManifestContentType::Deletes) => builder.build_v2_deletes(),
            (FormatVersion::V3, ManifestContentType::Data) => builder.build_v3_data(),
            (FormatVersion::V3, ManifestContentType::Deletes) => builder.build_v3_deletes(),
        })
    }

    /// The base's manifests, those with a removed file written anew; and the removed entries.
    async fn survivors(&mut self, removed: &HashSet<FileKey>) -> Result<(Vec<ManifestFile>, Vec<Entry>)> {
        let Some(head) = self.base.metadata().current_snapshot() else { return Ok((Vec::new(), Vec::new())) };
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        for manifest in manifests(self.base, head).await? {
            if manifest.added_files_count == Some(0) && manifest.existing_files_count == Some(0) {
                continue;
            }
            if removed.is_empty() {
                kept.push(manifest);
                continue;
            }
            let live: Vec<Entry> = entries(self.base.file_io(), &manifest).await?;
            let live: Vec<Entry> = live.into_iter().filter(Entry::is_live).collect();
            if live.is_empty() {
                continue;
            }
            if !live.iter().any(|entry| removed.contains(&entry.key())) {
                kept.push(manifest);
                continue;
            }
            let mut writer = self.writer(manifest.partition_spec_id, manifest.content)?;
            for entry in live {
                let (number, file_number) = (entry.sequence_number, Some(entry.file_sequence_number));
                if removed.contains(&entry.key()) {
                    writer.add_delete_file(entry.file.clone(), number, file_number)?;
                    gone.push(entry);
                } else {
                    writer.add_existing_file(entry.file, entry.snapshot_id, number, file_number)?;
                }
            }
            kept.push(writer.write_manifest_file().await?);
        }
        if gone.len() != removed.len() {
            bail!("{} of {} files to be removed are live", gone.len(), removed.len());
        }
        Ok((kept, gone))
    }

    async fn added(&mut self, added: &[Added]) -> Result<Vec<ManifestFile>> {
        let mut kinds: BTreeMap<(i32, bool), Vec<&Added>> = BTreeMap::new();
        for file in added {
            let deletes = file.file.content_type() != DataContentType::Data;
            kinds.entry((file.spec_id, deletes)).or_default().push(file);
        }
        let mut written = Vec::new();
        for ((spec_id, deletes), files) in kinds {
            let content = if deletes { ManifestContentType::Deletes } else { ManifestContentType::Data };
            let mut writer = self.writer(spec_id, content)?;
            for file in files {
                let number = file.sequence_number.unwrap_or(UNASSIGNED_SEQUENCE_NUMBER);
                writer.add_file(file.file.clone(), number)?;
            }
            written.push(writer.write_manifest_file().await?);
        }
        Ok(written)
    }

    /// Writes the list; the rows that it gave ids to, where the format has them.
    async fn write_list(&self, location: &str, list: Vec<ManifestFile>) -> Result<Option<u64>> {
        let metadata = self.base.metadata();
        let file = self.base.file_io().new_output(location)?.writer().await?;
        let (id, number) = (self.snapshot_id, self.sequence_number);
        let parent = metadata.current_snapshot_id();
        let mut writer = match metadata.format_version() {
            FormatVersion::V1 => bail!("this engine writes no format version 1"),
            FormatVersion::V2 => ManifestListWriter::v2(file, id, parent, number),
            FormatVersion::V3 => {
                ManifestListWriter::v3(file, id, parent, number, Some(metadata.next_row_id()))
            }
        };
        writer.add_manifests(list.into_iter())?;
        let added = writer.next_row_id().map(|next| next - metadata.next_row_id());
        writer.close().await?;
        Ok(added)
    }
}

/// How a summary counts a file: the names after `added-` or `removed-` and `total-`, with amounts.
fn counts(file: &DataFile) -> Vec<(&'static str, u64)> {
    let (rows, bytes) = (file.record_count(), file.file_size_in_bytes());
    match file.content_type() {
        DataContentType::Data => vec![("data-files", 1), ("records", rows), ("files-size", bytes)],
        DataContentType::EqualityDeletes => vec![
            ("delete-files", 1),
            ("equality-delete-files", 1),
            ("equality-deletes", rows),
            ("files-size", bytes),
        ],
        DataContentType::PositionDeletes => {
            let kind =
                if file.file_format() == DataFileFormat::Puffin { "dvs" } else { "position-delete-files" };
            // Vectors share a file: each counts its own bytes.
            let bytes =
                file.content_size_in_bytes().and_then(|size| u64::try_from(size).ok()).unwrap_or(bytes);
            vec![("delete-files", 1), (kind, 1), ("position-deletes", rows), ("files-size", bytes)]
        }
    }
}

fn summary(operation: Operation, parent: Option<&Snapshot>, added: &[Added], removed: &[Entry]) -> Summary {
    let mut entries: HashMap<String, String> = HashMap::new();
    let (mut plus, mut minus): (BTreeMap<&str, u64>, BTreeMap<&str, u64>) = Default::default();
    added
        .iter()
        .flat_map(|file| counts(&file.file))
        .for_each(|(name, n)| *plus.entry(name).or_default() += n);
    removed.iter().flat_map(|e| counts(&e.file)).for_each(|(name, n)| *minus.entry(name).or_default() += n);
    for (name, count) in &plus {
        entries.insert(format!("added-{name}"), count.to_string());
    }
    for (name, count) in &minus {
        let verb = if matches!(*name, "data-files" | "records") { "deleted" } else { "removed" };
        entries.insert(format!("{verb}-{name}"), count.to_string());
    }
    let totals =
        ["data-files", "records", "files-size", "delete-files", "position-deletes", "equality-deletes"];
    for name in totals {
        let key = format!("total-{name}");
        let before = match parent {
            None => Some(0),
            Some(parent) => {
                parent.summary().additional_properties.get(&key).and_then(|n| n.parse::<u64>().ok())
            }
        };
        let of = |counted: &BTreeMap<&str, u64>| counted.get(name).copied().unwrap_or(0);
        if let Some(after) = before.and_then(|before| (before + of(&plus)).checked_sub(of(&minus))) {
            entries.insert(key, after.to_string());
        }
    }
    entries.insert("engine-name".to_owned(), "foreign".to_owned());
    Summary { operation, additional_properties: entries }
}
