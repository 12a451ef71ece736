//! The catalog itself, and the head of each table as last seen.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use iceberg::io::FileIO;
use iceberg::table::Table;
use iceberg::{
    Catalog, Namespace, NamespaceIdent, Runtime, TableCommit, TableCreation, TableIdent, TableRequirement,
    TableUpdate,
};

use super::super::foreign::apply_foreign;
use super::super::metadata_file::Contents;
use super::super::{CommitCatalog, CommitOutcome, IfMissing};
use super::database::Database;
use super::postgres::PostgresAddress;
use super::rows::Rows;
use super::sqlite;
use crate::Result;
use crate::storage::Stores;

/// Tables whose parsed metadata is kept.
const CACHED_HEADS: usize = 64;

/// How to open a SQL catalog.
#[derive(Debug, Clone)]
pub(in crate::catalog) struct SqlOptions {
    /// The database.
    pub(in crate::catalog) address: Address,
    /// The value of `catalog_name` in all rows.
    pub(in crate::catalog) name: String,
    /// Where tables without a location of their own go.
    pub(in crate::catalog) warehouse: Option<String>,
    /// What to do where there is no catalog.
    pub(in crate::catalog) if_missing: IfMissing,
}

/// Where a database is. Shown without a password.
#[derive(Debug, Clone)]
pub(in crate::catalog) enum Address {
    /// A file of SQLite; `:memory:` for a database that ends with the process.
    Sqlite(PathBuf),
    /// A database of a Postgres server.
    Postgres(Box<PostgresAddress>),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => path.display().fmt(f),
            Self::Postgres(address) => address.fmt(f),
        }
    }
}

impl Address {
    /// Opens the database. A file is made where that is asked for, a database of a server is not.
    pub(super) async fn open(&self, if_missing: IfMissing) -> Result<Database> {
        match self {
            Self::Sqlite(path) => sqlite::open(path, if_missing).await,
            Self::Postgres(address) => address
                .open()
                .await
                .map_err(|failure| failure.into_error(&format!("opening the catalog database `{address}`"))),
        }
    }

    /// Whether the database is new whenever it is opened.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self, Self::Sqlite(path) if sqlite::is_in_memory(path))
    }
}

/// A catalog in a SQL database.
#[derive(Debug)]
pub(in crate::catalog) struct SqlCatalog {
    pub(super) rows: Rows,
    pub(super) stores: Stores,
    file_io: FileIO,
    pub(super) warehouse: Option<String>,
    /// The metadata last seen of each table: its file never changes, so a location that is still the same need not be
    /// read again.
    heads: Mutex<HashMap<TableIdent, Head>>,
}

/// A metadata file and what it says.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) location: String,
    pub(super) contents: Contents,
}

impl SqlCatalog {
    /// Opens the database and finds its layout.
    pub(in crate::catalog) async fn open(options: SqlOptions, stores: Stores) -> Result<Self> {
        let rows = Rows::open(&options).await?;
        let file_io = stores.file_io();
        Ok(Self { rows, stores, file_io, warehouse: options.warehouse, heads: Mutex::default() })
    }

    pub(super) fn table(&self, ident: &TableIdent, head: Head) -> Result<Table> {
        let table = Table::builder()
            .file_io(self.file_io.clone())
            .identifier(ident.clone())
            .metadata_location(head.location)
            .metadata(head.contents.metadata)
            .runtime(Runtime::try_current()?)
            .disable_cache()
            .build()?;
        Ok(table)
    }

    pub(super) fn cached(&self, ident: &TableIdent, location: &str) -> Option<Head> {
        let heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        heads.get(ident).filter(|head| head.location == location).cloned()
    }

    pub(super) fn remember(&self, ident: &TableIdent, head: &Head) {
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        if heads.len() >= CACHED_HEADS && !heads.contains_key(ident) {
            heads.clear();
        }
        heads.insert(ident.clone(), head.clone());
    }

    pub(super) fn forget(&self, ident: &TableIdent) {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).remove(ident);
    }
}

#[async_trait]
impl CommitCatalog for SqlCatalog {
    async fn commit(
        &self,
        base: &Table,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> CommitOutcome {
        self.compare_and_set(base, &requirements, updates).await
    }

    fn client_deletes_metadata(&self) -> bool {
        true
    }
}

#[async_trait]
impl Catalog for SqlCatalog {
    async fn list_namespaces(&self, parent: Option<&NamespaceIdent>) -> iceberg::Result<Vec<NamespaceIdent>> {
        self.children(parent).await
    }

    async fn create_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> iceberg::Result<Namespace> {
        self.add_namespace(namespace, properties).await
    }

    async fn get_namespace(&self, namespace: &NamespaceIdent) -> iceberg::Result<Namespace> {
        let properties = self.namespace_properties(namespace).await?;
        Ok(Namespace::with_properties(namespace.clone(), properties))
    }

    async fn namespace_exists(&self, namespace: &NamespaceIdent) -> iceberg::Result<bool> {
        self.has_namespace(namespace).await
    }

    async fn update_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> iceberg::Result<()> {
        self.replace_properties(namespace, properties).await
    }

    async fn drop_namespace(&self, namespace: &NamespaceIdent) -> iceberg::Result<()> {
        self.remove_namespace(namespace).await
    }

    async fn list_tables(&self, namespace: &NamespaceIdent) -> iceberg::Result<Vec<TableIdent>> {
        self.tables_in(namespace).await
    }

    async fn create_table(
        &self,
        namespace: &NamespaceIdent,
        creation: TableCreation,
    ) -> iceberg::Result<Table> {
        self.add_table(namespace, creation).await
    }

    async fn load_table(&self, table: &TableIdent) -> iceberg::Result<Table> {
        let head = self.head(table).await?;
        Ok(self.table(table, head)?)
    }

    async fn drop_table(&self, table: &TableIdent) -> iceberg::Result<()> {
        self.remove_row(table).await
    }

    async fn purge_table(&self, table: &TableIdent) -> iceberg::Result<()> {
        let loaded = self.load_table(table).await?;
        self.remove_row(table).await?;
        iceberg::drop_table_data(&loaded).await
    }

    async fn table_exists(&self, table: &TableIdent) -> iceberg::Result<bool> {
        self.has_table(table).await
    }

    async fn rename_table(&self, src: &TableIdent, dest: &TableIdent) -> iceberg::Result<()> {
        self.move_row(src, dest).await
    }

    async fn register_table(&self, table: &TableIdent, metadata_location: String) -> iceberg::Result<Table> {
        self.adopt(table, metadata_location).await
    }

    async fn update_table(&self, commit: TableCommit) -> iceberg::Result<Table> {
        apply_foreign(self, commit).await
    }
}
