//! The engine: one deed at a time, decided anew on each base.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use async_trait::async_trait;
use firn_table::catalog::{CommitCatalog, CommitOutcome};
use firn_table::storage::Stores;
use iceberg::table::Table;
use iceberg::{TableIdent, TableRequirement};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use uuid::Uuid;

use super::reader::Reader;
use super::snapshot::Change;

/// Bases that are tried before a deed is given up.
const ATTEMPTS: u32 = 30;

/// Milliseconds since the epoch.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Something that an engine does to a table.
#[async_trait]
pub trait Deed: fmt::Debug + Send + Sync {
    /// What to change on this base; `None` where there is nothing to do. Asked again on each base.
    async fn decide(&self, engine: &mut Engine, base: &Table) -> Result<Option<Change>>;
}

/// What became of a deed.
#[derive(Debug)]
pub enum Outcome {
    /// The table after it.
    Done(Box<Table>),
    /// There was nothing to do.
    Nothing,
    /// The catalog said too often that it was not applied.
    GaveUp,
    /// A change without a snapshot of which nobody knows whether it landed.
    Unknown,
}

/// A process of another engine.
pub struct Engine {
    pub(super) catalog: Arc<dyn CommitCatalog>,
    pub(super) stores: Stores,
    pub(super) ident: TableIdent,
    pub(super) random: ChaCha8Rng,
    pub(super) clock: Clock,
    /// Its own reader.
    pub reader: Reader,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("table", &self.ident).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine on branch `main` of a table. All its choices follow from the seed.
    pub fn new(
        catalog: Arc<dyn CommitCatalog>,
        stores: Stores,
        ident: TableIdent,
        seed: u64,
        clock: Clock,
    ) -> Self {
        let reader = Reader::new(&stores);
        Self { catalog, stores, ident, random: ChaCha8Rng::seed_from_u64(seed), clock, reader }
    }

    /// The head of the table.
    pub async fn table(&self) -> Result<Table> {
        Ok(self.catalog.load_table(&self.ident).await?)
    }

    /// Does a deed, and fails where it is not done.
    pub async fn must(&mut self, deed: &dyn Deed) -> Result<Table> {
        match self.perform(deed).await? {
            Outcome::Done(table) => Ok(*table),
            other => bail!("{deed:?} was not done: {other:?}"),
        }
    }

    /// Does a deed on the head, deciding again on each new one until it lands.
    pub async fn perform(&mut self, deed: &dyn Deed) -> Result<Outcome> {
        let mut maybe_landed: HashSet<i64> = HashSet::new();
        for attempt in 0..ATTEMPTS {
            let base = match self.table().await {
                Ok(base) => base,
                Err(_) if attempt + 1 < ATTEMPTS => {
                    pause(attempt).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if maybe_landed.iter().any(|id| base.metadata().snapshot_by_id(*id).is_some()) {
                return Ok(Outcome::Done(Box::new(base)));
            }
            let Some(change) = deed.decide(self, &base).await? else { return Ok(Outcome::Nothing) };
            let request = self.request(&base, change).await?;
            match self.catalog.commit(&base, requirements(&base), request.updates).await {
                CommitOutcome::Committed(table) => return Ok(Outcome::Done(table)),
                CommitOutcome::Conflict | CommitOutcome::NotApplied { .. } => {}
                CommitOutcome::Unknown(_) => match request.snapshot_id {
                    Some(id) => drop(maybe_landed.insert(id)),
                    None => return Ok(Outcome::Unknown),
                },
                CommitOutcome::Rejected(error) => bail!("{deed:?} was rejected: {error}"),
            }
            pause(attempt).await;
        }
        Ok(Outcome::GaveUp)
    }

    pub(super) fn uuid(&mut self) -> Uuid {
        Uuid::from_u128(rand::Rng::random(&mut self.random))
    }

    pub(super) fn snapshot_id(&mut self) -> i64 {
        rand::Rng::random_range(&mut self.random, 1..i64::MAX)
    }
}

async fn pause(attempt: u32) {
    tokio::time::sleep(Duration::from_millis(u64::from(attempt) * 5)).await;
}

/// The table, the head of `main`, its schema and its spec are those of the base.
fn requirements(base: &Table) -> Vec<TableRequirement> {
    let metadata = base.metadata();
    vec![
        TableRequirement::UuidMatch { uuid: metadata.uuid() },
        TableRequirement::RefSnapshotIdMatch {
            r#ref: "main".to_owned(),
            snapshot_id: metadata.current_snapshot_id(),
        },
        TableRequirement::CurrentSchemaIdMatch { current_schema_id: metadata.current_schema_id() },
        TableRequirement::DefaultSpecIdMatch { default_spec_id: metadata.default_partition_spec_id() },
    ]
}
