//! A table whose data files are placeholders.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use firn_table::catalog::{CommitCatalog, NewTable, OpenCatalog, create_table, parse_table_ident};
use firn_table::commit::{Flush, FlushOutcome, Guarantee, Replace, ReplaceGroup, TableHandle};
use firn_table::files::NewFile;
use firn_table::layout::LiveFile;
use firn_table::ledger::{CommitId, OffsetRange, SourceIdentity, TopicPartition, WriterName};
use firn_table::manifest::{read_entries, read_list};
use firn_table::storage::{Location, Stores, join, normalize};
use firn_tests::warehouse::Warehouse;
use futures::TryStreamExt;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, NestedField, PrimitiveType, Schema, Struct,
    Type,
};
use object_store::ObjectStore;
use uuid::Uuid;

pub(crate) struct Fixture {
    pub(crate) open: OpenCatalog,
    pub(crate) handle: TableHandle,
    instance: Uuid,
    commits: u64,
    offset: i64,
}

impl Fixture {
    /// A table whose catalog is wrapped by `wrap` for the handle.
    pub(crate) async fn new(wrap: impl FnOnce(Arc<dyn CommitCatalog>) -> Arc<dyn CommitCatalog>) -> Self {
        let open = Warehouse::of_run("expiry").unwrap().create().await.unwrap();
        let column = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into();
        let schema = Schema::builder().with_fields([column]).build().unwrap();
        let ident = parse_table_ident("db.t").unwrap();
        create_table(open.catalog.as_ref(), NewTable::new(ident.clone(), schema)).await.unwrap();
        let catalog = wrap(open.catalog.clone());
        let handle = TableHandle::open(catalog, open.stores.clone(), ident, "main").await.unwrap();
        Self { open, handle, instance: Uuid::now_v7(), commits: 0, offset: 0 }
    }

    pub(crate) fn stores(&self) -> &Stores {
        &self.open.stores
    }

    fn commit_id(&mut self) -> CommitId {
        self.commits += 1;
        CommitId { instance: self.instance, counter: self.commits }
    }

    /// Writes a placeholder and returns it as a data file with one row.
    async fn file(&mut self) -> NewFile {
        self.commits += 1;
        let name = format!("data/{}.parquet", self.commits);
        let location = join(self.handle.table().metadata().location(), &name);
        self.stores().write(&location, Bytes::from_static(b"rows")).await.unwrap();
        NewFile { file: data_file(location), spec_id: 0 }
    }

    /// Appends a file; returns the snapshot and the file.
    pub(crate) async fn append(&mut self) -> (i64, String) {
        let file = self.file().await;
        let location = file.file.file_path().to_owned();
        let partition = TopicPartition { topic: "t".to_owned(), partition: 0 };
        let start = self.offset;
        let range = OffsetRange { partition, start, next: start + 1, rows: 1, rejected: 0, holes: 0 };
        let flush = Flush {
            commit_id: self.commit_id(),
            writer: WriterName::new("w").unwrap(),
            ranges: vec![range],
            files: vec![file],
            source: SourceIdentity::default(),
            guarantee: Guarantee::ExactlyOnce,
        };
        match self.handle.append(flush).await.unwrap() {
            FlushOutcome::Committed(committed) => {
                self.offset += 1;
                (committed.snapshot_id, location)
            }
            overtaken => panic!("{overtaken:?}"),
        }
    }

    /// Rewrites all live files one by one; returns the snapshot.
    pub(crate) async fn rewrite(&mut self) -> i64 {
        let mut groups = Vec::new();
        for (id, removed) in self.live_files().await.into_iter().enumerate() {
            let added = vec![self.file().await];
            groups.push(ReplaceGroup {
                id,
                removed: vec![removed],
                added,
                applied_deletes: Vec::new(),
                deleted_rows: 0,
            });
        }
        let planned_on = self.handle.table().metadata().current_snapshot_id().unwrap();
        let replace = Replace {
            commit_id: self.commit_id(),
            planned_on,
            groups,
            summary: std::collections::BTreeMap::new(),
        };
        self.handle.replace(replace).await.unwrap().committed.unwrap().snapshot_id
    }

    async fn live_files(&self) -> Vec<LiveFile> {
        let table = self.handle.table();
        let mut live = Vec::new();
        for manifest in read_list(&table, table.metadata().current_snapshot_id().unwrap()).await.unwrap() {
            for entry in read_entries(table.file_io(), &manifest).await.unwrap() {
                if entry.is_live() {
                    live.push(LiveFile {
                        file: entry.file,
                        spec_id: 0,
                        partition_path: String::new(),
                        sequence_number: entry.sequence_number,
                        file_sequence_number: entry.file_sequence_number,
                        snapshot_id: entry.snapshot_id,
                        added_at_ms: None,
                        manifest_path: manifest.manifest_path.as_str().into(),
                    });
                }
            }
        }
        live
    }

    pub(crate) async fn exists(&self, location: &str) -> bool {
        self.stores().exists(location).await.unwrap()
    }

    /// Fails where a live snapshot misses a file; returns the files that nothing reaches.
    pub(crate) async fn unreachable(&self) -> BTreeSet<String> {
        let table = self.open.catalog.load_table(self.handle.table().identifier()).await.unwrap();
        let metadata = table.metadata();
        let mut reached: BTreeSet<String> = metadata
            .metadata_log()
            .iter()
            .map(|entry| entry.metadata_file.clone())
            .chain(table.metadata_location().map(str::to_owned))
            .collect();
        for snapshot in metadata.snapshots() {
            reached.insert(snapshot.manifest_list().to_owned());
            for manifest in read_list(&table, snapshot.snapshot_id()).await.unwrap() {
                let entries = read_entries(table.file_io(), &manifest).await.unwrap();
                let live = entries.iter().filter(|entry| entry.is_live());
                reached.extend(live.map(|entry| entry.file.file_path().to_owned()));
                reached.insert(manifest.manifest_path);
            }
        }
        let reached: BTreeSet<String> = reached.iter().map(|location| normalize(location)).collect();
        let (store, prefix) = self.stores().resolve(metadata.location()).unwrap();
        let listed: Vec<_> = store.list(Some(&prefix)).try_collect().await.unwrap();
        let place = Location::parse(metadata.location()).unwrap();
        let root = format!("{}://{}", place.scheme(), place.authority());
        // Hadoop's checksums, which a REST server writes beside local files, are not ours.
        let files = listed.iter().map(|meta| &meta.location).filter(|path| path.extension() != Some("crc"));
        let stored: BTreeSet<String> = files.map(|path| format!("{root}/{path}")).collect();
        let missing: Vec<_> = reached.difference(&stored).collect();
        assert!(missing.is_empty(), "live snapshots miss {missing:?}");
        // Nor are metadata files of commits that a server refused.
        let ours = self.open.catalog.client_deletes_metadata();
        let left = stored.difference(&reached).filter(|path| ours || !path.ends_with(".metadata.json"));
        left.cloned().collect()
    }
}

fn data_file(location: String) -> DataFile {
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(location)
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::empty())
        .partition_spec_id(0)
        .record_count(1)
        .file_size_in_bytes(4)
        .build()
        .unwrap()
}
