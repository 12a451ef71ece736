//! `firn check`: the configuration, and with `--connect` everything it points at, one by one.

use std::collections::{BTreeMap, HashMap};

use clap::Args;
use firn_policies::RewriteOptions;
use firn_table::catalog::{CatalogOptions, IfMissing, OpenCatalog, open_catalog, without_password};
use firn_table::commit::TableHandle;
use firn_table::storage::Stores;
use firn_table::{Error, ErrorKind};
use firn_writer::kafka::cluster::probe;
use firn_writer::kafka::sample::{SampleLimits, sample_messages};
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
    /// One message of each topic is read. In the table's folder, or where it would be made, a small object is written and deleted, and a table property is set and removed again.
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
    checks.add(
        "catalog address",
        context.catalog_options().map(|options| without_password(&options.uri)),
        "set table.catalog",
    );
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

    fn fail(&mut self, what: &str, error: anyhow::Error, advice: &Advice) {
        let silent = exit::code_of(&error) == ExitCode::Unavailable;
        self.add(what, Err(error), if silent { advice.silent } else { advice.refused });
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
        let filled = topic.partitions.iter().any(|p| p.high > p.low);
        checks.add(&format!("topic {}", topic.name), result, "create it, or allow Describe on it");
        if filled {
            let advice =
                "allow Read on the topic, and see that each partition's leader can be reached from here";
            checks.add(&format!("reading {}", topic.name), read_one(context, &topic.name).await, advice);
        }
    }
}

/// Describing a topic is another permission than reading it, and each leader another address than the first broker.
async fn read_one(context: &Context, topic: &str) -> anyhow::Result<String> {
    let kafka = writing::kafka_properties(&context.settings)?;
    let limits = SampleLimits { messages: 1, timeout: writing::REQUEST_TIMEOUT };
    let batches = sample_messages(&kafka, &[topic.to_owned()], limits).await?;
    match batches.iter().any(|batch| !batch.is_empty()) {
        true => Ok("a message was read".to_owned()),
        false => {
            let silent = "the topic has messages and none was delivered in time";
            Err(Error::new(ErrorKind::Unavailable, silent).into())
        }
    }
}

async fn catalog(context: &Context, has_table: bool, checks: &mut Checks) {
    let catalog = match open_catalog_as_it_is(context).await {
        Ok(catalog) => catalog,
        Err(error) if exit::is_not_found(&error) && context.settings.flag("create.enabled") => {
            checks.add("catalog", Ok("not there yet; --create makes it".to_owned()), "");
            if let Ok(options) = context.catalog_options() {
                future_store(&Stores::new(options.properties.clone()), None, context, checks).await;
            }
            return;
        }
        Err(error) => return checks.fail("catalog", error, &CATALOG_ADVICE),
    };
    checks.add("catalog", Ok("answers".to_owned()), "");
    if has_table {
        table(&catalog, context, checks).await;
    }
}

/// The table in the catalog, then its files, then what the catalog keeps of a commit.
async fn table(catalog: &OpenCatalog, context: &Context, checks: &mut Checks) {
    match is_in_catalog(catalog, context).await {
        Ok(true) => {}
        Ok(false) if context.settings.flag("create.enabled") => {
            checks.add("table", Ok("not there yet; --create makes it".to_owned()), "");
            let ident = context.table_ident().ok();
            let namespace = match &ident {
                Some(ident) => catalog.catalog.get_namespace(ident.namespace()).await.ok(),
                None => None,
            };
            let location = namespace.and_then(|found| found.properties().get("location").cloned());
            return future_store(&catalog.stores, location, context, checks).await;
        }
        Ok(false) => {
            let missing = Failure::configuration("the catalog has no table of this name");
            return checks.add("table", Err(missing.into()), "see its name; `firn write --create` makes it");
        }
        Err(error) => return checks.fail("catalog", error, &CATALOG_ADVICE),
    }
    let handle = match open(catalog, context).await {
        Ok(handle) => handle,
        // The catalog knows the table: what is missing or silent is the store of its metadata.
        Err(error) if is_of_the_store(&error) => return checks.fail("store", error, &STORE_ADVICE),
        Err(error) => return checks.add("table", Err(error), "firn cannot work on this table as it is"),
    };
    let location = handle.table().metadata().location().to_owned();
    checks.add("table", Ok(location.clone()), "");
    let metadata = format!("{}/metadata", location.trim_end_matches('/'));
    match store(handle.stores(), &metadata).await {
        Ok(done) => checks.add("store", Ok(done), ""),
        Err(error) => return checks.fail("store", error.into(), &STORE_ADVICE),
    }
    match properties(&handle).await {
        Ok(done) => checks.add("properties", Ok(done), ""),
        Err(error) => checks.fail("properties", error.into(), &PROPERTIES_ADVICE),
    }
}

/// The store where a table that is not there yet would be made: below its namespace or the warehouse. A REST catalog
/// may keep that to itself until the table is created.
async fn future_store(stores: &Stores, namespace: Option<String>, context: &Context, checks: &mut Checks) {
    let warehouse = || context.catalog_options().ok().and_then(|options| warehouse_location(&options));
    let Some(location) = namespace.or_else(warehouse) else {
        let told = "not tested: the catalog names the location when the table is made";
        return checks.add("store", Ok(told.to_owned()), "");
    };
    match store(stores, &location).await {
        Ok(done) => checks.add("store", Ok(format!("{location}: {done}")), ""),
        Err(error) => checks.fail("store", error.context(&location).into(), &STORE_ADVICE),
    }
}

/// The warehouse of a SQL catalog as a location; to a REST catalog it is a name.
fn warehouse_location(options: &CatalogOptions) -> Option<String> {
    let warehouse = options.warehouse.as_deref().filter(|_| !options.uri.starts_with("http"))?;
    if warehouse.contains("://") {
        return Some(warehouse.to_owned());
    }
    let path = std::path::absolute(warehouse.strip_prefix("file:").unwrap_or(warehouse)).ok()?;
    Some(format!("file://{}", path.display()))
}

/// What to do where something is set wrong or not allowed, and where it does not answer.
struct Advice {
    refused: &'static str,
    silent: &'static str,
}

const CATALOG_ADVICE: Advice = Advice {
    refused: "mend the catalog's address, name, user and password, and what the user may do there",
    silent: "see that the catalog's server runs and can be reached from here",
};
const STORE_ADVICE: Advice = Advice {
    refused: "mend the store's properties and keys, and allow reading, writing and deleting below the table",
    silent: "see that the store's endpoint is right and can be reached from here",
};
const PROPERTIES_ADVICE: Advice = Advice {
    refused: "allow commits to the table, or use a catalog that keeps table properties",
    silent: "see that the catalog's server runs and can be reached from here",
};

/// The catalog; a check makes none, also where a writer would.
async fn open_catalog_as_it_is(context: &Context) -> anyhow::Result<OpenCatalog> {
    let options = CatalogOptions { if_missing: IfMissing::Refuse, ..context.catalog_options()? };
    Ok(open_catalog(&options, None).await?)
}

async fn is_in_catalog(catalog: &OpenCatalog, context: &Context) -> anyhow::Result<bool> {
    let found = catalog.catalog.table_exists(&context.table_ident()?).await;
    Ok(found.map_err(Error::from)?)
}

async fn open(catalog: &OpenCatalog, context: &Context) -> anyhow::Result<TableHandle> {
    let ident = context.table_ident()?;
    let branch = context.settings.required("table.branch")?;
    Ok(TableHandle::open(catalog.catalog.clone(), catalog.stores.clone(), ident, branch).await?)
}

/// Whether a table that its catalog knows could not be opened because of its files.
fn is_of_the_store(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<Error>().map(Error::kind);
    matches!(kind, Some(ErrorKind::Configuration | ErrorKind::NotFound | ErrorKind::Unavailable))
}

/// Writes, reads and deletes an object in a folder.
async fn store(stores: &Stores, folder: &str) -> firn_table::Result<String> {
    let object = format!("{}/firn-check-{}", folder.trim_end_matches('/'), Uuid::now_v7());
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
