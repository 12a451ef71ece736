//! Messages: good ones with an id that no other has, bad ones, and offsets that are not delivered.

use firn_table::ledger::TopicPartition;
use firn_writer::source::memory::MemoryRecord;

use super::super::dice::Dice;
use super::super::records::{Content, Produced};
use super::super::world::{EPOCH_MS, World};

/// The topic of all runs.
pub const TOPIC: &str = "t";

/// A partition of the topic.
#[must_use]
pub fn partition(number: i32) -> TopicPartition {
    TopicPartition { topic: TOPIC.to_owned(), partition: number }
}

/// What is produced.
#[derive(Debug, Clone, PartialEq)]
pub struct ProducerPlan {
    /// Partitions of the topic.
    pub partitions: i32,
    /// Messages at a time, at most.
    pub burst: u64,
    /// The longest time between two bursts, in milliseconds.
    pub pause_ms: u64,
    /// The share of messages that cannot be decoded.
    pub bad: f64,
    /// The share of offsets that are not delivered.
    pub holes: f64,
    /// Whether all of it goes to one partition.
    pub one_partition: bool,
}

/// Produces until faults are over.
pub async fn producer(world: World, plan: ProducerPlan) {
    let dice = world.dice("producer");
    world.log().create_topic(TOPIC, plan.partitions);
    world.record(|records| records.partitions = plan.partitions);
    loop {
        let partitions = world.read(|records| records.partitions);
        let to =
            if plan.one_partition { 0 } else { dice.within(0..u64::from(partitions.unsigned_abs()).max(1)) };
        let to = partition(i32::try_from(to).unwrap_or(0));
        let burst = if partitions == 0 { 0 } else { dice.within(1..plan.burst + 1) };
        for _ in 0..burst {
            let content = if dice.chance(plan.bad) {
                Content::Bad
            } else if dice.chance(plan.holes) {
                Content::Hole
            } else {
                Content::Row(0)
            };
            produce(&world, &to, content, &dice);
        }
        tokio::select! {
            biased;
            () = world.quiet().cancelled() => return,
            () = tokio::time::sleep(dice.millis(1..plan.pause_ms.max(1) + 1)) => {}
        }
    }
}

/// Appends one message to the log and to the records; a row gets an id of its own.
pub fn produce(world: &World, to: &TopicPartition, content: Content, dice: &Dice) {
    let at = world.now();
    let timestamp_ms = EPOCH_MS + i64::try_from(at.as_millis()).unwrap_or(0);
    world.record(|records| {
        let content = match content {
            Content::Row(_) => Content::Row(i64::try_from(records.produced.len()).unwrap_or(0) + 1),
            other => other,
        };
        let value = match content {
            Content::Row(id) => Some(text(id, dice)),
            Content::Bad => Some(format!("{{\"id\": \"not a number {}\"}}", records.produced.len())),
            Content::Hole => None,
        };
        let offset = match value {
            Some(value) => {
                let record = MemoryRecord { key: None, value: Some(value.into_bytes()), timestamp_ms };
                world.log().append(to, record)
            }
            None => world.log().append_hole(to),
        };
        let incarnation = records.incarnation;
        records.produced.push(Produced { at, partition: to.clone(), incarnation, offset, content });
    });
}

/// A message that becomes a row.
fn text(id: i64, dice: &Dice) -> String {
    format!(r#"{{"id":{id},"kind":{},"name":"n{:x}"}}"#, id % 3, dice.number())
}
