//! From a topic to files: `firn write` beside a loop that consumes, decodes with `arrow-json` and encodes with
//! `ArrowWriter`, on the same messages of the same broker.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use firn_tests::kafka::{KafkaCluster, Produced};
use firn_tests::warehouse::Warehouse;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message as _;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::cpu::Cost;
use crate::decode::{BATCH, bare_decoder, bare_writer, bytes, format, messages};
use crate::{Length, print};

const PARTITIONS: i32 = 4;
const TABLE: &str = "db.stream";

pub(crate) async fn run(length: Length) -> Result<()> {
    let cluster = match KafkaCluster::shared() {
        Ok(cluster) => cluster,
        Err(error) => return print(format_args!("stream: left out, {error:#}")),
    };
    let count = if length == Length::Short { 200_000 } else { 2_000_000 };
    let topic = cluster.new_topic("bench", PARTITIONS).await?;
    let messages = messages(count, PARTITIONS)?;
    let size = bytes(&messages);
    cluster.produce(
        &topic,
        messages.into_iter().map(|m| Produced { partition: m.partition, key: m.key, value: Some(m.payload) }),
    )?;
    print(format_args!("stream: {count} messages of {} bytes in {PARTITIONS} partitions", size / count))?;
    let (rows, bare) = Cost::of(|| bare_loop(cluster, &topic, count))?;
    print(format_args!("  bare   consume, decode, encode {}", bare.rate(size)))?;
    let warehouse = Warehouse::new("bench-stream")?;
    let (_, firn) = Cost::of(|| write(&warehouse, cluster, &topic))?;
    let share = firn.rate(size).per_cpu_second / bare.rate(size).per_cpu_second;
    print(format_args!("  firn   write, to the commit    {} ({share:.2})", firn.rate(size)))?;
    let (table, _) = warehouse.table(TABLE).await?;
    let head = table.metadata().current_snapshot().context("a snapshot")?;
    let total = head.summary().additional_properties.get("total-records").cloned().unwrap_or_default();
    if rows != count || total != count.to_string() {
        bail!("{count} messages, {rows} in the bare loop, {total} in the table");
    }
    Ok(())
}

fn write(warehouse: &Warehouse, cluster: &KafkaCluster, topic: &str) -> Result<()> {
    let schema = warehouse.folder().join("schema.json");
    std::fs::write(&schema, serde_json::to_string(format()?.schema().as_ref())?)?;
    let schema = schema.display().to_string();
    let source = ["--brokers", cluster.bootstrap_servers(), "--topic", topic, "--until-end"];
    let table = ["--create", "--schema", &schema];
    warehouse.run(&[&["write", TABLE], &source[..], &table].concat())?.success()?;
    Ok(())
}

/// Consumes with the fetch settings that suit throughput, and makes one file for every million messages.
fn bare_loop(cluster: &KafkaCluster, topic: &str, count: u64) -> Result<u64> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", cluster.bootstrap_servers()).set("group.id", "firn-bench");
    config.set("fetch.wait.max.ms", "10").set("fetch.message.max.bytes", "8388608");
    let consumer: BaseConsumer = config.create()?;
    let mut assignment = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        assignment.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&assignment)?;
    let format = format()?;
    let mut decoder = bare_decoder(format.arrow_schema())?;
    let mut writer = bare_writer(format.arrow_schema().clone())?;
    let mut rows = 0;
    while rows < count {
        let message = consumer.poll(Duration::from_secs(10)).context("a message within ten seconds")??;
        decoder.decode(message.payload().context("a message with a value")?)?;
        rows += 1;
        if rows.is_multiple_of(BATCH as u64) || rows == count {
            writer.write(&decoder.flush()?.context("a batch with rows")?)?;
        }
    }
    writer.into_inner()?;
    Ok(rows)
}
