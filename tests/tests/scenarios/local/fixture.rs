//! A table, its catalog with faults, and the processes that work on it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use firn_compactor::plan::PlanOptions;
use firn_compactor::{CompactOptions, RunReport, Silent, compact};
use firn_table::catalog::{CommitCatalog, parse_table_ident};
use firn_table::commit::{CommitLimits, TableHandle};
use firn_table::storage::Stores;
use firn_tests::appender::{self, Appender, id};
use firn_tests::checks::After;
use firn_tests::faults::{CommitFault, FaultyCatalog, Schedule};
use firn_tests::rows;
use firn_tests::warehouse::Warehouse;
use tokio_util::sync::CancellationToken;

pub(super) const TABLE: &str = "db.t";

/// Conflicts after which the processes of a fixture give up.
pub(super) const MAX_CONFLICTS: u32 = 10;

/// A table `db.t (id long, text string)` in a warehouse of its own, and a catalog with faults before it.
pub(super) struct Fixture {
    pub(super) warehouse: Warehouse,
    pub(super) catalog: Arc<FaultyCatalog>,
    pub(super) faults: Schedule<CommitFault>,
    pub(super) stores: Stores,
}

impl Fixture {
    pub(super) async fn new(test: &str) -> Result<Self> {
        let warehouse = Warehouse::of_run(test)?;
        let opened = warehouse.create().await?;
        appender::create(opened.catalog.as_ref(), TABLE).await?;
        let faults = Schedule::none();
        let catalog = Arc::new(FaultyCatalog::new(opened.catalog, faults.clone()));
        Ok(Self { warehouse, catalog, faults, stores: opened.stores })
    }

    /// A process that has just started. It gives up after ten conflicts in a row or some seconds.
    pub(super) async fn process(&self) -> Result<Appender> {
        self.process_of("firn").await
    }

    /// The same, of a writer of this name.
    pub(super) async fn process_of(&self, writer: &str) -> Result<Appender> {
        let catalog: Arc<dyn CommitCatalog> = self.catalog.clone();
        let handle =
            TableHandle::open(catalog, self.stores.clone(), parse_table_ident(TABLE)?, "main").await?;
        let limits = CommitLimits {
            max_conflicts: MAX_CONFLICTS,
            min_wait: Duration::from_millis(1),
            max_wait: Duration::from_millis(10),
            request_timeout: Duration::from_secs(2),
            deadline: Some(Duration::from_secs(20)),
        };
        Appender::new(handle.with_limits(limits), writer)
    }

    /// Fails unless the rows of these offsets of partition 0 are in the table once, and all is well with it.
    pub(super) async fn holds(&self, offsets: Range<i64>, after: After) -> Result<()> {
        self.holds_all(&BTreeMap::from([(0, offsets)]), after).await
    }

    /// The same for several partitions.
    pub(super) async fn holds_all(&self, ranges: &BTreeMap<i32, Range<i64>>, after: After) -> Result<()> {
        self.warehouse.check(TABLE, after).await?;
        let (table, stores) = self.warehouse.table(TABLE).await?;
        let found = rows::ids(&table, &stores).await?;
        let ids = ranges.iter().flat_map(|(partition, offsets)| offsets.clone().map(|o| id(*partition, o)));
        let expected: BTreeMap<i64, u64> = ids.map(|id| (id, 1)).collect();
        ensure!(found == expected, "{} rows, expected {}: {found:?}", found.len(), expected.len());
        Ok(())
    }

    /// Compacts everything into files of up to 64 MiB, two inputs being enough.
    pub(super) async fn compact(&self, process: &Appender) -> Result<RunReport> {
        Ok(compact(&process.handle, &options(), Arc::new(Silent), CancellationToken::new()).await?)
    }
}

/// Two small files are worth a rewrite.
pub(super) fn options() -> CompactOptions {
    let overrides = [("target-file-size-bytes", "67108864"), ("min-input-files", "2")];
    let overrides = overrides.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    CompactOptions { plan: PlanOptions { overrides, ..PlanOptions::default() }, ..CompactOptions::default() }
}
