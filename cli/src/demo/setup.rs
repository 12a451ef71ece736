//! Everything the demo needs before the first message: directory, broker, topic, catalog, table.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use chrono::Local;
use firn_compactor::{CompactOptions, PlanOptions, Resources};
use firn_table::catalog::{CatalogOptions, IfMissing, open_catalog, parse_table_ident};
use firn_table::commit::TableHandle;
use firn_writer::create::{NewTable, create_table};
use firn_writer::generate::Template;
use firn_writer::kafka::cluster::{TopicSpec, create_topic, delete_topic};
use uuid::Uuid;

use crate::context::Context;
use crate::exit::Failure;
use crate::writing;

/// The table of the demo.
const TABLE: &str = "demo.events";
/// Files of a minute come to tens of megabytes, so "large" is scaled down with them. A table of a real stream keeps
/// Iceberg's 512 MiB.
const TARGET_FILE_BYTES: u64 = 32 << 20;
/// Snapshots are kept, so that the files as the writer made them can be scanned at the end.
const RETENTION_MS: u64 = 4 * 3_600_000;
/// What the rewriter may use beside writer and broker.
const COMPACTION_MEMORY_BYTES: usize = 512 << 20;

/// What the demo plays on.
#[derive(Debug)]
pub(crate) struct Stage {
    /// Where catalog and warehouse are.
    pub directory: PathBuf,
    /// The catalog's URI.
    pub catalog_uri: String,
    /// librdkafka's properties.
    pub kafka: BTreeMap<String, String>,
    /// The topic.
    pub topic: String,
    /// Its partitions.
    pub partitions: i32,
    /// What messages look like.
    pub template: Template,
    /// The table.
    pub handle: TableHandle,
    /// How it is compacted.
    pub compaction: CompactOptions,
    /// How long messages are produced.
    pub seconds: u64,
    /// Messages per second.
    pub rate: u64,
    broker: Broker,
}

/// Whose broker it is.
#[derive(Debug)]
enum Broker {
    /// Ours, in this process: it ends when the stage does.
    #[cfg(feature = "embedded-broker")]
    Embedded(#[expect(dead_code, reason = "it runs as long as it is held")] crate::broker::EmbeddedBroker),
    /// Someone else's: the demo's topic is deleted in the end.
    Foreign,
}

impl Stage {
    /// Prepares everything.
    pub(crate) async fn set(context: &Context) -> anyhow::Result<Self> {
        let settings = &context.settings;
        let directory = new_directory(settings.path("demo.directory"))?;
        let number = |path: &str| settings.number(path).ok_or_else(|| crate::config::settings::missing(path));
        let partitions = i32::try_from(number("demo.partitions")?)?;
        let (broker, kafka) = broker(context).await?;
        let topic = format!("firn-demo-{}", Uuid::new_v4().simple());
        let spec = match broker {
            Broker::Foreign => TopicSpec { replication: -1, ..TopicSpec::new(&topic, partitions) },
            #[cfg(feature = "embedded-broker")]
            Broker::Embedded(_) => TopicSpec::new(&topic, partitions),
        };
        create_topic(&kafka, &spec).await?;
        let template = Template::default_events();
        let catalog_uri = format!("sqlite:{}", directory.join("catalog.db").display());
        let handle = create(&directory, &catalog_uri, &template).await?;
        Ok(Self {
            directory,
            catalog_uri,
            kafka,
            topic,
            partitions,
            template,
            handle,
            compaction: CompactOptions {
                plan: PlanOptions::default(),
                resources: Resources { memory_bytes: COMPACTION_MEMORY_BYTES, ..Resources::default() },
                ..CompactOptions::default()
            },
            seconds: number("demo.seconds")?,
            rate: number("demo.rate")?,
            broker,
        })
    }

    /// The size from which a file is no small one any more: Iceberg's minimum for this target.
    pub(crate) fn small_below_bytes() -> u64 {
        TARGET_FILE_BYTES / 4 * 3
    }

    /// Leaves nothing behind on a broker that is not ours.
    pub(crate) async fn clear(&self) {
        if matches!(self.broker, Broker::Foreign)
            && let Err(error) = delete_topic(&self.kafka, &self.topic).await
        {
            tracing::warn!(topic = self.topic, %error, "the demo's topic could not be deleted");
        }
    }
}

/// A new folder, or an existing empty one; absolute, since other programs are pointed at it.
fn new_directory(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let directory =
        named.unwrap_or_else(|| PathBuf::from(format!("firn-demo-{}", Local::now().format("%Y%m%d-%H%M%S"))));
    let what = || format!("the directory `{}` cannot be used", directory.display());
    let failed = |error: std::io::Error| Failure::configuration(error.to_string());
    std::fs::create_dir_all(&directory).map_err(failed).with_context(what)?;
    if std::fs::read_dir(&directory).map_err(failed).with_context(what)?.next().is_some() {
        return Err(Failure::configuration(format!(
            "the directory `{}` is not empty, so nothing was started: name a new one with --directory",
            directory.display()
        ))
        .into());
    }
    directory.canonicalize().map_err(failed).with_context(what)
}

/// The broker that was named, or one of our own.
#[cfg(feature = "embedded-broker")]
async fn broker(context: &Context) -> anyhow::Result<(Broker, BTreeMap<String, String>)> {
    if context.settings.text("kafka.brokers").is_some() {
        return Ok((Broker::Foreign, writing::kafka_properties(&context.settings)?));
    }
    let embedded = crate::broker::EmbeddedBroker::start().await?;
    let kafka = embedded.properties();
    Ok((Broker::Embedded(embedded), kafka))
}

/// The broker that was named.
#[cfg(not(feature = "embedded-broker"))]
async fn broker(context: &Context) -> anyhow::Result<(Broker, BTreeMap<String, String>)> {
    if context.settings.text("kafka.brokers").is_none() {
        return Err(Failure::usage("this firn was built without an embedded broker: give --brokers").into());
    }
    Ok((Broker::Foreign, writing::kafka_properties(&context.settings)?))
}

async fn create(directory: &Path, uri: &str, template: &Template) -> anyhow::Result<TableHandle> {
    let options = CatalogOptions {
        uri: uri.to_owned(),
        name: Some("firn".to_owned()),
        warehouse: Some(format!("file://{}", directory.join("warehouse").display())),
        properties: HashMap::new(),
        if_missing: IfMissing::Create,
    };
    let catalog = open_catalog(&options, None).await?;
    let ident = parse_table_ident(TABLE)?;
    let properties = [
        ("write.target-file-size-bytes", TARGET_FILE_BYTES.to_string()),
        ("history.expire.max-snapshot-age-ms", RETENTION_MS.to_string()),
    ];
    let new = NewTable {
        schema: template.schema()?,
        partition: None,
        location: None,
        properties: properties.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
    };
    create_table(&catalog, &ident, new).await?;
    Ok(TableHandle::open(Arc::clone(&catalog.catalog), catalog.stores.clone(), ident, "main").await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_something_in_it_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let empty = parent.path().join("a/b");
        assert_eq!(new_directory(Some(empty.clone())).unwrap(), empty.canonicalize().unwrap());
        std::fs::write(empty.join("x"), "y").unwrap();
        let message = new_directory(Some(empty)).unwrap_err().to_string();
        assert!(message.contains("is not empty"), "{message}");
    }
}
