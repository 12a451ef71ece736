//! A table, the proxy before its catalog or its store, and processes that work through the proxy.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use firn_compactor::plan::PlanOptions;
use firn_compactor::{CompactOptions, RunReport, Silent, compact};
use firn_table::catalog::{CatalogOptions, parse_table_ident};
use firn_table::commit::{CommitLimits, TableHandle};
use firn_tests::appender::{self, Appender, id};
use firn_tests::chaos::Chaos;
use firn_tests::checks::After;
use firn_tests::rows;
use firn_tests::server::{Kind, properties};
use firn_tests::warehouse::Warehouse;
use iceberg::spec::Operation;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Commits of a REST catalog.
pub(super) const COMMITS: &str = "POST /v1/**/tables/*";

/// How long a process waits for one answer here.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_millis(1_500);

/// A table in a catalog, reached through the proxy and past it.
#[derive(Debug)]
pub(super) struct Behind {
    /// Past the proxy.
    pub(super) direct: Warehouse,
    /// Through the proxy.
    pub(super) through: Warehouse,
    pub(super) chaos: Chaos,
    pub(super) table: String,
}

impl Behind {
    /// A table in the REST catalog, the proxy with these rules before it.
    pub(super) async fn catalog(test: &str, rules: &[&str]) -> Result<Self> {
        let uri = Kind::Rest.shared()?;
        let direct = Warehouse::on(test, CatalogOptions { uri: uri.clone(), ..CatalogOptions::default() })?;
        let chaos = Chaos::before(&uri, direct.folder(), "chaos", rules).await?;
        let through = direct.by(chaos.address());
        Self::with_table(test, direct, through, chaos).await
    }

    /// A table in a SQLite catalog whose files are in the S3 server, the proxy with these rules before that.
    pub(super) async fn store(test: &str, rules: &[&str]) -> Result<Self> {
        let mut properties = properties(&Kind::S3.shared()?);
        let bucket = properties.remove("bucket").context("a bucket")?;
        let location = format!("s3://{bucket}/{test}-{}", Uuid::new_v4().simple());
        let endpoint = properties["s3.endpoint"].clone();
        let local = Warehouse::new(test)?;
        let options = CatalogOptions { warehouse: Some(location), properties, ..local.options() };
        let chaos = Chaos::before(&endpoint, local.folder(), "chaos", rules).await?;
        let mut through = options.clone();
        through.properties.insert("s3.endpoint".to_owned(), chaos.address().to_owned());
        Self::with_table(test, local.with(options), local.with(through), chaos).await
    }

    async fn with_table(test: &str, direct: Warehouse, through: Warehouse, chaos: Chaos) -> Result<Self> {
        let table = format!("{}_{}.t", test.replace('-', "_"), &Uuid::new_v4().simple().to_string()[..8]);
        appender::create(direct.create().await?.catalog.as_ref(), &table).await?;
        Ok(Self { direct, through, chaos, table })
    }

    /// A process that has just started, and works through the proxy.
    pub(super) async fn process(&self) -> Result<Appender> {
        self.process_on("main", "firn").await
    }

    /// The same, on a branch, of a writer of this name.
    pub(super) async fn process_on(&self, branch: &str, writer: &str) -> Result<Appender> {
        let opened = self.through.open().await?;
        let ident = parse_table_ident(&self.table)?;
        let handle = TableHandle::open(opened.catalog, opened.stores, ident, branch).await?;
        let limits = CommitLimits {
            max_conflicts: 20,
            min_wait: Duration::from_millis(5),
            max_wait: Duration::from_millis(200),
            request_timeout: REQUEST_TIMEOUT,
            deadline: Some(Duration::from_secs(60)),
        };
        Appender::new(handle.with_limits(limits), writer)
    }

    /// Compacts everything into files of up to 64 MiB, two inputs being enough.
    pub(super) async fn compact(&self, process: &Appender) -> Result<RunReport> {
        let overrides = [("target-file-size-bytes", "67108864"), ("min-input-files", "2")];
        let overrides = overrides.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let plan = PlanOptions { overrides, ..PlanOptions::default() };
        let options = CompactOptions { plan, ..CompactOptions::default() };
        Ok(compact(&process.handle, &options, Arc::new(Silent), CancellationToken::new()).await?)
    }

    /// Fails unless the table holds the rows of these offsets of partition 0, each once, in so many appends, and
    /// nothing is wrong with it.
    pub(super) async fn holds(&self, offsets: Range<i64>, appends: usize, after: After) -> Result<()> {
        self.direct.check(&self.table, after).await?;
        let (table, stores) = self.direct.table(&self.table).await?;
        let found = rows::ids(&table, &stores).await?;
        let expected: BTreeMap<i64, u64> = offsets.map(|offset| (id(0, offset), 1)).collect();
        ensure!(found == expected, "{} rows, expected {}: {found:?}", found.len(), expected.len());
        let snapshots = table.metadata().snapshots();
        let counted = snapshots.filter(|snapshot| snapshot.summary().operation == Operation::Append).count();
        ensure!(counted == appends, "{counted} appends, expected {appends}");
        Ok(())
    }
}
