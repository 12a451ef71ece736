//! Tables to compact: on a local disk, in a SQLite catalog, filled with rows from a seed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{RecordBatch, StringArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use firn_compactor::{CompactOptions, PlanOptions, RunReport, Silent, compact};
use firn_table::catalog::{
    CatalogOptions, CommitCatalog, CommitOutcome, IfMissing, NewTable, OpenCatalog, PartitionColumn,
    create_table, open_catalog,
};
use firn_table::commit::{Flush, FlushOutcome, Guarantee, SourceIdentity, TableHandle};
use firn_table::files::{
    DataFileReader, DataFileWriter, FileFormat, FileTarget, NewFile, PartitionRouter, data_file_location,
};
use firn_table::layout::{LiveFile, live_files};
use firn_table::ledger::{CommitId, OffsetRange, TopicPartition, WriterName};
use futures::StreamExt;
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, MAIN_BRANCH, NestedField, PrimitiveType, Schema,
    SnapshotReference, SnapshotRetention, Struct, Transform, Type,
};
use iceberg::table::Table;
use iceberg::{TableIdent, TableRequirement, TableUpdate};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::rows::random_batch;

/// A folder with a catalog and the files of its tables.
pub(crate) struct Lake {
    folder: TempDir,
    open: OpenCatalog,
}

/// A table of a lake.
pub(crate) struct TestTable {
    pub(crate) handle: TableHandle,
    folder: PathBuf,
}

impl Lake {
    pub(crate) async fn new() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let options = CatalogOptions {
            uri: format!("sqlite:{}", folder.path().join("catalog.db").display()),
            warehouse: Some(folder.path().join("warehouse").display().to_string()),
            if_missing: IfMissing::Create,
            ..CatalogOptions::default()
        };
        let open = open_catalog(&options, None).await.expect("a new catalog");
        Self { folder, open }
    }

    pub(crate) fn catalog(&self) -> Arc<dyn CommitCatalog> {
        self.open.catalog.clone()
    }

    /// Creates a table. `properties` are pairs of name and value.
    pub(crate) async fn create(
        &self,
        schema: Schema,
        partition: &[(&str, Transform)],
        properties: &[(&str, &str)],
    ) -> TestTable {
        let ident = TableIdent::from_strs(["test", "events"]).expect("a name");
        let mut new = NewTable::new(ident.clone(), schema);
        new.partition = partition
            .iter()
            .map(|&(source, transform)| PartitionColumn { source: source.to_owned(), transform, name: None })
            .collect();
        new.properties =
            properties.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        create_table(&*self.open.catalog, new).await.expect("a new table");
        self.open_through(self.catalog()).await
    }

    /// The table through another catalog, as another process sees it.
    pub(crate) async fn open_through(&self, catalog: Arc<dyn CommitCatalog>) -> TestTable {
        let ident = TableIdent::from_strs(["test", "events"]).expect("a name");
        let handle =
            TableHandle::open(catalog, self.open.stores.clone(), ident, "main").await.expect("the table");
        TestTable { handle, folder: self.folder.path().to_owned() }
    }
}

impl TestTable {
    pub(crate) async fn table(&self) -> Table {
        self.handle.refresh().await.expect("the table's head")
    }

    /// Appends rows in one commit, with one file for each partition of the current spec.
    pub(crate) async fn append(&self, rows: &RecordBatch) -> i64 {
        let files = self.write_files(rows).await;
        self.append_files(files).await
    }

    /// Appends random rows of the current schema.
    pub(crate) async fn append_random(&self, rows: usize, seed: u64) -> RecordBatch {
        let format = FileFormat::of_table(&self.table().await).expect("a format");
        let batch = random_batch(format.arrow_schema(), rows, seed);
        self.append(&batch).await;
        batch
    }

    /// Writes rows to one file for each partition of the current spec, without a commit.
    pub(crate) async fn write_files(&self, rows: &RecordBatch) -> Vec<NewFile> {
        let table = self.table().await;
        let format = FileFormat::of_table(&table).expect("a format");
        let spec = table.metadata().default_partition_spec().clone();
        let router = PartitionRouter::new(spec.clone(), format.schema().clone()).expect("a router");
        let mut files = Vec::new();
        for (partition, rows) in router.split(rows).expect("partitions") {
            let name = format!("small-{}.parquet", Uuid::now_v7());
            let location = data_file_location(&table, &spec, &partition, &name).expect("a location");
            let target = FileTarget { spec: spec.clone(), partition, location };
            let mut writer = DataFileWriter::new(&format, self.handle.stores(), target).expect("a writer");
            writer.write(&rows).await.expect("rows are written");
            files.extend(writer.close().await.expect("a file"));
        }
        files
    }

    /// Commits files under a writer name of their own.
    pub(crate) async fn append_files(&self, files: Vec<NewFile>) -> i64 {
        let rows = files.iter().map(|file| file.file.record_count()).sum::<u64>();
        let range = OffsetRange {
            partition: TopicPartition { topic: "events".to_owned(), partition: 0 },
            start: 0,
            next: i64::try_from(rows.max(1)).expect("few rows"),
            rows,
            rejected: 0,
            holes: rows.max(1) - rows,
        };
        let flush = Flush {
            commit_id: CommitId { instance: Uuid::now_v7(), counter: 1 },
            writer: WriterName::new(format!("w{}", Uuid::now_v7().simple())).expect("a name"),
            ranges: vec![range],
            files,
            source: SourceIdentity::default(),
            guarantee: Guarantee::ExactlyOnce,
        };
        match self.handle.append(flush).await.expect("an append") {
            FlushOutcome::Committed(committed) => committed.snapshot_id,
            FlushOutcome::Overtaken { .. } => panic!("a writer of its own cannot be overtaken"),
        }
    }

    /// The live files of the head.
    pub(crate) async fn live(&self) -> Vec<LiveFile> {
        let table = self.table().await;
        match table.metadata().current_snapshot() {
            Some(snapshot) => live_files(&table, snapshot.snapshot_id()).await.expect("the layout"),
            None => Vec::new(),
        }
    }

    /// Sizes of the live files, ascending.
    pub(crate) async fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> =
            self.live().await.iter().map(|file| file.file.file_size_in_bytes()).collect();
        sizes.sort_unstable();
        sizes
    }

    /// All rows of the head by the current schema, as sorted text.
    pub(crate) async fn rows(&self) -> Vec<String> {
        let table = self.table().await;
        let schema = table.metadata().current_schema().clone();
        let reader = DataFileReader::new(self.handle.stores(), &table, &schema).expect("a reader");
        let mut rows = Vec::new();
        for file in self.live().await {
            let mut batches = reader.read(&file.file, file.spec_id, 1000).await.expect("a readable file");
            while let Some(batch) = batches.next().await {
                rows.extend(text_rows(&batch.expect("a batch")));
            }
        }
        rows.sort_unstable();
        rows
    }

    /// Every data file on disk, live or not.
    pub(crate) fn data_files(&self) -> BTreeSet<PathBuf> {
        self.files().into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "parquet")).collect()
    }

    /// Every file on disk below the warehouse.
    pub(crate) fn files(&self) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::new();
        collect_files(&self.folder.join("warehouse"), &mut files);
        files
    }

    /// Compacts with options under Iceberg's names.
    pub(crate) async fn compact(&self, overrides: &[(&str, &str)]) -> RunReport {
        let options = CompactOptions { plan: plan_options(overrides), ..CompactOptions::default() };
        compact(&self.handle, &options, Arc::new(Silent), CancellationToken::new())
            .await
            .expect("a compaction")
    }

    /// Changes the table's metadata: schemas, specs, snapshots.
    pub(crate) async fn update(&self, updates: Vec<TableUpdate>) {
        let table = self.table().await;
        let requirements = vec![TableRequirement::UuidMatch { uuid: table.metadata().uuid() }];
        let outcome = self.handle.catalog().commit(&table, requirements, updates).await;
        assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
    }

    /// Makes an earlier snapshot the head of `main`.
    pub(crate) async fn roll_back_to(&self, snapshot_id: i64) {
        let reference = SnapshotReference::new(snapshot_id, SnapshotRetention::branch(None, None, None));
        self.update(vec![TableUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.to_owned(), reference }]).await;
    }

    /// Makes a schema the current one.
    pub(crate) async fn set_schema(&self, fields: Vec<NestedField>) {
        let fields = fields.into_iter().map(Arc::new);
        let schema = Schema::builder().with_fields(fields).build().expect("a schema");
        self.update(vec![TableUpdate::AddSchema { schema }, TableUpdate::SetCurrentSchema { schema_id: -1 }])
            .await;
    }
}

/// Plan options with options under Iceberg's names.
pub(crate) fn plan_options(overrides: &[(&str, &str)]) -> PlanOptions {
    let overrides = overrides.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    PlanOptions { overrides, ..PlanOptions::default() }
}

/// `id` long, `name` and `payload` string, `amount` double, `at` timestamptz, `n` int; ids from 1.
pub(crate) fn schema() -> Schema {
    let fields = [
        NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)),
        NestedField::optional(2, "name", Type::Primitive(PrimitiveType::String)),
        NestedField::optional(3, "payload", Type::Primitive(PrimitiveType::String)),
        NestedField::optional(4, "amount", Type::Primitive(PrimitiveType::Double)),
        NestedField::optional(5, "at", Type::Primitive(PrimitiveType::Timestamptz)),
        NestedField::optional(6, "n", Type::Primitive(PrimitiveType::Int)),
    ];
    Schema::builder().with_fields(fields.map(Arc::new)).build().expect("a schema")
}

fn text_rows(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("-");
    let columns: Vec<ArrayFormatter<'_>> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).expect("a printable column"))
        .collect();
    (0..batch.num_rows())
        .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|"))
        .collect()
}

fn collect_files(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect_files(&path, files);
        } else {
            files.insert(path);
        }
    }
}

/// Random rows of the table's schema with these names.
pub(crate) async fn with_names(table: &TestTable, seed: u64, names: &[Option<&str>]) -> RecordBatch {
    let format = FileFormat::of_table(&table.table().await).expect("a format");
    let batch = random_batch(format.arrow_schema(), names.len(), seed);
    let at = batch.schema().index_of("name").expect("the column");
    let mut columns = batch.columns().to_vec();
    columns[at] = Arc::new(StringArray::from(names.to_vec()));
    RecordBatch::try_new(batch.schema(), columns).expect("columns of the schema")
}

/// Files of an unpartitioned table without rows and without bytes.
pub(crate) async fn empty_files(table: &TestTable, count: usize) -> Vec<NewFile> {
    let location = table.table().await.metadata().location().to_owned();
    let empty = |_| {
        let path = format!("{location}/data/empty-{}.parquet", Uuid::now_v7());
        let on_disk = path.strip_prefix("file://").unwrap_or(&path);
        std::fs::create_dir_all(Path::new(on_disk).parent().expect("a folder")).expect("a folder");
        std::fs::write(on_disk, b"").expect("an empty file");
        let file = DataFileBuilder::default()
            .content(DataContentType::Data)
            .file_path(path)
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::empty())
            .partition_spec_id(0)
            .record_count(0)
            .file_size_in_bytes(0)
            .build()
            .expect("a data file");
        NewFile { file, spec_id: 0 }
    };
    (0..count).map(empty).collect()
}
