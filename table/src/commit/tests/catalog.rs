//! A catalog in memory with a true compare-and-set, whose answers are scripted.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use iceberg::spec::{TableMetadata, TableMetadataRef};
use iceberg::table::Table;
use iceberg::{
    Catalog, Namespace, NamespaceIdent, Runtime, TableCommit, TableCreation, TableIdent, TableRequirement,
    TableUpdate,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

use crate::catalog::{CommitCatalog, CommitOutcome};
use crate::storage::Stores;
use crate::{Error, ErrorKind};

/// What becomes of a commit request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Compared, applied, answered.
    Answered,
    /// Applied; the answer is lost.
    ReplyLost,
    /// The answer is lost; it is applied when [`ScriptedCatalog::land_late`] is called.
    Late,
    /// Lost on the way.
    Dropped,
    /// Applied; a proxy answers that there was a conflict.
    ConflictThoughApplied,
    /// Not applied; a conflict is answered though the head has not moved.
    Conflict,
    /// Not applied: throttled.
    Throttled,
    /// Refused for good.
    Rejected,
    /// Never answered, and not applied.
    Hangs,
    /// Never answered, and applied.
    HangsApplied,
    /// Applied without the properties, which the answer shows as they are.
    PropertiesDropped,
    /// Applied without the properties; the answer claims that they are there.
    PropertiesDroppedInSilence,
    /// Applied; the answer shows the table before.
    AnsweredWithOldTable,
}

type Late = (Vec<TableRequirement>, Vec<TableUpdate>);

#[derive(Debug)]
struct Head {
    metadata: Option<TableMetadataRef>,
    version: u64,
    script: VecDeque<Fate>,
    late: Vec<Late>,
    /// Where outcomes and late landings are random.
    random: Option<StdRng>,
    commits: usize,
    loads: usize,
    in_flight: usize,
    most_in_flight: usize,
    /// Before the next compare, this is done to the head.
    before: VecDeque<Vec<TableUpdate>>,
}

/// The catalog of one table.
#[derive(Debug)]
pub(super) struct ScriptedCatalog {
    ident: TableIdent,
    stores: Stores,
    head: Mutex<Head>,
}

impl ScriptedCatalog {
    pub(super) fn new(stores: Stores, ident: TableIdent, metadata: TableMetadata) -> Arc<Self> {
        let head = Head {
            metadata: Some(Arc::new(metadata)),
            version: 0,
            script: VecDeque::new(),
            late: Vec::new(),
            random: None,
            commits: 0,
            loads: 0,
            in_flight: 0,
            most_in_flight: 0,
            before: VecDeque::new(),
        };
        Arc::new(Self { ident, stores, head: Mutex::new(head) })
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next requests meet these fates; the ones after them are answered.
    pub(super) fn script(&self, fates: impl IntoIterator<Item = Fate>) {
        self.head().script.extend(fates);
    }

    /// From now on fates are drawn, and late requests land at random.
    pub(super) fn randomise(&self, seed: u64) {
        self.head().random = Some(StdRng::seed_from_u64(seed));
    }

    /// From now on all requests are answered.
    pub(super) fn calm(&self) {
        let mut head = self.head();
        head.random = None;
        head.script.clear();
        head.late.clear();
    }

    /// Someone else changes the table just before the next request is compared.
    pub(super) fn before_next(&self, updates: Vec<TableUpdate>) {
        self.head().before.push_back(updates);
    }

    /// Requests that were held are forwarded now. How many were applied.
    pub(super) fn land_late(&self) -> usize {
        let mut head = self.head();
        let late = std::mem::take(&mut head.late);
        late.into_iter().filter(|(requirements, updates)| head.apply(requirements, updates).is_some()).count()
    }

    /// Someone else changes the table, whatever it is.
    pub(super) fn update(&self, updates: Vec<TableUpdate>) {
        self.head().apply(&[], &updates).expect("a test's update is valid");
    }

    pub(super) fn drop_it(&self) {
        self.head().metadata = None;
    }

    /// Drops the table and creates it again: the same, with another uuid.
    pub(super) fn recreate(&self) {
        let mut head = self.head();
        let old = head.metadata.take().expect("it is there");
        let builder = old.as_ref().clone().into_builder(None).assign_uuid(Uuid::now_v7());
        head.metadata = Some(Arc::new(builder.build().expect("only the uuid changed").metadata));
        head.version += 1;
    }

    pub(super) fn metadata(&self) -> TableMetadataRef {
        self.head().metadata.clone().expect("the table is there")
    }

    pub(super) fn commits(&self) -> usize {
        self.head().commits
    }

    /// The most requests that were under way at once.
    pub(super) fn most_in_flight(&self) -> usize {
        self.head().most_in_flight
    }

    pub(super) fn loads(&self) -> usize {
        self.head().loads
    }

    pub(super) fn table(&self) -> iceberg::Result<Table> {
        let head = self.head();
        let Some(metadata) = head.metadata.clone() else {
            return Err(iceberg::Error::new(iceberg::ErrorKind::TableNotFound, "it was dropped"));
        };
        self.table_of(metadata, head.version)
    }

    fn table_of(&self, metadata: TableMetadataRef, version: u64) -> iceberg::Result<Table> {
        Table::builder()
            .identifier(self.ident.clone())
            .metadata_location(format!("memory:///table/metadata/v{version}.metadata.json"))
            .metadata(metadata)
            .file_io(self.stores.file_io())
            .runtime(Runtime::try_current()?)
            .disable_cache()
            .build()
    }

    fn decide(&self, base: &Table, requirements: &[TableRequirement], updates: &[TableUpdate]) -> Decided {
        let mut head = self.head();
        head.commits += 1;
        if let Some(updates) = head.before.pop_front() {
            head.apply(&[], &updates).expect("a test's update is valid");
        }
        head.maybe_land_late();
        let fate = head.next_fate();
        let unapplied = match fate {
            Fate::Late => {
                head.late.push((requirements.to_vec(), updates.to_vec()));
                Some(CommitOutcome::Unknown(lost()))
            }
            Fate::Dropped => Some(CommitOutcome::Unknown(lost())),
            Fate::Conflict => Some(CommitOutcome::Conflict),
            Fate::Throttled => Some(CommitOutcome::NotApplied { retry_after: None, cause: lost() }),
            Fate::Rejected => {
                Some(CommitOutcome::Rejected(Error::new(ErrorKind::Configuration, "no permission")))
            }
            Fate::Hangs => return Decided::Hang,
            _ => None,
        };
        if let Some(outcome) = unapplied {
            return Decided::Answer(outcome);
        }
        let shown = head.apply(requirements, updates);
        if matches!(fate, Fate::PropertiesDropped | Fate::PropertiesDroppedInSilence) && shown.is_some() {
            head.drop_properties(updates);
        }
        let Some(shown) = shown else {
            return match fate {
                Fate::HangsApplied => Decided::Hang,
                Fate::ReplyLost => Decided::Answer(CommitOutcome::Unknown(lost())),
                _ => Decided::Answer(CommitOutcome::Conflict),
            };
        };
        let (current, version) = (head.metadata.clone().expect("it was just applied"), head.version);
        drop(head);
        let committed = |metadata| match self.table_of(metadata, version) {
            Ok(table) => CommitOutcome::Committed(Box::new(table)),
            Err(e) => CommitOutcome::Unknown(e.into()),
        };
        match fate {
            Fate::ReplyLost => Decided::Answer(CommitOutcome::Unknown(lost())),
            Fate::ConflictThoughApplied => Decided::Answer(CommitOutcome::Conflict),
            Fate::HangsApplied => Decided::Hang,
            Fate::PropertiesDroppedInSilence => Decided::Answer(committed(shown)),
            Fate::AnsweredWithOldTable => Decided::Answer(committed(base.metadata_ref())),
            _ => Decided::Answer(committed(current)),
        }
    }
}

enum Decided {
    Answer(CommitOutcome),
    Hang,
}

impl Head {
    fn enter(&mut self) {
        self.in_flight += 1;
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
    }

    /// The metadata after the updates, where the requirements hold.
    fn apply(
        &mut self,
        requirements: &[TableRequirement],
        updates: &[TableUpdate],
    ) -> Option<TableMetadataRef> {
        let current = self.metadata.clone()?;
        if requirements.iter().any(|requirement| requirement.check(Some(&current)).is_err()) {
            return None;
        }
        let location = format!("memory:///table/metadata/v{}.metadata.json", self.version);
        let mut builder = current.as_ref().clone().into_builder(Some(location));
        for update in updates {
            builder = update.clone().apply(builder).ok()?;
        }
        let metadata = Arc::new(builder.build().ok()?.metadata);
        self.metadata = Some(metadata.clone());
        self.version += 1;
        Some(metadata)
    }

    fn drop_properties(&mut self, updates: &[TableUpdate]) {
        let set = updates.iter().filter_map(|update| match update {
            TableUpdate::SetProperties { updates } => Some(updates.keys().cloned()),
            _ => None,
        });
        let removals: Vec<String> = set.flatten().collect();
        self.apply(&[], &[TableUpdate::RemoveProperties { removals }]).expect("they were just set");
    }

    fn next_fate(&mut self) -> Fate {
        if let Some(fate) = self.script.pop_front() {
            return fate;
        }
        let Some(random) = &mut self.random else { return Fate::Answered };
        match random.random_range(0..20) {
            0 | 1 => Fate::ReplyLost,
            2 | 3 => Fate::Late,
            4 => Fate::Dropped,
            5 => Fate::ConflictThoughApplied,
            6 => Fate::Conflict,
            7 => Fate::Throttled,
            _ => Fate::Answered,
        }
    }

    fn maybe_land_late(&mut self) {
        let Some(random) = &mut self.random else { return };
        if !self.late.is_empty() && random.random_bool(0.3) {
            let index = random.random_range(0..self.late.len());
            let (requirements, updates) = self.late.swap_remove(index);
            self.apply(&requirements, &updates);
        }
    }
}

fn lost() -> Error {
    Error::new(ErrorKind::Unavailable, "the connection broke")
}

fn not_here<T>() -> iceberg::Result<T> {
    Err(iceberg::Error::new(iceberg::ErrorKind::FeatureUnsupported, "not in this catalog"))
}

#[async_trait]
impl CommitCatalog for ScriptedCatalog {
    async fn commit(
        &self,
        base: &Table,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> CommitOutcome {
        // The caller may go away before the request is applied, and after it.
        self.head().enter();
        tokio::task::yield_now().await;
        let decided = self.decide(base, &requirements, &updates);
        tokio::task::yield_now().await;
        self.head().in_flight -= 1;
        match decided {
            Decided::Answer(outcome) => outcome,
            Decided::Hang => {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                CommitOutcome::Unknown(lost())
            }
        }
    }

    fn client_deletes_metadata(&self) -> bool {
        false
    }
}

#[async_trait]
impl Catalog for ScriptedCatalog {
    async fn load_table(&self, _table: &TableIdent) -> iceberg::Result<Table> {
        tokio::task::yield_now().await;
        {
            let mut head = self.head();
            head.loads += 1;
            head.maybe_land_late();
        }
        self.table()
    }

    async fn list_namespaces(&self, _: Option<&NamespaceIdent>) -> iceberg::Result<Vec<NamespaceIdent>> {
        not_here()
    }

    async fn create_namespace(
        &self,
        _: &NamespaceIdent,
        _: HashMap<String, String>,
    ) -> iceberg::Result<Namespace> {
        not_here()
    }

    async fn get_namespace(&self, _: &NamespaceIdent) -> iceberg::Result<Namespace> {
        not_here()
    }

    async fn namespace_exists(&self, _: &NamespaceIdent) -> iceberg::Result<bool> {
        not_here()
    }

    async fn update_namespace(&self, _: &NamespaceIdent, _: HashMap<String, String>) -> iceberg::Result<()> {
        not_here()
    }

    async fn drop_namespace(&self, _: &NamespaceIdent) -> iceberg::Result<()> {
        not_here()
    }

    async fn list_tables(&self, _: &NamespaceIdent) -> iceberg::Result<Vec<TableIdent>> {
        not_here()
    }

    async fn create_table(&self, _: &NamespaceIdent, _: TableCreation) -> iceberg::Result<Table> {
        not_here()
    }

    async fn drop_table(&self, _: &TableIdent) -> iceberg::Result<()> {
        not_here()
    }

    async fn purge_table(&self, _: &TableIdent) -> iceberg::Result<()> {
        not_here()
    }

    async fn table_exists(&self, _: &TableIdent) -> iceberg::Result<bool> {
        not_here()
    }

    async fn rename_table(&self, _: &TableIdent, _: &TableIdent) -> iceberg::Result<()> {
        not_here()
    }

    async fn register_table(&self, _: &TableIdent, _: String) -> iceberg::Result<Table> {
        not_here()
    }

    async fn update_table(&self, _: TableCommit) -> iceberg::Result<Table> {
        not_here()
    }
}
