//! Questions about offsets, asked on the consumer's thread.

use std::collections::BTreeMap;

use firn_table::ledger::TopicPartition;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaResult;
use rdkafka::{Offset, TopicPartitionList};

use super::{REQUEST_TIMEOUT, kafka_error};
use crate::Result;
use crate::ranges::place;
use crate::source::{Bounds, BoundsRequest, GroupOffsets};

/// A list for librdkafka; a negative offset leaves it unset.
pub(super) fn list<'a>(
    offsets: impl Iterator<Item = (&'a TopicPartition, i64)>,
) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    for (partition, offset) in offsets {
        let offset = if offset < 0 { Offset::Invalid } else { Offset::Offset(offset) };
        list.add_partition_offset(&partition.topic, partition.partition, offset)?;
    }
    Ok(list)
}

/// Watermarks, and on request the group's offsets and those of a time.
pub(super) fn bounds<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    request: &BoundsRequest,
) -> Result<BTreeMap<TopicPartition, Bounds>> {
    let mut all = BTreeMap::new();
    for p in &request.partitions {
        let (low, high) = consumer
            .fetch_watermarks(&p.topic, p.partition, REQUEST_TIMEOUT)
            .map_err(|e| kafka_error(format!("the offsets of {} are not known", place(p)), e))?;
        all.insert(p.clone(), Bounds { low, high, ..Bounds::default() });
    }
    if request.group == GroupOffsets::Ask {
        let asked = list(request.partitions.iter().map(|p| (p, -1)))
            .and_then(|list| consumer.committed_offsets(list, REQUEST_TIMEOUT))
            .map_err(|e| kafka_error("the group's offsets are not known", e))?;
        fill(&mut all, &asked, |bounds, offset| bounds.group = Some(offset));
    }
    if let Some(at) = request.timestamp_ms {
        let asked = list(request.partitions.iter().map(|p| (p, at.max(0))))
            .and_then(|list| consumer.offsets_for_times(list, REQUEST_TIMEOUT))
            .map_err(|e| kafka_error("the offsets of a time are not known", e))?;
        fill(&mut all, &asked, |bounds, offset| bounds.at_timestamp = Some(offset));
    }
    Ok(all)
}

fn fill(
    all: &mut BTreeMap<TopicPartition, Bounds>,
    list: &TopicPartitionList,
    set: impl Fn(&mut Bounds, i64),
) {
    for element in list.elements() {
        let partition = TopicPartition { topic: element.topic().to_owned(), partition: element.partition() };
        if let (Offset::Offset(offset), Some(bounds)) = (element.offset(), all.get_mut(&partition)) {
            set(bounds, offset);
        }
    }
}
