//! What a topic can do to a writer: be empty, absent, new, shortened, or not the one that it was.

use std::collections::BTreeMap;

use anyhow::Result;
use firn_tests::checks::After;
use firn_tests::kafka::KafkaCluster;

use crate::stream::{LIMIT, Stream, TABLE, said};

#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn every_message_is_in_the_table_once_and_a_graceful_stop_leaves_nothing_else() -> Result<()> {
    let stream = Stream::new("stream", 3).await?;
    stream.produce(0..3_000)?;
    let writer = stream.writer(&[], "writer.log")?;
    stream.wait_for_offsets(3_000).await?;
    stream.produce(3_000..5_000)?;
    stream.wait_for_offsets(5_000).await?;
    writer.stop(LIMIT).await?;
    stream.holds(0..5_000, After::GracefulStop).await?;
    stream.holds_each_offset_once().await?;
    let verified = stream.warehouse.run(&["verify", TABLE])?;
    assert_eq!(verified.code, Some(0), "{verified:?}");
    Ok(())
}

/// K16.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn an_empty_topic_is_no_error() -> Result<()> {
    let stream = Stream::new("empty-topic", 2).await?;
    stream.write(&[]).await?.success()?;
    stream.produce(0..10)?;
    stream.write(&[]).await?.success()?;
    stream.holds(0..10, After::GracefulStop).await
}

/// K16.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_topic_that_does_not_exist_yet_is_waited_for() -> Result<()> {
    let mut stream = Stream::new("later-topic", 1).await?;
    stream.topic = format!("{}-later", stream.topic);
    let writer =
        stream.writer(&["--kafka-property", "topic.metadata.refresh.interval.ms=500"], "writer.log")?;
    KafkaCluster::shared()?.create_topic(&stream.topic, 1).await?;
    stream.produce(0..100)?;
    stream.wait_for_offsets(100).await?;
    writer.stop(LIMIT).await?;
    stream.holds(0..100, After::GracefulStop).await
}

/// K16.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_partition_that_is_added_is_picked_up_from_its_first_message() -> Result<()> {
    let mut stream = Stream::new("added-partition", 1).await?;
    stream.produce(0..100)?;
    let writer =
        stream.writer(&["--kafka-property", "topic.metadata.refresh.interval.ms=500"], "writer.log")?;
    stream.wait_for_offsets(100).await?;
    stream.cluster.add_partitions(&stream.topic, 3).await?;
    stream.partitions = 3;
    stream.produce(100..400)?;
    stream.wait_for_offsets(400).await?;
    writer.stop(LIMIT).await?;
    stream.holds(0..400, After::GracefulStop).await
}

/// K6.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_topic_that_was_created_anew_stops_the_writer_until_it_is_told() -> Result<()> {
    let stream = Stream::new("recreated-topic", 1).await?;
    stream.produce(0..1_000)?;
    stream.write(&[]).await?.success()?;
    stream.cluster.delete_topic(&stream.topic).await?;
    stream.cluster.create_topic(&stream.topic, 1).await?;
    stream.produce(1_000..1_100)?;

    said(&stream.write(&[]).await?, 7, &[&stream.topic]);
    stream.holds(0..1_000, After::GracefulStop).await?;
    stream.write(&["--on-new-source", "restart"]).await?.success()?;
    stream.holds(0..1_100, After::GracefulStop).await
}

/// K7.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_range_that_retention_removed_stops_the_writer_or_is_recorded() -> Result<()> {
    let stream = Stream::new("retention", 1).await?;
    stream.produce(0..100)?;
    stream.write(&[]).await?.success()?;
    stream.produce(100..1_000)?;
    stream.cluster.delete_records(&stream.topic, 0, 563).await?;

    said(&stream.write(&[]).await?, 7, &["100", "563"]);
    stream.holds(0..100, After::GracefulStop).await?;
    stream.write(&["--on-gap", "record"]).await?.success()?;
    let (table, stores) = stream.warehouse.table(TABLE).await?;
    let ids = firn_tests::rows::ids(&table, &stores).await?;
    let expected: BTreeMap<i64, u64> = (0..100).chain(563..1_000).map(|id| (id, 1)).collect();
    assert_eq!(ids, expected);
    let ledgers = firn_table::ledger::Ledger::read_all(table.metadata().properties())?;
    let gaps: Vec<u64> = ledgers.iter().flat_map(|(_, _, l)| l.cursors.values().map(|c| c.gaps)).collect();
    assert_eq!(gaps, [463]);
    stream.warehouse.check(TABLE, After::GracefulStop).await
}

/// K7, where the table holds nothing yet: what is gone before the first start is no gap.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_first_start_takes_the_oldest_message_that_is_left() -> Result<()> {
    let stream = Stream::new("shortened", 1).await?;
    stream.produce(0..1_000)?;
    stream.cluster.delete_records(&stream.topic, 0, 563).await?;
    stream.write(&[]).await?.success()?;
    stream.holds(563..1_000, After::GracefulStop).await
}

/// K8.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_consumer_group_that_is_reset_moves_nothing() -> Result<()> {
    let stream = Stream::new("group-reset", 2).await?;
    stream.produce(0..1_000)?;
    stream.write(&[]).await?.success()?;
    for offset in [0, 123, 500] {
        let group = BTreeMap::from([(0, offset), (1, 500 - offset)]);
        stream.cluster.reset_group(stream.group(), &stream.topic, &group)?;
        let more = u64::try_from(offset)?;
        stream.produce(1_000 + more..1_000 + more + 10)?;
        stream.write(&[]).await?.success()?;
    }
    let (table, stores) = stream.warehouse.table(TABLE).await?;
    let ids = firn_tests::rows::ids(&table, &stores).await?;
    let more = [1_000_i64, 1_123, 1_500].into_iter().flat_map(|first| first..first + 10);
    assert_eq!(ids, (0..1_000).chain(more).map(|id| (id, 1)).collect());
    stream.holds_each_offset_once().await
}
