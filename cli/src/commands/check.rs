//! `firn check`: the configuration, and with `--connect` everything it points at, one by one.

use std::collections::{BTreeMap, HashMap};

use clap::Args;
use firn_policies::RewriteOptions;
use firn_table::catalog::{CatalogOptions, IfMissing, OpenCatalog, open_catalog};
use firn_table::commit::TableHandle;
use firn_table::storage::Stores;
use firn_table::{Error, ErrorKind};
use firn_writer::kafka::cluster::probe;
use serde_json::json;
use uuid::Uuid;

use crate::args::TableArgs;
use crate::commands::write::WriteSections;
use crate::compaction::plan_options;
use crate::config::sources::Given;
use crate::context::Context;
use crate::exit::{self, ExitCode, Failure};
use crate::flags::Flags;
use crate::render::listing::{Listing, Unit};
use crate::writing;

/// What to check.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    flags: Flags<WriteSections>,
    /// Also ask the broker, the catalog and the store, and try what a writer must be allowed to do
    ///
    /// In the table's folder a small object is written and deleted, and a table property is set and removed again.
    #[arg(long)]
    connect: bool,
}

impl CheckArgs {
    /// What the flags set.
    pub(crate) fn given(&self) -> Vec<Given> {
        [self.table.given(), self.flags.given()].concat()
    }
}

/// Checks and prints; the code is that of the first failure.
pub(crate) async fn run(args: &CheckArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let mut checks = Checks::default();
    checks.add("settings", Ok("every setting is known and of its kind".to_owned()), "");
    let uses_kafka =
        context.settings.text("kafka.brokers").is_some() || !context.settings.list("kafka.topics").is_empty();
    if uses_kafka {
        checks.add("writer", writer(context), "mend [kafka] and [write]");
    }
    checks.add("compaction options", compaction(context), "mend compact.options");
    let has_table = context.settings.text("table.name").is_some();
    if has_table {
        checks.add(
            "table name",
            context.table_ident().map(|ident| ident.to_string()),
            "write it as namespace.name",
        );
    }
    checks.add("catalog address", context.catalog_options().map(|options| options.uri), "set table.catalog");
    if args.connect && checks.sound() {
        if uses_kafka {
            broker(context, &mut checks).await;
        }
        catalog(context, has_table, &mut checks).await;
    }
    context.output.listing(&checks.listing)?;
    Ok(checks.code)
}

/// What was checked so far.
#[derive(Debug)]
struct Checks {
    listing: Listing,
    code: ExitCode,
}

impl Default for Checks {
    fn default() -> Self {
        let columns = [
            ("check", Unit::Plain),
            ("result", Unit::Plain),
            ("detail", Unit::Plain),
            ("advice", Unit::Plain),
        ];
        Self { listing: Listing::of(&columns), code: ExitCode::Done }
    }
}

impl Checks {
    fn add(&mut self, what: &str, result: anyhow::Result<String>, advice: &str) {
        match result {
            Ok(detail) => self.listing.push(vec![json!(what), json!("ok"), json!(detail), json!("")]),
            Err(error) => {
                if self.sound() {
                    self.code = exit::code_of(&error);
                }
                self.listing.push(vec![
                    json!(what),
                    json!("FAILED"),
                    json!(exit::message(&error)),
                    json!(advice),
                ]);
            }
        }
    }

    fn sound(&self) -> bool {
        self.code == ExitCode::Done
    }
}

fn writer(context: &Context) -> anyhow::Result<String> {
    let config = writing::writer_config(&context.settings)?;
    config.validate()?;
    Ok(format!("writer {} reads {}", config.name, config.topics.join(", ")))
}

fn compaction(context: &Context) -> anyhow::Result<String> {
    let options = plan_options(&context.settings)?;
    let parsed = RewriteOptions::parse(&HashMap::new(), &options.overrides)
        .map_err(|problems| Failure::configuration(problems.to_string()))?;
    Ok(format!("target of {} bytes where the table says nothing else", parsed.sizes.target_bytes))
}

async fn broker(context: &Context, checks: &mut Checks) {
    let asked = async {
        let kafka = writing::kafka_properties(&context.settings)?;
        let topics = writing::topics(&context.settings)?;
        anyhow::Ok(probe(&kafka, &topics, writing::REQUEST_TIMEOUT).await?)
    };
    let cluster = match asked.await {
        Ok(cluster) => cluster,
        Err(error) => {
            checks.add(
                "broker",
                Err(error),
                "see that kafka.brokers answers from here, and kafka.properties for TLS",
            );
            return;
        }
    };
    let id = cluster.cluster_id.as_deref().unwrap_or("without an id");
    checks.add("broker", Ok(format!("cluster {id}, {} brokers", cluster.brokers.len())), "");
    for topic in &cluster.topics {
        let result = if topic.exists() {
            let messages: i64 = topic.partitions.iter().map(|p| p.high - p.low).sum();
            Ok(format!("{} partitions, {messages} offsets", topic.partitions.len()))
        } else {
            Err(Failure::configuration(
                "it does not exist, or may not be described: a writer would wait for it",
            )
            .into())
        };
        checks.add(&format!("topic {}", topic.name), result, "create it, or allow Describe and Read on it");
    }
}

async fn catalog(context: &Context, has_table: bool, checks: &mut Checks) {
    let catalog = match open_catalog_as_it_is(context).await {
        Ok(catalog) => catalog,
        Err(error) if exit::is_not_found(&error) && context.settings.flag("create.enabled") => {
            checks.add("catalog", Ok("not there yet; --create makes it".to_owned()), "");
            return;
        }
        Err(error) => {
            checks.add(
                "catalog",
                Err(error),
                "see that the address is right and its file or server can be reached",
            );
            return;
        }
    };
    checks.add("catalog", Ok("answers".to_owned()), "");
    if !has_table {
        return;
    }
    match open(&catalog, context).await {
        Ok(Some(handle)) => {
            let table = handle.table();
            checks.add("table", Ok(table.metadata().location().to_owned()), "");
            let stored = store(handle.stores(), table.metadata().location()).await;
            checks.add(
                "store",
                stored.map_err(Into::into),
                "allow reading, writing and deleting below the table",
            );
            let kept = properties(&handle).await;
            checks.add("properties", kept.map_err(Into::into), "use a catalog that keeps table properties");
        }
        Ok(None) => checks.add("table", Ok("not there yet; --create makes it".to_owned()), ""),
        Err(error) => checks.add("table", Err(error), "see its name; `firn write --create` makes it"),
    }
}

/// The catalog; a check makes none, also where a writer would.
async fn open_catalog_as_it_is(context: &Context) -> anyhow::Result<OpenCatalog> {
    let options = CatalogOptions { if_missing: IfMissing::Refuse, ..context.catalog_options()? };
    Ok(open_catalog(&options, None).await?)
}

/// The table; nothing where it is yet to be created.
async fn open(catalog: &OpenCatalog, context: &Context) -> anyhow::Result<Option<TableHandle>> {
    let ident = context.table_ident()?;
    let branch = context.settings.required("table.branch")?;
    match TableHandle::open(catalog.catalog.clone(), catalog.stores.clone(), ident, branch).await {
        Err(error) if error.kind() == ErrorKind::NotFound && context.settings.flag("create.enabled") => {
            Ok(None)
        }
        opened => Ok(Some(opened?)),
    }
}

/// Writes, reads and deletes an object where the table's metadata is.
async fn store(stores: &Stores, location: &str) -> firn_table::Result<String> {
    let object = format!("{}/metadata/firn-check-{}", location.trim_end_matches('/'), Uuid::now_v7());
    let content: &[u8] = b"written by `firn check --connect`; may be deleted";
    stores.write(&object, content.into()).await.map_err(|error| error.context("writing"))?;
    let read = stores.read(&object).await.map_err(|error| error.context("reading"));
    stores.delete(&object).await.map_err(|error| error.context("deleting"))?;
    if read? != content {
        return Err(Error::new(ErrorKind::Data, "an object was not read as it was written"));
    }
    Ok("an object was written, read and deleted".to_owned())
}

/// Sets a property, looks whether the catalog kept it, and removes it: the ledger is a property.
async fn properties(handle: &TableHandle) -> firn_table::Result<String> {
    let name = format!("firn.check.{}", Uuid::now_v7());
    let set = BTreeMap::from([(name.clone(), "1".to_owned())]);
    handle.set_properties(set, Vec::new()).await?;
    let kept = handle.refresh().await?.metadata().properties().contains_key(&name);
    handle.set_properties(BTreeMap::new(), vec![name]).await?;
    if kept {
        return Ok("a property was set, found and removed".to_owned());
    }
    Err(Error::new(
        ErrorKind::Ledger,
        "the catalog dropped a table property: the ledger would be lost, and with it exactly-once",
    ))
}
