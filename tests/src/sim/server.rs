//! The catalog as a server has it: one head per table, compare and set, metadata files in the store. No faults, no
//! waiting: whatever it does is done in one step.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use firn_table::storage::Stores;
use futures::FutureExt;
use iceberg::spec::{TableMetadata, TableMetadataBuilder, TableMetadataRef};
use iceberg::table::Table;
use iceberg::{Runtime, TableCreation, TableIdent, TableRequirement, TableUpdate};
use serde_json::Value;
use uuid::Builder;

use super::dice::Dice;

/// Where everything is.
pub const WAREHOUSE: &str = "memory://lake";

/// Has old metadata files deleted after each commit, as a server does where the table asks for it.
const DELETE_AFTER_COMMIT: &str = "write.metadata.delete-after-commit.enabled";

/// The catalog.
#[derive(Debug)]
pub struct Server {
    stores: Stores,
    dice: Dice,
    heads: Mutex<BTreeMap<TableIdent, Head>>,
}

/// A table as it is now.
#[derive(Debug, Clone)]
pub struct Head {
    /// Its metadata.
    pub metadata: TableMetadataRef,
    /// The metadata file.
    pub location: String,
    version: u64,
}

/// Why a commit was not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such table.
    Missing,
    /// A requirement does not hold.
    Requirement(String),
    /// An update makes no valid table of the head.
    Update(String),
}

/// A commit that was applied.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The head before it.
    pub before: Head,
    /// The head after it.
    pub after: Head,
    /// Metadata files that the server deleted, since they fell out of the log.
    pub dropped: Vec<String>,
}

impl Server {
    pub(super) fn new(stores: Stores, dice: Dice) -> Self {
        Self { stores, dice, heads: Mutex::default() }
    }

    fn heads(&self) -> MutexGuard<'_, BTreeMap<TableIdent, Head>> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The head of a table.
    #[must_use]
    pub fn head(&self, ident: &TableIdent) -> Option<Head> {
        self.heads().get(ident).cloned()
    }

    /// A table with files that are read without faults.
    #[must_use]
    pub fn table(&self, ident: &TableIdent) -> Option<Table> {
        Some(table_of(ident, &self.head(ident)?, &self.stores))
    }

    /// Creates a table.
    ///
    /// # Errors
    /// It exists, or it is no valid table.
    pub fn create(
        &self,
        ident: &TableIdent,
        mut creation: TableCreation,
        now_ms: i64,
    ) -> iceberg::Result<Head> {
        let mut heads = self.heads();
        if heads.contains_key(ident) {
            return Err(iceberg::Error::new(iceberg::ErrorKind::TableAlreadyExists, "it exists"));
        }
        let unique = self.unique();
        let namespace = ident.namespace().to_url_string();
        creation.location.get_or_insert(format!("{WAREHOUSE}/{namespace}/{}-{unique:.8}", ident.name()));
        let built = TableMetadataBuilder::from_table_creation(creation)?.assign_uuid(unique).build()?;
        let metadata = at_time(built.metadata, now_ms);
        let head = self.store(metadata, 0);
        heads.insert(ident.clone(), head.clone());
        Ok(head)
    }

    /// Drops a table and leaves its files.
    pub fn drop_table(&self, ident: &TableIdent) -> Option<Head> {
        self.heads().remove(ident)
    }

    /// Applies updates where the requirements hold for the head.
    ///
    /// # Errors
    /// Why nothing was applied.
    pub fn commit(
        &self,
        ident: &TableIdent,
        requirements: &[TableRequirement],
        updates: &[TableUpdate],
        now_ms: i64,
    ) -> Result<Applied, Refusal> {
        let mut heads = self.heads();
        let before = heads.get(ident).cloned().ok_or(Refusal::Missing)?;
        for requirement in requirements {
            requirement.check(Some(&before.metadata)).map_err(|e| Refusal::Requirement(e.to_string()))?;
        }
        let built = apply(&before, updates).map_err(|e| Refusal::Update(e.to_string()))?;
        // The builder takes the machine's clock where no snapshot tells the time.
        let timeless = !updates.iter().any(|update| matches!(update, TableUpdate::AddSnapshot { .. }));
        let last = before.metadata.last_updated_ms();
        let metadata = if timeless { at_time(built.metadata, now_ms.max(last + 1)) } else { built.metadata };
        let dropped = if deletes_after_commit(&metadata) {
            let kept: Vec<&String> = metadata.metadata_log().iter().map(|log| &log.metadata_file).collect();
            let dropped = built.expired_metadata_logs.into_iter().map(|log| log.metadata_file);
            dropped.filter(|file| !kept.contains(&file) && *file != before.location).collect()
        } else {
            Vec::new()
        };
        let after = self.store(metadata, before.version + 1);
        heads.insert(ident.clone(), after.clone());
        for file in &dropped {
            at_once(self.stores.delete(file)).expect("the store in memory deletes what it has");
        }
        Ok(Applied { before, after, dropped })
    }

    fn store(&self, metadata: TableMetadata, version: u64) -> Head {
        let unique = self.unique();
        let location = format!("{}/metadata/{version:05}-{unique}.metadata.json", metadata.location());
        let bytes = serde_json::to_vec(&metadata).expect("metadata that was built can be serialised");
        at_once(self.stores.write(&location, Bytes::from(bytes))).expect("the store in memory takes all");
        Head { metadata: Arc::new(metadata), location, version }
    }

    fn unique(&self) -> uuid::Uuid {
        let high = u128::from(self.dice.number());
        Builder::from_random_bytes((high << 64 | u128::from(self.dice.number())).to_be_bytes()).into_uuid()
    }
}

/// A table whose files are read through these stores.
#[must_use]
pub fn table_of(ident: &TableIdent, head: &Head, stores: &Stores) -> Table {
    Table::builder()
        .identifier(ident.clone())
        .metadata(head.metadata.clone())
        .metadata_location(head.location.clone())
        .file_io(stores.file_io())
        .runtime(Runtime::try_current().expect("the run is in a runtime"))
        .disable_cache()
        .build()
        .expect("all parts of a table are given")
}

fn apply(head: &Head, updates: &[TableUpdate]) -> iceberg::Result<iceberg::spec::TableMetadataBuildResult> {
    let mut builder = head.metadata.as_ref().clone().into_builder(Some(head.location.clone()));
    for update in updates {
        builder = update.clone().apply(builder)?;
    }
    builder.build()
}

/// The same metadata, changed last at this time.
fn at_time(metadata: TableMetadata, now_ms: i64) -> TableMetadata {
    let wrong = metadata.last_updated_ms();
    let mut json = serde_json::to_value(&metadata).expect("metadata that was built can be serialised");
    json["last-updated-ms"] = now_ms.into();
    if let Some(Value::Array(log)) = json.get_mut("snapshot-log") {
        for entry in log.iter_mut().filter(|entry| entry["timestamp-ms"] == wrong) {
            entry["timestamp-ms"] = now_ms.into();
        }
    }
    serde_json::from_value(json).expect("metadata stays valid at another time")
}

fn deletes_after_commit(metadata: &TableMetadata) -> bool {
    metadata.properties().get(DELETE_AFTER_COMMIT).is_some_and(|value| value == "true")
}

/// The result of a future of the store in memory, which never waits.
pub(super) fn at_once<T>(future: impl Future<Output = T>) -> T {
    tokio::task::unconstrained(future).now_or_never().expect("the store in memory does not wait")
}

/// Properties of namespaces: there are none.
pub(super) fn no_properties() -> HashMap<String, String> {
    HashMap::new()
}
