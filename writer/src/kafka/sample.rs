//! The first messages of a topic, for inferring a schema before a table exists.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use firn_table::ledger::TopicPartition;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use super::cluster::{PartitionProbe, blocking, probe};
use super::{client_config, kafka_error};
use crate::batch::{Headers, MessageBatch};
use crate::{Error, ErrorKind, Result};

/// How much to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleLimits {
    /// Messages in all, spread over the partitions.
    pub messages: usize,
    /// Time in all.
    pub timeout: Duration,
}

impl Default for SampleLimits {
    fn default() -> Self {
        Self { messages: 1000, timeout: Duration::from_secs(10) }
    }
}

/// The oldest messages in each partition of `topics`. It waits for topics that are empty or do not exist yet until
/// the time is over. `NotFound` where none was found.
pub async fn sample_messages(
    properties: &BTreeMap<String, String>,
    topics: &[String],
    limits: SampleLimits,
) -> Result<Vec<MessageBatch>> {
    let deadline = tokio::time::Instant::now() + limits.timeout;
    loop {
        let probe = probe(properties, topics, super::REQUEST_TIMEOUT).await?;
        let filled: Vec<(String, PartitionProbe)> = probe
            .topics
            .iter()
            .flat_map(|t| t.partitions.iter().map(|p| (t.name.clone(), *p)))
            .filter(|(_, p)| p.high > p.low)
            .collect();
        if !filled.is_empty() {
            let properties = properties.clone();
            let batches = blocking(move || Sampler::new(&properties, &filled, limits)?.read()).await?;
            if batches.iter().any(|b| !b.is_empty()) {
                return Ok(batches);
            }
        }
        if tokio::time::Instant::now() >= deadline {
            let message = format!(
                "no message was found in topic `{}` within {:?}: no schema can be inferred; give one, or produce a \
                 message first",
                topics.join("`, `"),
                limits.timeout
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Reads the first messages of partitions that are assigned by hand.
struct Sampler {
    consumer: BaseConsumer,
    /// For each partition: what was read, and the offset at which to stop.
    taken: BTreeMap<(String, i32), (MessageBatch, i64)>,
    per_partition: usize,
    limits: SampleLimits,
}

impl Sampler {
    fn new(
        properties: &BTreeMap<String, String>,
        partitions: &[(String, PartitionProbe)],
        limits: SampleLimits,
    ) -> Result<Self> {
        let mut properties = properties.clone();
        // Nothing is committed under this name: partitions are assigned by hand.
        properties.insert("group.id".to_owned(), "firn-sample".to_owned());
        properties.remove("group.instance.id");
        let defaults = [("enable.auto.commit", "false"), ("auto.offset.reset", "earliest")];
        let consumer: BaseConsumer =
            client_config(&defaults, &properties).create().map_err(|e| kafka_error(WHAT, e))?;
        let mut assignment = TopicPartitionList::new();
        let mut taken = BTreeMap::new();
        for (topic, p) in partitions {
            assignment
                .add_partition_offset(topic, p.partition, Offset::Offset(p.low))
                .map_err(|e| kafka_error(WHAT, e))?;
            let batch = MessageBatch::new(
                TopicPartition { topic: topic.clone(), partition: p.partition },
                Headers::Keep,
            );
            taken.insert((topic.clone(), p.partition), (batch, p.high));
        }
        consumer.assign(&assignment).map_err(|e| kafka_error(WHAT, e))?;
        let per_partition = limits.messages.div_ceil(partitions.len().max(1)).max(1);
        Ok(Self { consumer, taken, per_partition, limits })
    }

    fn read(mut self) -> Result<Vec<MessageBatch>> {
        let mut left: BTreeSet<_> = self.taken.keys().cloned().collect();
        let deadline = Instant::now() + self.limits.timeout;
        while !left.is_empty() && Instant::now() < deadline {
            let Some(message) = self.consumer.poll(Duration::from_millis(100)) else { continue };
            let message = message.map_err(|e| kafka_error(WHAT, e))?;
            let place = (message.topic().to_owned(), message.partition());
            if !left.contains(&place) {
                continue;
            }
            let Some((batch, high)) = self.taken.get_mut(&place) else { continue };
            batch.push(&message);
            if batch.len() >= self.per_partition || message.offset() + 1 >= *high {
                left.remove(&place);
            }
        }
        Ok(self.taken.into_values().map(|(batch, _)| batch).collect())
    }
}

const WHAT: &str = "messages for a sample cannot be read";
