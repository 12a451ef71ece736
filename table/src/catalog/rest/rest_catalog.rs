//! The catalog itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use iceberg::io::FileIO;
use iceberg::table::Table;
use iceberg::{
    Catalog, Namespace, NamespaceIdent, TableCommit, TableCreation, TableIdent, TableRequirement, TableUpdate,
};
use tokio::time::Instant;

use super::super::foreign::apply_foreign;
use super::super::{CommitCatalog, CommitOutcome};
use super::looked::Looked;
use super::sent_requests::SentRequests;
use super::session::RestSession;
use super::tables::Purge;
use crate::storage::Stores;

/// A catalog behind Iceberg's open API.
#[derive(Debug)]
pub(in crate::catalog) struct RestCatalog {
    pub(super) session: Arc<RestSession>,
    pub(super) stores: Stores,
    pub(super) file_io: FileIO,
    pub(super) sent: SentRequests,
    pub(super) looked: Looked,
    /// When the server wants to be asked again.
    pub(super) not_before: Mutex<Option<Instant>>,
}

impl RestCatalog {
    /// A catalog on a session; `stores` get the credentials of its tables.
    pub(in crate::catalog) fn new(session: RestSession, stores: Stores) -> Self {
        Self {
            session: Arc::new(session),
            file_io: stores.file_io(),
            stores,
            sent: SentRequests::default(),
            looked: Looked::default(),
            not_before: Mutex::default(),
        }
    }
}

#[async_trait]
impl CommitCatalog for RestCatalog {
    async fn commit(
        &self,
        base: &Table,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> CommitOutcome {
        self.compare_and_set(base, &requirements, &updates).await
    }

    fn client_deletes_metadata(&self) -> bool {
        false
    }
}

#[async_trait]
impl Catalog for RestCatalog {
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
        match self.looked.take(table) {
            Some(table) => Ok(table),
            None => self.load(table).await,
        }
    }

    async fn drop_table(&self, table: &TableIdent) -> iceberg::Result<()> {
        self.remove(table, Purge::Keep).await
    }

    async fn purge_table(&self, table: &TableIdent) -> iceberg::Result<()> {
        self.remove(table, Purge::Delete).await
    }

    async fn table_exists(&self, table: &TableIdent) -> iceberg::Result<bool> {
        self.has_table(table).await
    }

    async fn rename_table(&self, src: &TableIdent, dest: &TableIdent) -> iceberg::Result<()> {
        self.rename(src, dest).await
    }

    async fn register_table(&self, table: &TableIdent, metadata_location: String) -> iceberg::Result<Table> {
        self.adopt(table, &metadata_location).await
    }

    async fn update_table(&self, commit: TableCommit) -> iceberg::Result<Table> {
        apply_foreign(self, commit).await
    }
}
