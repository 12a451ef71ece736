//! A topic of events, the table that it goes to, and the writers between them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use firn_table::ledger::Ledger;

use crate::kafka::{KafkaCluster, Produced};
use crate::process::{Ended, Running};
use crate::warehouse::Warehouse;
use crate::{checks, rows, scratch};

/// The table of a stream.
pub const TABLE: &str = "db.events";

/// How long a writer may take for what is asked of it here, on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(90);

/// A topic, a warehouse, and the table `db.events` in it.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Where the table is.
    pub warehouse: Warehouse,
    /// Where the topic is.
    pub cluster: &'static KafkaCluster,
    /// The topic.
    pub topic: String,
    /// Its partitions.
    pub partitions: i32,
    /// The table; [`TABLE`] where the catalog is the test's own.
    pub table: String,
    schema: String,
}

impl Stream {
    /// A new topic and an empty warehouse, both named after the test.
    pub async fn new(test: &str, partitions: i32) -> Result<Self> {
        Self::between(KafkaCluster::shared()?, Warehouse::new(test)?, test, partitions).await
    }

    /// A new topic on this cluster, whose events go to this warehouse.
    pub async fn between(
        cluster: &'static KafkaCluster,
        warehouse: Warehouse,
        test: &str,
        partitions: i32,
    ) -> Result<Self> {
        let topic = cluster.new_topic(test, partitions).await?;
        let schema = rows::events_schema(warehouse.folder())?.display().to_string();
        Ok(Self { warehouse, cluster, topic, partitions, table: TABLE.to_owned(), schema })
    }

    /// The same, for a table of another schema (Iceberg's JSON).
    pub async fn with_schema(test: &str, schema: &str) -> Result<Self> {
        let stream = Self::new(test, 1).await?;
        std::fs::write(&stream.schema, schema)?;
        Ok(stream)
    }

    /// Produces the events with these ids.
    pub fn produce(&self, ids: Range<u64>) -> Result<()> {
        self.cluster.produce(&self.topic, rows::events(ids, self.partitions)).map(drop)
    }

    /// Produces messages with these values to partition 0.
    pub fn produce_values<S: Into<String>>(&self, values: impl IntoIterator<Item = S>) -> Result<()> {
        let message = |value: S| Produced { partition: 0, key: None, value: Some(value.into().into_bytes()) };
        self.cluster.produce(&self.topic, values.into_iter().map(message)).map(drop)
    }

    /// `firn write` with options of its own. It flushes often, unless an option says otherwise.
    pub fn command(&self, options: &[&str]) -> Result<Command> {
        let mut arguments = vec!["write", &self.table, "--brokers", self.cluster.bootstrap_servers()];
        arguments.extend(["--topic", &self.topic, "--create", "--schema", &self.schema, "--kafka-columns"]);
        arguments.extend(["--set", "decode.kafka-columns=on"]);
        // A group of the test's own; a member that was killed is forgotten soon, so that the next need not wait.
        let kafka = format!("group.id={},session.timeout.ms=3000,heartbeat.interval.ms=500", self.group());
        arguments.extend(["--kafka-property", &kafka]);
        arguments.extend_from_slice(options);
        let mut command = self.warehouse.firn(&arguments)?;
        command.env("FIRN__WRITE__FLUSH_AGE", "200ms");
        Ok(command)
    }

    /// The consumer group of the writers.
    pub fn group(&self) -> &str {
        &self.topic
    }

    /// Runs a writer until it has committed what is in the topic now, or has stopped for another reason.
    pub async fn write(&self, options: &[&str]) -> Result<Ended> {
        let mut command = self.command(options)?;
        command.arg("--until-end");
        Running::start(command, &self.warehouse.folder().join("write.log"))?.wait(LIMIT).await
    }

    /// Starts a writer that goes on until it is stopped; what it says goes to the file `log`.
    pub fn writer(&self, options: &[&str], log: &str) -> Result<Running> {
        Running::start(self.command(options)?, &self.warehouse.folder().join(log))
    }

    /// Starts a writer and waits until it says so: from then on it stops in good order when it is asked to.
    pub async fn started_writer(&self, options: &[&str], log: &str) -> Result<Running> {
        let writer = self.writer(options, log)?;
        let says = || async { Ok(writer.said()?.contains("started").then_some(())) };
        scratch::eventually("the writer to start", LIMIT, says).await?;
        Ok(writer)
    }

    /// The table's cursors by partition: the next offset that is not yet in it. Empty before the first commit.
    pub async fn cursors(&self) -> Result<BTreeMap<i32, i64>> {
        let (table, _) = self.warehouse.table(&self.table).await?;
        let ledgers = Ledger::read_all(table.metadata().properties())?;
        let cursors = ledgers.iter().flat_map(|(_, _, ledger)| &ledger.cursors);
        Ok(cursors.map(|(partition, cursor)| (partition.partition, cursor.next)).collect())
    }

    /// Waits until the cursors cover this many offsets in all.
    pub async fn wait_for_offsets(&self, offsets: i64) -> Result<()> {
        let covered = || async {
            let sum: i64 = self.cursors().await?.values().sum();
            Ok((sum >= offsets).then_some(()))
        };
        scratch::eventually(&format!("{offsets} offsets in the table"), LIMIT, covered).await
    }

    /// Fails unless the table holds these events, each once, with the right offsets, and nothing is wrong with it.
    pub async fn holds(&self, ids: Range<u64>, after: checks::After) -> Result<()> {
        let (table, stores) = self.warehouse.table(&self.table).await?;
        checks::check(&table, &stores, after).await.with_context(|| self.place())?;
        rows::each_once(&table, &stores, ids).await.with_context(|| self.place())
    }

    /// Fails unless every offset of the topic is in the table once.
    pub async fn holds_each_offset_once(&self) -> Result<()> {
        let (table, stores) = self.warehouse.table(&self.table).await?;
        let mut ends = BTreeMap::new();
        for partition in 0..self.partitions {
            ends.insert((self.topic.clone(), partition), self.cluster.offsets(&self.topic, partition)?.1);
        }
        rows::each_offset_once(&table, &stores, &ends).await.with_context(|| self.place())
    }

    fn place(&self) -> String {
        format!("topic {}, {}", self.topic, self.warehouse.folder().display())
    }
}

/// Fails unless a command ended with this code and said all of these.
#[track_caller]
pub fn said(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code, Some(code), "{}{}", ended.stdout, ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "`{word}` is not in: {}", ended.stderr);
    }
}
