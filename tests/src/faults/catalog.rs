//! A catalog whose requests meet faults.

use std::collections::HashMap;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use firn_table::catalog::{CommitCatalog, CommitOutcome};
use firn_table::{Error, ErrorKind};
use iceberg::table::Table;
use iceberg::{
    Catalog, Namespace, NamespaceIdent, TableCommit, TableCreation, TableIdent, TableRequirement, TableUpdate,
};

use super::Schedule;

/// What happens to a commit request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitFault {
    /// It lands, and the reply is lost: unknown.
    ReplyLost,
    /// It lands, and a proxy that sent it twice answers with the second reply: conflict.
    AppliedThenConflict,
    /// The caller is told nothing (unknown), and the request is applied after this many further requests, or by
    /// [`FaultyCatalog::release_late`].
    AppliedLate {
        /// Commits and loads in between.
        after: usize,
    },
    /// It is not applied, and the server says that the base is not the head any more.
    Conflicts,
    /// It is not applied, and the server says so: 429.
    Throttled {
        /// `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// It is not applied, and nobody says so: 5xx, unknown.
    ServerError,
    /// It is not applied, and no answer comes, ever.
    Hangs,
    /// It lands, and no answer comes, ever.
    AppliedThenHangs,
    /// It lands without the properties whose names start so; the catalog drops them in silence.
    DropsProperties {
        /// The start of their names.
        prefix: String,
    },
    /// The table is dropped before the request arrives.
    TableDropped,
}

/// What happens to a request for a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadFault {
    /// It fails: 5xx.
    ServerError,
    /// No answer comes, ever.
    Hangs,
}

/// A commit request that is still on its way.
#[derive(Debug)]
struct Late {
    remaining: usize,
    base: Table,
    requirements: Vec<TableRequirement>,
    updates: Vec<TableUpdate>,
}

/// A catalog around another, with faults in commits and loads. All other requests pass.
#[derive(Debug)]
pub struct FaultyCatalog {
    inner: Arc<dyn CommitCatalog>,
    commits: Schedule<CommitFault>,
    loads: Schedule<LoadFault>,
    late: Mutex<Vec<Late>>,
    requests: AtomicUsize,
}

impl FaultyCatalog {
    /// Faults in commits only.
    #[must_use]
    pub fn new(inner: Arc<dyn CommitCatalog>, commits: Schedule<CommitFault>) -> Self {
        Self {
            inner,
            commits,
            loads: Schedule::none(),
            late: Mutex::default(),
            requests: AtomicUsize::default(),
        }
    }

    /// Faults in loads too.
    #[must_use]
    pub fn with_load_faults(self, loads: Schedule<LoadFault>) -> Self {
        Self { loads, ..self }
    }

    /// Commit requests that arrived so far.
    #[must_use]
    pub fn commit_requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Applies every request that is still on its way, oldest first, and returns what became of them.
    pub async fn release_late(&self) -> Vec<CommitOutcome> {
        let late = std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner));
        self.apply(late).await
    }

    /// One request has passed: those on their way come nearer, and some arrive.
    async fn tick(&self) {
        let arrived = {
            let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
            let (arrived, waiting) = late.drain(..).partition(|request| request.remaining == 0);
            *late = waiting;
            late.iter_mut().for_each(|request| request.remaining -= 1);
            arrived
        };
        self.apply(arrived).await;
    }

    async fn apply(&self, late: Vec<Late>) -> Vec<CommitOutcome> {
        let mut outcomes = Vec::with_capacity(late.len());
        for request in late {
            let Late { base, requirements, updates, .. } = request;
            let outcome = self.inner.commit(&base, requirements, updates).await;
            tracing::info!(?outcome, "late commit arrived");
            outcomes.push(outcome);
        }
        outcomes
    }
}

fn unknown(what: &str) -> CommitOutcome {
    CommitOutcome::Unknown(Error::new(ErrorKind::Unavailable, what))
}

#[async_trait]
impl CommitCatalog for FaultyCatalog {
    async fn commit(
        &self,
        base: &Table,
        requirements: Vec<TableRequirement>,
        mut updates: Vec<TableUpdate>,
    ) -> CommitOutcome {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.tick().await;
        let fault = self.commits.next();
        match fault {
            Some(CommitFault::Throttled { retry_after }) => {
                let cause = Error::new(ErrorKind::Unavailable, "injected: 429");
                return CommitOutcome::NotApplied { retry_after, cause };
            }
            Some(CommitFault::Conflicts) => return CommitOutcome::Conflict,
            Some(CommitFault::ServerError) => return unknown("injected: 503, not applied"),
            Some(CommitFault::Hangs) => pending().await,
            Some(CommitFault::AppliedLate { after }) => {
                let request = Late { remaining: after, base: base.clone(), requirements, updates };
                self.late.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                return unknown("injected: 504, applied later");
            }
            Some(CommitFault::TableDropped) => {
                if let Err(error) = self.inner.drop_table(base.identifier()).await {
                    tracing::warn!(%error, "the table could not be dropped");
                }
            }
            Some(CommitFault::DropsProperties { ref prefix }) => drop_properties(&mut updates, prefix),
            _ => {}
        }
        let outcome = self.inner.commit(base, requirements, updates).await;
        match (fault, outcome) {
            (Some(CommitFault::ReplyLost), CommitOutcome::Committed(_)) => {
                unknown("injected: the reply was lost")
            }
            (Some(CommitFault::AppliedThenConflict), CommitOutcome::Committed(_)) => CommitOutcome::Conflict,
            (Some(CommitFault::AppliedThenHangs), CommitOutcome::Committed(_)) => pending().await,
            (_, outcome) => outcome,
        }
    }

    fn client_deletes_metadata(&self) -> bool {
        self.inner.client_deletes_metadata()
    }
}

fn drop_properties(updates: &mut [TableUpdate], prefix: &str) {
    for update in updates {
        if let TableUpdate::SetProperties { updates } = update {
            updates.retain(|name, _| !name.starts_with(prefix));
        }
    }
}

#[async_trait]
impl Catalog for FaultyCatalog {
    async fn load_table(&self, table: &TableIdent) -> iceberg::Result<Table> {
        self.tick().await;
        match self.loads.next() {
            Some(LoadFault::ServerError) => {
                Err(Error::new(ErrorKind::Unavailable, "injected: 503 for a load").into())
            }
            Some(LoadFault::Hangs) => pending().await,
            None => self.inner.load_table(table).await,
        }
    }

    async fn list_namespaces(&self, parent: Option<&NamespaceIdent>) -> iceberg::Result<Vec<NamespaceIdent>> {
        self.inner.list_namespaces(parent).await
    }

    async fn create_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> iceberg::Result<Namespace> {
        self.inner.create_namespace(namespace, properties).await
    }

    async fn get_namespace(&self, namespace: &NamespaceIdent) -> iceberg::Result<Namespace> {
        self.inner.get_namespace(namespace).await
    }

    async fn namespace_exists(&self, namespace: &NamespaceIdent) -> iceberg::Result<bool> {
        self.inner.namespace_exists(namespace).await
    }

    async fn update_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> iceberg::Result<()> {
        self.inner.update_namespace(namespace, properties).await
    }

    async fn drop_namespace(&self, namespace: &NamespaceIdent) -> iceberg::Result<()> {
        self.inner.drop_namespace(namespace).await
    }

    async fn list_tables(&self, namespace: &NamespaceIdent) -> iceberg::Result<Vec<TableIdent>> {
        self.inner.list_tables(namespace).await
    }

    async fn create_table(
        &self,
        namespace: &NamespaceIdent,
        creation: TableCreation,
    ) -> iceberg::Result<Table> {
        self.inner.create_table(namespace, creation).await
    }

    async fn drop_table(&self, table: &TableIdent) -> iceberg::Result<()> {
        self.inner.drop_table(table).await
    }

    async fn purge_table(&self, table: &TableIdent) -> iceberg::Result<()> {
        self.inner.purge_table(table).await
    }

    async fn table_exists(&self, table: &TableIdent) -> iceberg::Result<bool> {
        self.inner.table_exists(table).await
    }

    async fn rename_table(&self, src: &TableIdent, dest: &TableIdent) -> iceberg::Result<()> {
        self.inner.rename_table(src, dest).await
    }

    async fn register_table(&self, table: &TableIdent, metadata_location: String) -> iceberg::Result<Table> {
        self.inner.register_table(table, metadata_location).await
    }

    async fn update_table(&self, commit: TableCommit) -> iceberg::Result<Table> {
        self.inner.update_table(commit).await
    }
}
