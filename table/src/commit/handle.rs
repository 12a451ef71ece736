//! [`TableHandle`]: one table and branch, as this process knows it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iceberg::TableIdent;
use iceberg::spec::ManifestFile;
use iceberg::table::Table;
use tokio::sync::Mutex as Queue;
use tokio::time::Instant;
use uuid::Uuid;

use super::{CommitLimits, TableHandle};
use crate::catalog::CommitCatalog;
use crate::ledger::{CommitId, Standing, WriterName, standing};
use crate::manifest::read_list;
use crate::protections::{Protection, stands};
use crate::storage::Stores;
use crate::{Error, ErrorKind, Result, Surroundings};

/// What all clones of a handle share.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) catalog: Arc<dyn CommitCatalog>,
    pub(super) stores: Stores,
    pub(super) ident: TableIdent,
    pub(super) branch: String,
    uuid: Uuid,
    known: Mutex<Known>,
    /// Who holds it commits; who waits for it is served in order of arrival.
    pub(super) queue: Queue<Turn>,
    /// Writers whose ledger was seen in a table that was loaded after a commit.
    pub(super) kept: Mutex<HashSet<WriterName>>,
    trouble: Mutex<Option<Trouble>>,
}

/// The table as last loaded or committed.
#[derive(Debug)]
struct Known {
    table: Table,
    /// Grows with each change of `table`, so that a slow load does not put an older one back.
    generation: u64,
    /// Whether the next attempt may build on `table`: false from the moment a request is sent until it is answered
    /// with the table after it, also where the caller went away in between.
    fresh: bool,
}

/// What keeps a commit from coming through: the table is unhealthy as long as it lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The first failure.
    pub since: Instant,
    /// Failures since then.
    pub failures: u32,
    /// The last failure.
    pub reason: String,
}

/// The table that an attempt builds on.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) table: Table,
    /// Whether it was loaded for this attempt, and not known before.
    pub(super) loaded: bool,
}

/// What one commit leaves to the next.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The manifests of the snapshot that this process committed last.
    pub(super) list: Option<(i64, Arc<Vec<ManifestFile>>)>,
    /// Manifests that were found to have nothing to be merged with.
    pub(super) unmergeable: HashSet<String>,
    /// Commits of which a request had no definite answer: no later call for them deletes what they name. With the last
    /// sequence number of the base of each such request.
    pub(super) unknown: HashMap<CommitId, BTreeSet<i64>>,
}

impl TableHandle {
    /// Loads the table. `branch` is `main` or an existing branch.
    pub async fn open(
        catalog: Arc<dyn CommitCatalog>,
        stores: Stores,
        ident: TableIdent,
        branch: &str,
    ) -> Result<Self> {
        let timeout = CommitLimits::default().request_timeout;
        let loaded = within(timeout, "loading the table", catalog.load_table(&ident)).await?;
        let table =
            loaded.map_err(|e| Error::from(e).context(format_args!("table `{ident}` cannot be loaded")))?;
        if branch != "main" && table.metadata().snapshot_for_ref(branch).is_none() {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("branch `{branch}` of table `{ident}` does not exist: create it first"),
            ));
        }
        let limits = CommitLimits::of_properties(table.metadata().properties());
        let inner = Inner {
            catalog,
            stores,
            ident,
            branch: branch.to_owned(),
            uuid: table.metadata().uuid(),
            known: Mutex::new(Known { table, generation: 0, fresh: true }),
            queue: Queue::new(Turn::default()),
            kept: Mutex::default(),
            trouble: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner), limits, surroundings: Surroundings::system() })
    }

    /// The same table with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: CommitLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How often and how long a commit is tried.
    #[must_use]
    pub fn limits(&self) -> &CommitLimits {
        &self.limits
    }

    /// The same table with another clock and other randomness.
    #[must_use]
    pub fn with_surroundings(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = surroundings;
        self
    }

    /// The clock and the randomness that commits use.
    #[must_use]
    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// The table's name in its catalog.
    #[must_use]
    pub fn ident(&self) -> &TableIdent {
        &self.inner.ident
    }

    /// The table as last loaded or committed by this process.
    #[must_use]
    pub fn table(&self) -> Table {
        self.known().table.clone()
    }

    /// Loads the head. `Ledger` where the table was dropped and created again (another uuid), `NotFound` where it
    /// was dropped.
    pub async fn refresh(&self) -> Result<Table> {
        let generation = self.known().generation;
        let table = self.load().await?;
        let mut known = self.known();
        if known.generation == generation {
            known.table = table.clone();
            known.generation += 1;
        }
        Ok(table)
    }

    /// The stores of the table's files.
    #[must_use]
    pub fn stores(&self) -> &Stores {
        &self.inner.stores
    }

    /// The catalog that the table is in.
    #[must_use]
    pub fn catalog(&self) -> &Arc<dyn CommitCatalog> {
        &self.inner.catalog
    }

    /// The branch that is committed to.
    #[must_use]
    pub fn branch(&self) -> &str {
        &self.inner.branch
    }

    /// What the head says about a writer.
    pub async fn standing(&self, writer: &WriterName) -> Result<Standing> {
        standing(self.refresh().await?.metadata(), self.branch(), writer)
    }

    /// Why the commit whose turn it is has not come through yet; `None` where all is well.
    #[must_use]
    pub fn trouble(&self) -> Option<Trouble> {
        self.inner.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes a failure, or (`None`) that the last commit ended.
    pub(super) fn note_trouble(&self, reason: Option<String>) {
        let mut trouble = self.inner.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *trouble = reason.map(|reason| {
            let (since, failures) =
                trouble.as_ref().map_or((Instant::now(), 0), |before| (before.since, before.failures));
            Trouble { since, failures: failures + 1, reason }
        });
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The table to build the next attempt on: as just committed by this process, else freshly loaded.
    pub(super) async fn base(&self) -> Result<Base> {
        {
            let known = self.known();
            if known.fresh {
                return Ok(Base { table: known.table.clone(), loaded: false });
            }
            if !stands(Protection::FreshBase) {
                return Ok(Base { table: known.table.clone(), loaded: true });
            }
        }
        let table = self.load().await?;
        self.set_base(&table);
        Ok(Base { table, loaded: true })
    }

    /// From now on the known table may be behind the head.
    pub(super) fn forget_base(&self) {
        self.known().fresh = false;
    }

    /// The table is this.
    pub(super) fn set_base(&self, table: &Table) {
        let mut known = self.known();
        known.table = table.clone();
        known.generation += 1;
        known.fresh = true;
    }

    /// Loads the table and checks that it is still the one that was opened.
    pub(super) async fn load(&self) -> Result<Table> {
        let ident = self.ident();
        let request = self.inner.catalog.load_table(ident);
        let loaded = within(self.limits.request_timeout, "loading the table", request).await?;
        let table =
            loaded.map_err(|e| Error::from(e).context(format_args!("table `{ident}` cannot be loaded")))?;
        let found = table.metadata().uuid();
        if found != self.inner.uuid {
            return Err(Error::new(
                ErrorKind::Ledger,
                format!(
                    "table `{ident}` was dropped and created again: its uuid is `{found}` and was `{}`; nothing was \
                     committed to the new one. Start again to write to it",
                    self.inner.uuid
                ),
            ));
        }
        Ok(table)
    }

    /// The manifests of the branch's head in `base`: those this process committed, else read from the list.
    pub(super) async fn head_manifests(&self, turn: &Turn, base: &Table) -> Result<Arc<Vec<ManifestFile>>> {
        let Some(head) = base.metadata().snapshot_for_ref(self.branch()) else {
            return Ok(Arc::default());
        };
        match &turn.list {
            Some((id, list)) if *id == head.snapshot_id() => Ok(list.clone()),
            _ => {
                let list = read_list(base, head.snapshot_id());
                within(self.limits.request_timeout, "reading the manifest list", list).await?.map(Arc::new)
            }
        }
    }
}

/// Runs a request under a deadline. `Unavailable` when it fires.
pub(super) async fn within<T>(limit: Duration, what: &str, request: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(limit, request).await.map_err(|_| {
        Error::new(
            ErrorKind::Unavailable,
            format!("{what} was not answered within {} ms: catalog or store hangs", limit.as_millis()),
        )
    })
}
