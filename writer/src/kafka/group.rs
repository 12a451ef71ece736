//! What a consumer group has committed: a way to take over from another consumer.

use std::collections::BTreeMap;
use std::time::Duration;

use firn_table::commit::SourceIdentity;
use firn_table::ledger::TopicPartition;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Offset, TopicPartitionList};

use super::cluster::{blocking, source_identity};
use super::{client_config, kafka_error};
use crate::Result;

/// The committed offsets of `group` in all partitions of `topics` where it has any, and which cluster and topics
/// these are. The group is not joined.
pub async fn committed_offsets(
    properties: &BTreeMap<String, String>,
    group: &str,
    topics: &[String],
    timeout: Duration,
) -> Result<(BTreeMap<TopicPartition, i64>, SourceIdentity)> {
    let mut properties = properties.clone();
    properties.insert("group.id".to_owned(), group.to_owned());
    properties.remove("group.instance.id");
    let (group, topics) = (group.to_owned(), topics.to_vec());
    blocking(move || {
        let consumer: BaseConsumer = client_config(&[("enable.auto.commit", "false")], &properties)
            .create()
            .map_err(|e| kafka_error("the consumer cannot be made", e))?;
        let failed = |e| kafka_error(format!("the offsets of group `{group}` are not known"), e);
        let metadata = consumer.fetch_metadata(None, timeout).map_err(failed)?;
        let mut list = TopicPartitionList::new();
        for topic in metadata.topics().iter().filter(|t| topics.iter().any(|name| name == t.name())) {
            for partition in topic.partitions() {
                list.add_partition(topic.name(), partition.id());
            }
        }
        let committed = consumer.committed_offsets(list, timeout).map_err(failed)?;
        let elements = committed.elements();
        let offsets = elements.iter().filter_map(|e| match e.offset() {
            Offset::Offset(next) => {
                Some((TopicPartition { topic: e.topic().to_owned(), partition: e.partition() }, next))
            }
            _ => None,
        });
        Ok((offsets.collect(), source_identity(&consumer, &topics, timeout)))
    })
    .await
}
