//! The SQL catalog: outcomes of commits, layouts of other writers, namespaces.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::str::FromStr;

use futures::StreamExt;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Transform, Type};
use iceberg::{NamespaceIdent, TableIdent};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use sqlx::{Connection, SqliteConnection};

use super::*;
use crate::ErrorKind;
use crate::storage::join;

struct Fixture {
    folder: tempfile::TempDir,
    open: OpenCatalog,
}

impl Fixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let open = open(folder.path(), IfMissing::Create).await.unwrap();
        Self { folder, open }
    }

    fn database(&self) -> String {
        self.folder.path().join("catalog.db").to_str().unwrap().to_owned()
    }

    async fn table(&self, properties: &[(&str, &str)]) -> Table {
        let mut new = NewTable::new(ident(), schema());
        new.properties =
            properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        create_table(self.open.catalog.as_ref(), new).await.unwrap()
    }

    async fn load(&self) -> Table {
        self.open.catalog.load_table(&ident()).await.unwrap()
    }

    async fn metadata_files(&self) -> HashSet<String> {
        let folder = join(self.load().await.metadata().location(), "metadata");
        let (store, prefix) = self.open.stores.resolve(&folder).unwrap();
        store.list(Some(&prefix)).map(|meta| format!("file:///{}", meta.unwrap().location)).collect().await
    }
}

async fn open(folder: &Path, if_missing: IfMissing) -> crate::Result<OpenCatalog> {
    let options = CatalogOptions {
        uri: format!("sqlite:{}", folder.join("catalog.db").display()),
        warehouse: Some(folder.join("warehouse").to_str().unwrap().to_owned()),
        if_missing,
        ..CatalogOptions::default()
    };
    open_catalog(&options, None).await
}

fn ident() -> TableIdent {
    parse_table_ident("db.events").unwrap()
}

fn schema() -> Schema {
    Schema::builder()
        .with_fields([
            NestedField::required(10, "id", Type::Primitive(PrimitiveType::Long)).into(),
            NestedField::optional(20, "day", Type::Primitive(PrimitiveType::Date)).into(),
        ])
        .build()
        .unwrap()
}

fn set(key: &str, value: &str) -> Vec<TableUpdate> {
    vec![TableUpdate::SetProperties { updates: HashMap::from([(key.to_owned(), value.to_owned())]) }]
}

fn same_uuid(table: &Table) -> Vec<TableRequirement> {
    vec![TableRequirement::UuidMatch { uuid: table.metadata().uuid() }]
}

fn committed(outcome: CommitOutcome) -> Table {
    match outcome {
        CommitOutcome::Committed(table) => *table,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_created_table_has_the_catalogs_ids_and_firns_defaults() {
    let fixture = Fixture::new().await;
    let mut new = NewTable::new(ident(), schema());
    new.partition = vec![
        PartitionColumn { source: "id".to_owned(), transform: Transform::Bucket(4), name: None },
        PartitionColumn { source: "day".to_owned(), transform: Transform::Identity, name: None },
    ];
    new.properties = BTreeMap::from([("write.metadata.previous-versions-max".to_owned(), "3".to_owned())]);
    let table = create_table(fixture.open.catalog.as_ref(), new.clone()).await.unwrap();

    let metadata = table.metadata();
    assert_eq!(metadata.current_schema().field_id_by_name("day"), Some(2));
    let spec = metadata.default_partition_spec();
    assert_eq!(spec.fields().iter().map(|field| field.source_id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(metadata.properties()["history.expire.max-snapshot-age-ms"], "3600000");
    assert_eq!(metadata.properties()["write.metadata.previous-versions-max"], "3");
    assert!(metadata.location().ends_with("/warehouse/db/events"), "{}", metadata.location());
    assert_eq!(fixture.load().await.metadata(), metadata);

    let taken = create_table(fixture.open.catalog.as_ref(), new).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
    assert_eq!(fixture.metadata_files().await.len(), 1);
}

#[tokio::test]
async fn nothing_is_written_for_a_partition_name_that_avro_forbids() {
    let fixture = Fixture::new().await;
    let mut new = NewTable::new(ident(), schema());
    new.partition = vec![PartitionColumn {
        source: "id".to_owned(),
        transform: Transform::Bucket(4),
        name: Some("user.id_bucket".to_owned()),
    }];
    let refused = create_table(fixture.open.catalog.as_ref(), new).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Configuration);
    assert!(fixture.open.catalog.list_namespaces(None).await.unwrap().is_empty());
    assert!(!fixture.folder.path().join("warehouse").exists());
}

#[tokio::test]
async fn a_commit_on_a_stale_base_applies_where_its_requirements_hold() {
    let fixture = Fixture::new().await;
    let base = fixture.table(&[]).await;
    let catalog = fixture.open.catalog.as_ref();
    let first = committed(catalog.commit(&base, same_uuid(&base), set("a", "1")).await);
    let second = committed(catalog.commit(&base, same_uuid(&base), set("b", "2")).await);
    assert_eq!(second.metadata().properties()["a"], "1");
    assert_eq!(second.metadata().properties()["b"], "2");
    assert_eq!(second.metadata().metadata_log().len(), 2);
    assert_eq!(second.metadata().metadata_log()[1].metadata_file, first.metadata_location().unwrap());

    let mut stale = same_uuid(&base);
    stale.push(TableRequirement::CurrentSchemaIdMatch { current_schema_id: 7 });
    assert!(matches!(catalog.commit(&base, stale, set("c", "3")).await, CommitOutcome::Conflict));
    let hopeless = vec![TableUpdate::SetCurrentSchema { schema_id: 99 }];
    let outcome = catalog.commit(&second, same_uuid(&base), hopeless.clone()).await;
    assert!(matches!(outcome, CommitOutcome::Rejected(_)), "{outcome:?}");
    let outcome = catalog.commit(&base, same_uuid(&base), hopeless).await;
    assert!(matches!(outcome, CommitOutcome::Conflict), "{outcome:?}");
    assert_eq!(fixture.metadata_files().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_concurrent_commit_is_lost_and_none_leaves_a_file() {
    let fixture = Fixture::new().await;
    let table = fixture.table(&[("write.metadata.previous-versions-max", "100")]).await;
    let mut tasks = Vec::new();
    for writer in 0..6 {
        // Each writer has a pool of its own, as another process would.
        let open = open(fixture.folder.path(), IfMissing::Refuse).await.unwrap();
        let requirements = same_uuid(&table);
        tasks.push(tokio::spawn(async move {
            for round in 0..5 {
                let updates = set(&format!("w{writer}.{round}"), "x");
                loop {
                    let base = open.catalog.load_table(&ident()).await.unwrap();
                    match open.catalog.commit(&base, requirements.clone(), updates.clone()).await {
                        CommitOutcome::Committed(_) => break,
                        CommitOutcome::Conflict | CommitOutcome::NotApplied { .. } => {}
                        other => panic!("{other:?}"),
                    }
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let table = fixture.load().await;
    let ours = table.metadata().properties().keys().filter(|key| key.starts_with('w') && key.len() == 4);
    assert_eq!(ours.count(), 30);
    let mut expected: HashSet<String> =
        table.metadata().metadata_log().iter().map(|entry| entry.metadata_file.clone()).collect();
    expected.insert(table.metadata_location().unwrap().to_owned());
    assert_eq!(expected.len(), 31);
    assert_eq!(fixture.metadata_files().await, expected);
}

#[tokio::test]
async fn metadata_that_fell_out_of_the_log_is_deleted_only_where_the_table_says_so() {
    for (enabled, files) in [("true", 4), ("false", 10)] {
        let fixture = Fixture::new().await;
        let mut table = fixture
            .table(&[
                ("write.metadata.previous-versions-max", "3"),
                ("write.metadata.delete-after-commit.enabled", enabled),
            ])
            .await;
        for round in 0..9 {
            let updates = set("round", &round.to_string());
            table = committed(fixture.open.catalog.commit(&table, same_uuid(&table), updates).await);
        }
        assert_eq!(table.metadata().metadata_log().len(), 3);
        assert_eq!(fixture.metadata_files().await.len(), files, "{enabled}");
    }
}

#[tokio::test]
async fn a_locked_database_is_no_conflict_and_leaves_no_file() {
    let fixture = Fixture::new().await;
    let table = fixture.table(&[]).await;
    let mut other = SqliteConnection::connect_with(&connect(&fixture.database())).await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let outcome = fixture.open.catalog.commit(&table, same_uuid(&table), set("a", "1")).await;
    assert!(matches!(outcome, CommitOutcome::NotApplied { .. }), "{outcome:?}");
    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    assert_eq!(fixture.metadata_files().await.len(), 1);
    committed(fixture.open.catalog.commit(&table, same_uuid(&table), set("a", "1")).await);
}

#[tokio::test]
async fn a_table_that_was_dropped_or_replaced_takes_no_commit() {
    let fixture = Fixture::new().await;
    let table = fixture.table(&[]).await;
    fixture.open.catalog.drop_table(&ident()).await.unwrap();
    match fixture.open.catalog.commit(&table, same_uuid(&table), set("a", "1")).await {
        CommitOutcome::Rejected(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
        other => panic!("{other:?}"),
    }
    fixture.table(&[]).await;
    let outcome = fixture.open.catalog.commit(&table, same_uuid(&table), set("a", "1")).await;
    assert!(matches!(outcome, CommitOutcome::Conflict), "{outcome:?}");
}

fn connect(database: &str) -> SqliteConnectOptions {
    SqliteConnectOptions::from_str(&format!("sqlite:{database}")).unwrap()
}

/// What PyIceberg up to 0.11 and Java's schema V0 create.
async fn version_0(database: &str) {
    let pool = SqlitePool::connect_with(connect(database).create_if_missing(true)).await.unwrap();
    for statement in [
        "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, \
         table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), \
         previous_metadata_location VARCHAR(1000), PRIMARY KEY (catalog_name, table_namespace, table_name))",
        "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT \
         NULL, property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000) NOT NULL, \
         PRIMARY KEY (catalog_name, namespace, property_key))",
    ] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    pool.close().await;
}

#[tokio::test]
async fn a_database_without_the_type_column_is_used_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("catalog.db").to_str().unwrap().to_owned();
    version_0(&database).await;
    let fixture = Fixture { open: open(folder.path(), IfMissing::Refuse).await.unwrap(), folder };
    let table = fixture.table(&[]).await;
    let next = committed(fixture.open.catalog.commit(&table, same_uuid(&table), set("a", "1")).await);

    let pool = SqlitePool::connect_with(connect(&database)).await.unwrap();
    let row: (String, String, String, String, String) =
        sqlx::query_as("SELECT * FROM iceberg_tables").fetch_one(&pool).await.unwrap();
    let location = |table: &Table| table.metadata_location().unwrap().to_owned();
    let expected = ("firn".into(), "db".into(), "events".into(), location(&next), location(&table));
    assert_eq!(row, expected);
}

#[tokio::test]
async fn a_view_is_no_table_and_keeps_its_name() {
    let fixture = Fixture::new().await;
    fixture.table(&[]).await;
    let pool = SqlitePool::connect_with(connect(&fixture.database())).await.unwrap();
    for (name, kind) in [("v", Some("VIEW")), ("java", Some("TABLE")), ("old", None)] {
        sqlx::query("INSERT INTO iceberg_tables VALUES ('firn', 'db', $1, 'x', NULL, $2)")
            .bind(name)
            .bind(kind)
            .execute(&pool)
            .await
            .unwrap();
    }
    let catalog = fixture.open.catalog.as_ref();
    let tables = catalog.list_tables(ident().namespace()).await.unwrap();
    let names: Vec<&str> = tables.iter().map(TableIdent::name).collect();
    assert_eq!(names, ["events", "java", "old"]);
    let view = parse_table_ident("db.v").unwrap();
    assert!(!catalog.table_exists(&view).await.unwrap());
    let taken = create_table(catalog, NewTable::new(view, schema())).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
}

#[tokio::test]
async fn a_mistyped_path_makes_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let missing = open(folder.path(), IfMissing::Refuse).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    std::fs::write(folder.path().join("catalog.db"), b"no database, but long enough to be looked at")
        .unwrap();
    let wrong = open(folder.path(), IfMissing::Create).await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Configuration);

    std::fs::write(folder.path().join("catalog.db"), b"").unwrap();
    let empty = open(folder.path(), IfMissing::Refuse).await.unwrap_err();
    assert_eq!(empty.kind(), ErrorKind::Configuration);
    open(folder.path(), IfMissing::Create).await.unwrap();
}

#[tokio::test]
async fn other_kinds_of_catalog_are_refused_without_repeating_a_password() {
    for uri in ["mysql://user:secret@host/db", "http://secret@host", "hive:secret", "secret.db"] {
        let options = CatalogOptions { uri: uri.to_owned(), ..CatalogOptions::default() };
        let error = open_catalog(&options, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{uri}");
        assert_eq!(error.to_string().contains("secret"), uri == "secret.db", "{error}");
    }
}

#[tokio::test]
async fn namespaces_nest_by_dots_and_keep_their_properties() {
    let fixture = Fixture::new().await;
    let catalog = fixture.open.catalog.as_ref();
    let ident = |text: &str| NamespaceIdent::from_strs(text.split('.')).unwrap();
    let properties = HashMap::from([("owner".to_owned(), "x".to_owned())]);
    catalog.create_namespace(&ident("a.b.c"), properties.clone()).await.unwrap();
    catalog.create_namespace(&ident("ab"), HashMap::new()).await.unwrap();

    assert_eq!(catalog.list_namespaces(None).await.unwrap(), [ident("a"), ident("ab")]);
    assert_eq!(catalog.list_namespaces(Some(&ident("a"))).await.unwrap(), [ident("a.b")]);
    assert!(catalog.list_namespaces(Some(&ident("ab"))).await.unwrap().is_empty());
    assert_eq!(catalog.get_namespace(&ident("a.b.c")).await.unwrap().properties(), &properties);
    catalog.update_namespace(&ident("ab"), properties.clone()).await.unwrap();
    assert_eq!(catalog.get_namespace(&ident("ab")).await.unwrap().properties(), &properties);

    let taken = catalog.create_namespace(&ident("a.b"), HashMap::new()).await.unwrap_err();
    assert_eq!(taken.kind(), iceberg::ErrorKind::NamespaceAlreadyExists);
    assert!(catalog.drop_namespace(&ident("a")).await.is_err());
    catalog.drop_namespace(&ident("a.b.c")).await.unwrap();
    assert!(!catalog.namespace_exists(&ident("a")).await.unwrap());
    let gone = catalog.list_tables(&ident("a")).await.unwrap_err();
    assert_eq!(gone.kind(), iceberg::ErrorKind::NamespaceNotFound);
    let dotted = NamespaceIdent::from_strs(["a.b"]).unwrap();
    assert!(catalog.create_namespace(&dotted, HashMap::new()).await.is_err());
}

#[tokio::test]
async fn tables_are_renamed_registered_and_purged() {
    let fixture = Fixture::new().await;
    let table = fixture.table(&[]).await;
    let catalog = fixture.open.catalog.as_ref();
    let other = parse_table_ident("db2.other").unwrap();
    assert!(catalog.rename_table(&ident(), &other).await.is_err());
    catalog.create_namespace(other.namespace(), HashMap::new()).await.unwrap();
    catalog.rename_table(&ident(), &other).await.unwrap();
    assert!(!catalog.table_exists(&ident()).await.unwrap());
    let location = table.metadata_location().unwrap().to_owned();
    let again = catalog.register_table(&ident(), location.clone()).await.unwrap();
    assert_eq!(again.metadata(), catalog.load_table(&other).await.unwrap().metadata());
    let taken = catalog.rename_table(&ident(), &other).await.unwrap_err();
    assert_eq!(taken.kind(), iceberg::ErrorKind::TableAlreadyExists);

    catalog.drop_table(&other).await.unwrap();
    assert!(fixture.open.stores.exists(&location).await.unwrap());
    catalog.purge_table(&ident()).await.unwrap();
    assert!(!fixture.open.stores.exists(&location).await.unwrap());
    let gone = catalog.load_table(&ident()).await.unwrap_err();
    assert_eq!(crate::Error::from(gone).kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_transaction_of_the_iceberg_crate_commits_through_it() {
    use iceberg::transaction::{ApplyTransactionAction, Transaction};
    let fixture = Fixture::new().await;
    let table = fixture.table(&[]).await;
    committed(fixture.open.catalog.commit(&table, same_uuid(&table), set("a", "1")).await);
    let transaction = Transaction::new(&table);
    let action = transaction.update_table_properties().set("b".to_owned(), "2".to_owned());
    let transaction = action.apply(transaction).unwrap();
    let table = transaction.commit(fixture.open.catalog.as_ref()).await.unwrap();
    assert_eq!(table.metadata().properties()["a"], "1");
    assert_eq!(table.metadata().properties()["b"], "2");
}

#[tokio::test]
async fn gzip_metadata_is_written_under_its_name_and_read() {
    let fixture = Fixture::new().await;
    let table = fixture.table(&[("write.metadata.compression-codec", "gzip")]).await;
    assert!(table.metadata_location().unwrap().ends_with(".gz.metadata.json"));
    let reopened = open(fixture.folder.path(), IfMissing::Refuse).await.unwrap();
    let loaded = reopened.catalog.load_table(&ident()).await.unwrap();
    assert_eq!(loaded.metadata(), table.metadata());
}
