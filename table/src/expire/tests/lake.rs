//! A table without a catalog, whose snapshots are made by a small producer of the tests' own: it appends, removes,
//! rewrites and merges at will, on any branch. Everything it writes is remembered.

use std::collections::{BTreeSet, HashMap, HashSet};

use bytes::Bytes;
use futures::TryStreamExt;
use iceberg::TableUpdate;
use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, FormatVersion, ManifestFile, NestedField,
    Operation, PrimitiveType, Schema, Snapshot, SnapshotReference, SnapshotRetention, SortOrder,
    StatisticsFile, Struct, Summary, TableMetadata, TableMetadataBuilder, Type, UnboundPartitionSpec,
};
use object_store::ObjectStore;

use crate::expire::reach::{Removal, Unreachable, unreachable};
use crate::expire::{Expiry, refs};
use crate::files::NewFile;
use crate::manifest::{
    ListTarget, MetadataNames, Output, read_entries, read_list_at, read_manifest, write_added,
    write_filtered, write_list, write_merged,
};
use crate::storage::Stores;

const LOCATION: &str = "memory://w/t";

/// The time between two snapshots.
pub(super) const STEP_MS: i64 = 500;
/// The metadata builder stamps changes that add no snapshot with the clock, and takes no snapshot that is a minute older:
/// histories begin this long ago.
const STARTED_MS_AGO: i64 = 40_000;

pub(super) struct Lake {
    pub(super) metadata: TableMetadata,
    pub(super) stores: Stores,
    io: FileIO,
    files: usize,
    start_ms: i64,
}

/// What a snapshot does.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) add: usize,
    pub(super) remove: Vec<String>,
    /// Manifests to merge into one, by their place in the parent's list.
    pub(super) merge: HashSet<usize>,
}

impl Lake {
    pub(super) fn new(properties: &[(&str, &str)]) -> Self {
        let column = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into();
        let schema = Schema::builder().with_fields([column]).build().unwrap();
        let properties =
            properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let metadata = TableMetadataBuilder::new(
            schema,
            UnboundPartitionSpec::builder().build(),
            SortOrder::unsorted_order(),
            LOCATION.to_owned(),
            FormatVersion::V2,
            properties,
        )
        .unwrap()
        .build()
        .unwrap()
        .metadata;
        let stores = Stores::new(HashMap::new());
        let start_ms = chrono::Utc::now().timestamp_millis() - STARTED_MS_AGO;
        Self { metadata, io: stores.file_io(), stores, files: 0, start_ms }
    }

    pub(super) fn head(&self, branch: &str) -> Option<i64> {
        self.metadata.snapshot_for_ref(branch).map(|snapshot| snapshot.snapshot_id())
    }

    /// When the snapshot of that number was, or will be, committed.
    pub(super) fn time_ms(&self, sequence_number: i64) -> i64 {
        self.start_ms + sequence_number * STEP_MS
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.time_ms(self.metadata.last_sequence_number())
    }

    async fn list(&self, snapshot_id: i64) -> Vec<ManifestFile> {
        let snapshot = self.metadata.snapshot_by_id(snapshot_id).unwrap();
        read_list_at(&self.io, snapshot.manifest_list(), FormatVersion::V2).await.unwrap()
    }

    pub(super) async fn live(&self, snapshot_id: i64) -> Vec<String> {
        let mut live = Vec::new();
        for manifest in self.list(snapshot_id).await {
            let entries = read_entries(&self.io, &manifest).await.unwrap();
            let entries = entries.iter().filter(|entry| entry.is_live());
            live.extend(entries.map(|entry| entry.file.file_path().to_owned()));
        }
        live
    }

    /// Commits a snapshot on a branch, as a child of its head, and returns its id: its sequence number.
    pub(super) async fn commit(&mut self, branch: &str, change: Change) -> i64 {
        let parent_id = self.head(branch);
        let sequence_number = self.metadata.last_sequence_number() + 1;
        let names = MetadataNames::of_table(&self.metadata, uuid::Uuid::now_v7());
        let version = self.metadata.format_version();
        let output = Output { file_io: &self.io, names: &names, snapshot_id: sequence_number, version };
        let parent = match parent_id {
            Some(id) => self.list(id).await,
            None => Vec::new(),
        };
        let mut files = Vec::new();
        for _ in 0..change.add {
            self.files += 1;
            files.push(NewFile { file: data_file(self.files), spec_id: 0 });
        }
        for file in &files {
            self.stores.write(file.file.file_path(), Bytes::from_static(b"rows")).await.unwrap();
        }
        let mut manifests = Vec::new();
        if !files.is_empty() {
            manifests.extend(write_added(output, &self.metadata, &files, None, 1 << 20).await.unwrap());
        }
        let removed: HashSet<&str> = change.remove.iter().map(String::as_str).collect();
        let mut merged = Vec::new();
        for (place, manifest) in parent.into_iter().enumerate() {
            let contents = read_manifest(&self.io, &manifest).await.unwrap();
            let mut live = contents.entries.iter().filter(|entry| entry.is_live()).peekable();
            if live.peek().is_none() {
                continue;
            }
            if live.any(|entry| removed.contains(entry.file.file_path())) {
                let gone = |file: &DataFile| removed.contains(file.file_path());
                manifests.push(write_filtered(output, &contents, gone).await.unwrap());
            } else if change.merge.contains(&place) {
                merged.push((manifest, contents));
            } else {
                manifests.push(manifest);
            }
        }
        if merged.len() > 1 {
            let sources: Vec<_> = merged.into_iter().map(|(_, contents)| contents).collect();
            manifests.push(write_merged(output, &sources).await.unwrap());
        } else {
            manifests.extend(merged.into_iter().map(|(manifest, _)| manifest));
        }
        let location = names.list(sequence_number);
        let target = ListTarget {
            location: location.clone(),
            snapshot_id: sequence_number,
            parent_id,
            sequence_number,
            first_row_id: None,
        };
        write_list(&self.io, &target, manifests).await.unwrap();
        self.add_snapshot(branch, parent_id, location);
        sequence_number
    }

    fn add_snapshot(&mut self, branch: &str, parent_id: Option<i64>, manifest_list: String) {
        let sequence_number = self.metadata.last_sequence_number() + 1;
        let snapshot = Snapshot::builder()
            .with_snapshot_id(sequence_number)
            .with_parent_snapshot_id(parent_id)
            .with_sequence_number(sequence_number)
            .with_timestamp_ms(self.time_ms(sequence_number))
            .with_manifest_list(manifest_list)
            .with_summary(Summary { operation: Operation::Append, additional_properties: HashMap::new() })
            .with_schema_id(0)
            .build();
        let builder = self.metadata.clone().into_builder(None);
        self.metadata = builder.set_branch_snapshot(snapshot, branch).unwrap().build().unwrap().metadata;
    }

    pub(super) fn update(&mut self, updates: impl IntoIterator<Item = TableUpdate>) {
        let mut builder = self.metadata.clone().into_builder(None);
        for update in updates {
            builder = update.apply(builder).unwrap();
        }
        self.metadata = builder.build().unwrap().metadata;
    }

    pub(super) fn set_ref(&mut self, name: &str, snapshot_id: i64, retention: SnapshotRetention) {
        let reference = SnapshotReference::new(snapshot_id, retention);
        self.update([TableUpdate::SetSnapshotRef { ref_name: name.to_owned(), reference }]);
    }

    pub(super) async fn set_statistics(&mut self, snapshot_id: i64) -> String {
        let statistics_path = format!("{LOCATION}/metadata/{snapshot_id}.stats");
        self.stores.write(&statistics_path, Bytes::from_static(b"puffin")).await.unwrap();
        let statistics = StatisticsFile {
            snapshot_id,
            statistics_path: statistics_path.clone(),
            file_size_in_bytes: 6,
            file_footer_size_in_bytes: 1,
            key_metadata: None,
            blob_metadata: Vec::new(),
        };
        self.update([TableUpdate::SetStatistics { statistics }]);
        statistics_path
    }

    /// Commits an expiry and deletes what it makes unreachable.
    pub(super) async fn expire(&mut self, expiry: &Expiry) -> Unreachable {
        let before = self.metadata.clone();
        self.update(expiry.updates());
        let removal = Removal { before: &before, after: &self.metadata, heads: &expiry.heads };
        let gone = unreachable(&self.io, removal).await.unwrap();
        let all = [&gone.data_files, &gone.manifests, &gone.manifest_lists, &gone.statistics_files];
        let all: Vec<String> = all.into_iter().flatten().cloned().collect();
        let distinct: HashSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "a file is deleted once");
        assert!(self.stores.delete_all(all).await.is_empty());
        gone
    }

    /// All that the snapshots in the metadata reach.
    pub(super) async fn reached(&self) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        for snapshot in self.metadata.snapshots() {
            reached.insert(snapshot.manifest_list().to_owned());
            for manifest in self.list(snapshot.snapshot_id()).await {
                reached.insert(manifest.manifest_path.clone());
            }
            reached.extend(self.live(snapshot.snapshot_id()).await);
        }
        reached.extend(self.metadata.statistics_iter().map(|file| file.statistics_path.clone()));
        reached
    }

    pub(super) async fn stored(&self) -> BTreeSet<String> {
        let (store, prefix) = self.stores.resolve(LOCATION).unwrap();
        store
            .list(Some(&prefix))
            .map_ok(|meta| format!("memory://w/{}", meta.location))
            .try_collect()
            .await
            .unwrap()
    }

    pub(super) fn refs(&self) -> Vec<String> {
        refs(&self.metadata).unwrap().into_keys().collect()
    }
}

fn data_file(number: usize) -> DataFile {
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(format!("{LOCATION}/data/{number}.parquet"))
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::empty())
        .partition_spec_id(0)
        .record_count(1)
        .file_size_in_bytes(4)
        .build()
        .unwrap()
}
