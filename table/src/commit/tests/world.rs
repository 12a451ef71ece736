//! A table, its store and catalog, and what must hold of them after every test.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, FormatVersion, Literal, ManifestFile, NestedField,
    PrimitiveType, Schema, Struct, TableMetadata, TableMetadataBuilder, Transform, Type,
    UnboundPartitionSpec,
};
use iceberg::{TableCreation, TableIdent};
use uuid::Uuid;

use super::catalog::ScriptedCatalog;
use super::store::{Meter, Metered};
use crate::commit::{CommitLimits, Committed, Flush, FlushOutcome, Guarantee, SourceIdentity, TableHandle};
use crate::files::NewFile;
use crate::layout::{DeleteKey, LiveFile};
use crate::ledger::{CommitId, Ledger, OffsetRange, TopicPartition, WriterName};
use crate::manifest::{Entry, read_entries, read_list_at};
use crate::storage::Stores;

pub(super) const LOCATION: &str = "memory:///table";

pub(super) struct World {
    pub(super) stores: Stores,
    pub(super) meter: Arc<Meter>,
    pub(super) catalog: Arc<ScriptedCatalog>,
    pub(super) ident: TableIdent,
}

/// The usual table: two columns, partitioned by the second one's identity.
pub(super) fn creation() -> TableCreation {
    let long = || Type::Primitive(PrimitiveType::Long);
    let schema = Schema::builder()
        .with_fields([
            NestedField::required(1, "id", long()).into(),
            NestedField::optional(2, "part", long()).into(),
        ])
        .build()
        .unwrap();
    let spec =
        UnboundPartitionSpec::builder().add_partition_field(2, "part", Transform::Identity).unwrap().build();
    TableCreation::builder()
        .name("t".to_owned())
        .location(LOCATION.to_owned())
        .schema(schema)
        .partition_spec(spec)
        .format_version(FormatVersion::V2)
        .build()
}

pub(super) fn metadata_of(creation: TableCreation) -> TableMetadata {
    TableMetadataBuilder::from_table_creation(creation).unwrap().build().unwrap().metadata
}

pub(super) fn fast() -> CommitLimits {
    CommitLimits {
        max_conflicts: 1000,
        min_wait: Duration::ZERO,
        max_wait: Duration::ZERO,
        request_timeout: Duration::from_secs(20),
        deadline: Some(Duration::from_secs(60)),
    }
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(creation())
    }

    pub(super) fn with(creation: TableCreation) -> Self {
        let meter = Arc::new(Meter::default());
        let metered = meter.clone();
        let stores = Stores::new(HashMap::new())
            .with_wrapper(Arc::new(move |inner| Arc::new(Metered { inner, meter: metered.clone() })));
        let ident = TableIdent::from_strs(["n", "t"]).unwrap();
        let catalog = ScriptedCatalog::new(stores.clone(), ident.clone(), metadata_of(creation));
        Self { stores, meter, catalog, ident }
    }

    pub(super) async fn open(&self) -> TableHandle {
        self.open_on("main").await
    }

    pub(super) async fn open_on(&self, branch: &str) -> TableHandle {
        let catalog = self.catalog.clone();
        let opened = TableHandle::open(catalog, self.stores.clone(), self.ident.clone(), branch).await;
        opened.unwrap().with_limits(fast())
    }

    /// A data file of the current spec that is in the store.
    pub(super) async fn file(&self, name: &str, rows: u64) -> NewFile {
        let path = format!("{LOCATION}/data/{name}.parquet");
        self.stores.write(&path, Bytes::from_static(b"rows")).await.unwrap();
        let spec_id = self.catalog.metadata().default_partition_spec_id();
        NewFile { file: data_file(&path, rows, Struct::from_iter([Some(Literal::long(1))])), spec_id }
    }

    /// A flush of partition 0 of the topic, with one file.
    pub(super) async fn flush(&self, id: CommitId, start: i64, next: i64) -> Flush {
        self.flush_of(id, &[(0, start, next)]).await
    }

    pub(super) async fn flush_of(&self, id: CommitId, ranges: &[(i32, i64, i64)]) -> Flush {
        let ranges: Vec<OffsetRange> =
            ranges.iter().map(|(p, start, next)| range(*p, *start, *next)).collect();
        let rows = ranges.iter().map(|range| range.rows).sum();
        let files = if rows == 0 { Vec::new() } else { vec![self.file(&id.to_string(), rows).await] };
        Flush {
            commit_id: id,
            writer: writer(),
            ranges,
            files,
            source: SourceIdentity::default(),
            guarantee: Guarantee::ExactlyOnce,
        }
    }

    pub(super) fn ledger(&self) -> Option<Ledger> {
        Ledger::read(self.catalog.metadata().properties(), "main", &writer()).unwrap()
    }

    pub(super) fn cursor(&self, partition: i32) -> Option<i64> {
        Some(self.ledger()?.cursors.get(&topic_partition(partition))?.next)
    }

    pub(super) async fn list_of(&self, snapshot_id: i64) -> Vec<ManifestFile> {
        let metadata = self.catalog.metadata();
        let snapshot = metadata.snapshot_by_id(snapshot_id).unwrap();
        read_list_at(&self.stores.file_io(), snapshot.manifest_list(), metadata.format_version())
            .await
            .unwrap()
    }

    pub(super) async fn entries_of(&self, snapshot_id: i64) -> Vec<(ManifestFile, Entry)> {
        let mut all = Vec::new();
        for manifest in self.list_of(snapshot_id).await {
            for entry in read_entries(&self.stores.file_io(), &manifest).await.unwrap() {
                all.push((manifest.clone(), entry));
            }
        }
        all
    }

    pub(super) fn head(&self) -> i64 {
        self.catalog.metadata().current_snapshot_id().unwrap()
    }

    /// The live files of the head as a plan sees them.
    pub(super) async fn live(&self) -> Vec<LiveFile> {
        let entries = self.entries_of(self.head()).await;
        let is_data = |entry: &Entry| entry.file.content_type() == DataContentType::Data;
        let live = entries.into_iter().filter(|(_, entry)| entry.is_live() && is_data(entry));
        live.map(|(manifest, entry)| LiveFile {
            file: entry.file,
            spec_id: manifest.partition_spec_id,
            partition_path: "part=1".to_owned(),
            sequence_number: entry.sequence_number,
            file_sequence_number: entry.file_sequence_number,
            snapshot_id: entry.snapshot_id,
            added_at_ms: None,
            manifest_path: manifest.manifest_path.into(),
        })
        .collect()
    }

    /// Rows in the head, by its entries.
    pub(super) async fn rows(&self) -> u64 {
        self.live().await.iter().map(|live| live.file.record_count()).sum()
    }

    /// All objects in the store.
    pub(super) async fn objects(&self) -> BTreeSet<String> {
        let (store, _) = self.stores.resolve(LOCATION).unwrap();
        let all: Vec<_> = store.list(None).try_collect().await.unwrap();
        all.into_iter().map(|meta| format!("memory:///{}", meta.location)).collect()
    }

    /// What the snapshots of the table name. Every one of these must exist, no file is live twice, and totals agree.
    pub(super) async fn check(&self) -> BTreeSet<String> {
        let metadata = self.catalog.metadata();
        let objects = self.objects().await;
        let mut named = BTreeSet::new();
        for snapshot in metadata.snapshots() {
            named.insert(snapshot.manifest_list().to_owned());
            let mut live = HashSet::new();
            let mut rows = 0;
            assert!(objects.contains(snapshot.manifest_list()), "list of {} is gone", snapshot.snapshot_id());
            for (manifest, entry) in self.entries_of(snapshot.snapshot_id()).await {
                named.insert(manifest.manifest_path);
                if entry.is_live() {
                    let is_data = entry.file.content_type() == DataContentType::Data;
                    rows += if is_data { entry.file.record_count() } else { 0 };
                    named.insert(entry.file.file_path().to_owned());
                    assert!(
                        live.insert(DeleteKey::of(&entry.file)),
                        "{} is live twice",
                        entry.file.file_path()
                    );
                }
            }
            let total = snapshot.summary().additional_properties.get("total-records").cloned();
            assert!(total.is_none() || total == Some(rows.to_string()), "{total:?} is not {rows}");
        }
        let gone: Vec<_> = named.difference(&objects).collect();
        assert!(gone.is_empty(), "named and gone: {gone:?}");
        named
    }

    /// Objects that no snapshot names.
    pub(super) async fn leftovers(&self) -> Vec<String> {
        let named = self.check().await;
        self.objects().await.difference(&named).cloned().collect()
    }
}

pub(super) fn data_file(path: &str, rows: u64, partition: Struct) -> iceberg::spec::DataFile {
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(path.to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition(partition)
        .record_count(rows)
        .file_size_in_bytes(100 * rows)
        .build()
        .unwrap()
}

pub(super) fn writer() -> WriterName {
    WriterName::new("w").unwrap()
}

pub(super) fn topic_partition(partition: i32) -> TopicPartition {
    TopicPartition { topic: "events".to_owned(), partition }
}

pub(super) fn range(partition: i32, start: i64, next: i64) -> OffsetRange {
    let rows = u64::try_from(next - start).unwrap();
    OffsetRange { partition: topic_partition(partition), start, next, rows, rejected: 0, holes: 0 }
}

/// Commit ids of one process.
pub(super) struct Ids {
    instance: Uuid,
    counter: u64,
}

impl Ids {
    pub(super) fn new() -> Self {
        Self { instance: Uuid::now_v7(), counter: 0 }
    }

    pub(super) fn of(seed: u64) -> Self {
        Self { instance: Uuid::from_u64_pair(seed, !seed), counter: 0 }
    }

    pub(super) fn next(&mut self) -> CommitId {
        self.counter += 1;
        CommitId { instance: self.instance, counter: self.counter }
    }
}

pub(super) fn committed(outcome: FlushOutcome) -> Committed {
    match outcome {
        FlushOutcome::Committed(committed) => *committed,
        FlushOutcome::Overtaken { cursors, .. } => panic!("overtaken: {cursors:?}"),
    }
}

pub(super) fn overtaken(outcome: FlushOutcome) -> BTreeMap<TopicPartition, i64> {
    match outcome {
        FlushOutcome::Overtaken { cursors, .. } => cursors.into_iter().map(|(p, c)| (p, c.next)).collect(),
        FlushOutcome::Committed(committed) => panic!("committed as {}", committed.snapshot_id),
    }
}
