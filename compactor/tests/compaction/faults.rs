//! A catalog that does something before a commit reaches it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use firn_table::catalog::{CommitCatalog, CommitOutcome};
use futures::future::BoxFuture;
use iceberg::table::Table;
use iceberg::{
    Catalog, Namespace, NamespaceIdent, Result, TableCommit, TableCreation, TableIdent, TableRequirement,
    TableUpdate,
};

/// Runs before a commit; an outcome that it returns replaces the commit.
pub(crate) type Hook = Box<dyn FnOnce() -> BoxFuture<'static, Option<CommitOutcome>> + Send>;

/// Delegates to another catalog, with hooks before its next commits.
pub(crate) struct HookedCatalog {
    inner: Arc<dyn CommitCatalog>,
    hooks: Mutex<VecDeque<Hook>>,
}

impl HookedCatalog {
    pub(crate) fn new(inner: Arc<dyn CommitCatalog>) -> Arc<Self> {
        Arc::new(Self { inner, hooks: Mutex::default() })
    }

    /// The next commit that has no hook yet gets this one.
    pub(crate) fn before_commit(&self, hook: Hook) {
        self.hooks.lock().expect("not poisoned").push_back(hook);
    }

    /// Hooks that did not run.
    pub(crate) fn left(&self) -> usize {
        self.hooks.lock().expect("not poisoned").len()
    }
}

impl fmt::Debug for HookedCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookedCatalog").finish_non_exhaustive()
    }
}

#[async_trait]
impl CommitCatalog for HookedCatalog {
    async fn commit(
        &self,
        base: &Table,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> CommitOutcome {
        let hook = self.hooks.lock().expect("not poisoned").pop_front();
        if let Some(hook) = hook
            && let Some(outcome) = hook().await
        {
            return outcome;
        }
        self.inner.commit(base, requirements, updates).await
    }

    fn client_deletes_metadata(&self) -> bool {
        self.inner.client_deletes_metadata()
    }
}

#[async_trait]
impl Catalog for HookedCatalog {
    async fn list_namespaces(&self, parent: Option<&NamespaceIdent>) -> Result<Vec<NamespaceIdent>> {
        self.inner.list_namespaces(parent).await
    }

    async fn create_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> Result<Namespace> {
        self.inner.create_namespace(namespace, properties).await
    }

    async fn get_namespace(&self, namespace: &NamespaceIdent) -> Result<Namespace> {
        self.inner.get_namespace(namespace).await
    }

    async fn namespace_exists(&self, namespace: &NamespaceIdent) -> Result<bool> {
        self.inner.namespace_exists(namespace).await
    }

    async fn update_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> Result<()> {
        self.inner.update_namespace(namespace, properties).await
    }

    async fn drop_namespace(&self, namespace: &NamespaceIdent) -> Result<()> {
        self.inner.drop_namespace(namespace).await
    }

    async fn list_tables(&self, namespace: &NamespaceIdent) -> Result<Vec<TableIdent>> {
        self.inner.list_tables(namespace).await
    }

    async fn create_table(&self, namespace: &NamespaceIdent, creation: TableCreation) -> Result<Table> {
        self.inner.create_table(namespace, creation).await
    }

    async fn load_table(&self, table: &TableIdent) -> Result<Table> {
        self.inner.load_table(table).await
    }

    async fn drop_table(&self, table: &TableIdent) -> Result<()> {
        self.inner.drop_table(table).await
    }

    async fn purge_table(&self, table: &TableIdent) -> Result<()> {
        self.inner.purge_table(table).await
    }

    async fn table_exists(&self, table: &TableIdent) -> Result<bool> {
        self.inner.table_exists(table).await
    }

    async fn rename_table(&self, source: &TableIdent, destination: &TableIdent) -> Result<()> {
        self.inner.rename_table(source, destination).await
    }

    async fn register_table(&self, table: &TableIdent, metadata_location: String) -> Result<Table> {
        self.inner.register_table(table, metadata_location).await
    }

    async fn update_table(&self, commit: TableCommit) -> Result<Table> {
        self.inner.update_table(commit).await
    }
}
