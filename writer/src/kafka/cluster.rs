//! What a cluster tells about itself, and topics made and deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use firn_table::commit::SourceIdentity;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;

use super::topic_ids::topic_ids;
use super::{client_config, kafka_error};
use crate::{Error, ErrorKind, Result};

/// A topic to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSpec {
    /// Its name.
    pub name: String,
    /// Number of partitions.
    pub partitions: i32,
    /// Replicas of each; `-1` is the broker's default.
    pub replication: i32,
    /// The topic's configuration (`retention.ms`, …).
    pub config: BTreeMap<String, String>,
}

impl TopicSpec {
    /// A topic with one replica and the broker's configuration.
    #[must_use]
    pub fn new(name: impl Into<String>, partitions: i32) -> Self {
        Self { name: name.into(), partitions, replication: 1, config: BTreeMap::new() }
    }
}

/// A cluster as it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterProbe {
    /// The cluster's id, where the broker tells it.
    pub cluster_id: Option<String>,
    /// Brokers as `host:port`.
    pub brokers: Vec<String>,
    /// The topics asked for, in the order asked.
    pub topics: Vec<TopicProbe>,
}

/// A topic as the cluster knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicProbe {
    /// Its name.
    pub name: String,
    /// Its id, where the broker tells it.
    pub topic_id: Option<String>,
    /// Its partitions; empty where the topic does not exist.
    pub partitions: Vec<PartitionProbe>,
}

impl TopicProbe {
    /// Whether the topic exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        !self.partitions.is_empty()
    }
}

/// The offsets that a partition holds: `[low, high)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionProbe {
    /// Its number.
    pub partition: i32,
    /// The oldest offset that is still there.
    pub low: i64,
    /// The offset of the next message.
    pub high: i64,
}

/// Asks a cluster about itself and about topics. `Unavailable` where no broker answers in `timeout`.
pub async fn probe(
    properties: &BTreeMap<String, String>,
    topics: &[String],
    timeout: Duration,
) -> Result<ClusterProbe> {
    let (properties, topics) = (properties.clone(), topics.to_vec());
    blocking(move || {
        let consumer = probe_consumer(&properties)?;
        probe_with(&consumer, &topics, timeout)
    })
    .await
}

/// Creates a topic and waits until its partitions have leaders. `AlreadyExists` where there is one of that name.
pub async fn create_topic(properties: &BTreeMap<String, String>, spec: &TopicSpec) -> Result<()> {
    let admin = admin_client(properties)?;
    let replication = TopicReplication::Fixed(spec.replication);
    let mut topic = NewTopic::new(&spec.name, spec.partitions, replication);
    for (key, value) in &spec.config {
        topic = topic.set(key, value);
    }
    let what = format!("topic `{}` cannot be created", spec.name);
    let results = admin.create_topics(&[topic], &admin_options()).await.map_err(|e| kafka_error(&what, e))?;
    for result in results {
        result.map_err(|(_, code)| kafka_error(&what, KafkaError::AdminOp(code)))?;
    }
    wait_for_leaders(properties, spec).await
}

/// Deletes a topic. `NotFound` where there is none.
pub async fn delete_topic(properties: &BTreeMap<String, String>, topic: &str) -> Result<()> {
    let admin = admin_client(properties)?;
    let what = format!("topic `{topic}` cannot be deleted");
    let results = admin.delete_topics(&[topic], &admin_options()).await.map_err(|e| kafka_error(&what, e))?;
    for result in results {
        result.map_err(|(_, code)| kafka_error(&what, KafkaError::AdminOp(code)))?;
    }
    Ok(())
}

/// Whether a broker answers at all. `Unavailable` where none does within half a minute.
pub(crate) async fn check_brokers(properties: &BTreeMap<String, String>) -> Result<()> {
    let properties = properties.clone();
    blocking(move || {
        let consumer = probe_consumer(&properties)?;
        let servers = properties.get("bootstrap.servers").map_or("", String::as_str);
        let what = format!("no broker at `{servers}` answers");
        consumer.fetch_metadata(None, Duration::from_secs(30)).map(drop).map_err(|e| kafka_error(what, e))
    })
    .await
}

async fn wait_for_leaders(properties: &BTreeMap<String, String>, spec: &TopicSpec) -> Result<()> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    let topics = [spec.name.clone()];
    loop {
        let probe = probe(properties, &topics, super::REQUEST_TIMEOUT).await;
        if let Ok(probe) = &probe
            && probe
                .topics
                .iter()
                .all(|t| t.partitions.len() == usize::try_from(spec.partitions).unwrap_or(0))
        {
            return Ok(());
        }
        if tokio::time::Instant::now() > deadline {
            return probe.and(Err(Error::new(
                ErrorKind::Unavailable,
                format!("topic `{}` was created but its partitions have no leader after 30 s", spec.name),
            )));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn admin_client(properties: &BTreeMap<String, String>) -> Result<AdminClient<DefaultClientContext>> {
    client_config(&[], properties).create().map_err(|e| kafka_error("the admin client cannot be made", e))
}

fn admin_options() -> AdminOptions {
    AdminOptions::new()
        .request_timeout(Some(Duration::from_secs(30)))
        .operation_timeout(Some(Duration::from_secs(30)))
}

/// A consumer that only asks.
pub(crate) fn probe_consumer(properties: &BTreeMap<String, String>) -> Result<BaseConsumer> {
    let mut properties = properties.clone();
    properties.remove("group.id");
    properties.remove("group.instance.id");
    client_config(&[], &properties).create().map_err(|e| kafka_error("the consumer cannot be made", e))
}

fn probe_with(consumer: &BaseConsumer, topics: &[String], timeout: Duration) -> Result<ClusterProbe> {
    let metadata =
        consumer.fetch_metadata(None, timeout).map_err(|e| kafka_error("the brokers do not answer", e))?;
    let brokers = metadata.brokers().iter().map(|b| format!("{}:{}", b.host(), b.port())).collect();
    let identity = source_identity(consumer, topics, timeout);
    let topics = topics
        .iter()
        .map(|topic| {
            let partitions = partitions_of(consumer, topic, timeout)?;
            let topic_id = identity.topic_ids.get(topic).cloned();
            Ok(TopicProbe { name: topic.clone(), topic_id, partitions })
        })
        .collect::<Result<_>>()?;
    Ok(ClusterProbe { cluster_id: identity.cluster_id, brokers, topics })
}

fn partitions_of(consumer: &BaseConsumer, topic: &str, timeout: Duration) -> Result<Vec<PartitionProbe>> {
    let what = || format!("topic `{topic}` cannot be described");
    // All topics are asked for: a question about one topic makes many brokers create it.
    let metadata = consumer.fetch_metadata(None, timeout).map_err(|e| kafka_error(what(), e))?;
    let Some(found) = metadata.topics().iter().find(|t| t.name() == topic) else { return Ok(Vec::new()) };
    found
        .partitions()
        .iter()
        .filter(|p| p.leader() >= 0)
        .map(|p| {
            let (low, high) =
                consumer.fetch_watermarks(topic, p.id(), timeout).map_err(|e| kafka_error(what(), e))?;
            Ok(PartitionProbe { partition: p.id(), low, high })
        })
        .collect()
}

/// The ids of cluster and topics. What the broker does not tell stays unknown: not every broker has them.
pub(crate) fn source_identity<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topics: &[String],
    timeout: Duration,
) -> SourceIdentity {
    let cluster_id = consumer.client().fetch_cluster_id(timeout).filter(|id| !id.is_empty());
    SourceIdentity { cluster_id, topic_ids: topic_ids(consumer.client(), topics, timeout) }
}

/// Runs blocking work of librdkafka off the runtime's threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(e) => Err(Error::new(ErrorKind::Internal, "a question to the brokers panicked").with_source(e)),
    }
}

/// Whether an error says that the offset asked for is not there any more (or not yet).
pub(crate) fn is_offset_lost(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(RDKafkaErrorCode::OffsetOutOfRange | RDKafkaErrorCode::AutoOffsetReset)
    )
}
