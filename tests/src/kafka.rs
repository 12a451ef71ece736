//! A broker for the tests of a process, its topics and messages.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};
use uuid::Uuid;

use crate::scratch;

/// How long the broker may take for one request of the tests.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// How long messages may wait to be acknowledged: a broker that was killed may have to start again first.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(150);

/// One or three brokers. The shared one serves all tests of a process and stops with it.
#[derive(Debug)]
pub struct KafkaCluster {
    bootstrap_servers: String,
    /// The folder of `tests/kafka`; none where somebody else's broker is used.
    folder: Option<PathBuf>,
}

/// How many brokers a cluster has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brokers {
    /// One: everything is on it.
    One,
    /// Three: every partition is on all of them.
    Three,
}

/// A message to be produced.
#[derive(Debug, Clone)]
pub struct Produced {
    /// The partition.
    pub partition: i32,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value; `None` makes a tombstone.
    pub value: Option<Vec<u8>>,
}

impl KafkaCluster {
    /// The broker of this process: the one that `FIRN_TEST_KAFKA` names, or one that is started at the first call
    /// and stopped when the process has ended.
    pub fn shared() -> Result<&'static Self> {
        static SHARED: OnceLock<Result<KafkaCluster, String>> = OnceLock::new();
        let start = || match std::env::var("FIRN_TEST_KAFKA") {
            Ok(bootstrap_servers) => Ok(Self { bootstrap_servers, folder: None }),
            Err(_) => Self::start("kafka", Brokers::One).map_err(|error| format!("{error:#}")),
        };
        SHARED.get_or_init(start).as_ref().map_err(|error| anyhow!("no broker: {error}"))
    }

    /// A cluster of its own, which the test may harm. It stops when the process has ended.
    pub fn start(test: &str, brokers: Brokers) -> Result<Self> {
        let folder = scratch::folder(&format!("{test}-cluster"))?;
        let number = if brokers == Brokers::One { "1" } else { "3" };
        let process = std::process::id().to_string();
        let mut cluster = Self { bootstrap_servers: String::new(), folder: Some(folder) };
        cluster.bootstrap_servers = cluster.script(&["start", "--brokers", number, "--while", &process])?;
        Ok(cluster)
    }

    /// `host:port,…` for clients.
    #[must_use]
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap_servers
    }

    /// Kills a node at once.
    pub fn kill(&self, node: usize) -> Result<()> {
        self.script(&["kill", &node.to_string()]).map(drop)
    }

    /// Starts again what was killed, on the same ports with the same data.
    pub fn start_again(&self) -> Result<()> {
        self.script(&["start"]).map(drop)
    }

    fn script(&self, arguments: &[&str]) -> Result<String> {
        let folder =
            self.folder.as_ref().context("the broker that FIRN_TEST_KAFKA names is not ours to harm")?;
        let mut command = Command::new(scratch::package().join("kafka"));
        let output =
            command.args(arguments).arg("--dir").arg(folder).output().context("running tests/kafka")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tests/kafka {arguments:?} failed: {said}");
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap_servers);
        config
    }

    fn admin(&self) -> Result<AdminClient<DefaultClientContext>> {
        Ok(self.config().create()?)
    }

    fn admin_options() -> AdminOptions {
        AdminOptions::new().operation_timeout(Some(REQUEST_LIMIT)).request_timeout(Some(REQUEST_LIMIT))
    }

    /// A topic with a name that nothing else has.
    pub async fn new_topic(&self, test: &str, partitions: i32) -> Result<String> {
        let name = format!("{test}-{}", &Uuid::new_v4().simple().to_string()[..8]);
        self.create_topic(&name, partitions).await?;
        Ok(name)
    }

    /// Creates a topic and waits until its partitions have leaders.
    pub async fn create_topic(&self, name: &str, partitions: i32) -> Result<()> {
        let replicas = if self.bootstrap_servers.contains(',') { 3 } else { 1 };
        let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(replicas));
        let results = self.admin()?.create_topics([&topic], &Self::admin_options()).await?;
        outcome(results)?;
        self.wait_for_partitions(name, partitions).await
    }

    /// Deletes a topic and waits until it is gone.
    pub async fn delete_topic(&self, name: &str) -> Result<()> {
        outcome(self.admin()?.delete_topics(&[name], &Self::admin_options()).await?)?;
        let gone = || async { Ok((self.partitions(name)? == 0).then_some(())) };
        scratch::eventually("the topic to be gone", REQUEST_LIMIT, gone).await
    }

    /// Grows a topic to `partitions`.
    pub async fn add_partitions(&self, name: &str, partitions: i32) -> Result<()> {
        let count = usize::try_from(partitions)?;
        let grown = NewPartitions::new(name, count);
        outcome(self.admin()?.create_partitions([&grown], &Self::admin_options()).await?)?;
        self.wait_for_partitions(name, partitions).await
    }

    /// Removes the messages of a partition below `offset`, as retention does.
    pub async fn delete_records(&self, topic: &str, partition: i32, offset: i64) -> Result<()> {
        let mut before = TopicPartitionList::new();
        before.add_partition_offset(topic, partition, Offset::Offset(offset))?;
        self.admin()?.delete_records(&before, &Self::admin_options()).await?;
        let removed = || async { Ok((self.offsets(topic, partition)?.0 == offset).then_some(())) };
        scratch::eventually("the records to be gone", REQUEST_LIMIT, removed).await
    }

    async fn wait_for_partitions(&self, topic: &str, partitions: i32) -> Result<()> {
        let expected = usize::try_from(partitions)?;
        let there = || async { Ok((self.partitions(topic)? == expected).then_some(())) };
        scratch::eventually("the topic's partitions to have leaders", REQUEST_LIMIT, there).await
    }

    /// The partitions of a topic that have leaders.
    fn partitions(&self, topic: &str) -> Result<usize> {
        let consumer: BaseConsumer = self.config().create()?;
        let metadata = consumer.fetch_metadata(Some(topic), REQUEST_LIMIT)?;
        let partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
        Ok(partitions.filter(|partition| partition.leader() >= 0).count())
    }

    /// The first offset of a partition and the next one to be produced.
    pub fn offsets(&self, topic: &str, partition: i32) -> Result<(i64, i64)> {
        let consumer: BaseConsumer = self.config().create()?;
        Ok(consumer.fetch_watermarks(topic, partition, REQUEST_LIMIT)?)
    }

    /// Produces messages and waits until all are acknowledged.
    pub fn produce(&self, topic: &str, messages: impl IntoIterator<Item = Produced>) -> Result<u64> {
        let mut config = self.config();
        config.set("enable.idempotence", "true").set("linger.ms", "5").set("compression.type", "zstd");
        let producer: BaseProducer = config.create()?;
        let mut produced = 0;
        for message in messages {
            let mut record: BaseRecord<'_, Vec<u8>, Vec<u8>> =
                BaseRecord::to(topic).partition(message.partition);
            record.key = message.key.as_ref();
            record.payload = message.value.as_ref();
            while let Err((error, again)) = producer.send(record) {
                if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                    return Err(error).context("producing");
                }
                producer.poll(Duration::from_millis(10));
                record = again;
            }
            produced += 1;
        }
        producer.flush(ACKNOWLEDGED_WITHIN)?;
        ensure!(
            producer.in_flight_count() == 0,
            "{} messages were not acknowledged",
            producer.in_flight_count()
        );
        Ok(produced)
    }

    /// Sets a consumer group's committed offset, as an operator's reset does. The group must have no members.
    pub fn reset_group(&self, group: &str, topic: &str, offsets: &BTreeMap<i32, i64>) -> Result<()> {
        let mut config = self.config();
        let consumer: BaseConsumer = config.set("group.id", group).create()?;
        let mut list = TopicPartitionList::new();
        for (partition, offset) in offsets {
            list.add_partition_offset(topic, *partition, Offset::Offset(*offset))?;
        }
        Ok(consumer.commit(&list, CommitMode::Sync)?)
    }

    /// A consumer group's committed offset of a partition.
    pub fn committed(&self, group: &str, topic: &str, partition: i32) -> Result<Option<i64>> {
        let mut config = self.config();
        let consumer: BaseConsumer = config.set("group.id", group).create()?;
        let mut asked = TopicPartitionList::new();
        asked.add_partition(topic, partition);
        let committed = consumer.committed_offsets(asked, REQUEST_LIMIT)?;
        let found = committed.find_partition(topic, partition).context("the partition that was asked for")?;
        Ok(match found.offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        })
    }

    /// All messages of a partition, from the first to the end as it is now.
    pub fn consume(&self, topic: &str, partition: i32) -> Result<Vec<(i64, Vec<u8>)>> {
        let (_, end) = self.offsets(topic, partition)?;
        let mut config = self.config();
        let consumer: BaseConsumer = config.set("group.id", "firn-tests").create()?;
        let mut assignment = TopicPartitionList::new();
        assignment.add_partition_offset(topic, partition, Offset::Beginning)?;
        consumer.assign(&assignment)?;
        let mut messages = Vec::new();
        while messages.last().map_or(0, |(offset, _)| offset + 1) < end {
            let Some(message) = consumer.poll(REQUEST_LIMIT) else {
                bail!("{topic}[{partition}] gave {} of {end} messages", messages.len())
            };
            let message = message?;
            messages.push((message.offset(), message.payload().unwrap_or_default().to_vec()));
        }
        Ok(messages)
    }
}

impl fmt::Display for KafkaCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.bootstrap_servers)
    }
}

fn outcome(results: Vec<Result<String, (String, RDKafkaErrorCode)>>) -> Result<()> {
    for result in results {
        result.map_err(|(topic, code)| anyhow!(KafkaError::AdminOp(code)).context(topic))?;
    }
    Ok(())
}
