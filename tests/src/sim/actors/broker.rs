//! What happens to topics: new partitions, retention, deletion and creation under the same name.

use std::time::Duration;

use super::super::dice::Dice;
use super::super::records::{Role, Who};
use super::super::world::World;
use super::producer::{TOPIC, partition};

/// What happens to the topic.
#[derive(Debug, Clone, PartialEq)]
pub struct BrokerPlan {
    /// The longest time between two deeds, in milliseconds.
    pub pause_ms: u64,
    /// Partitions that may be added.
    pub new_partitions: u64,
    /// The share of deeds that are retention.
    pub retention: f64,
    /// Whether the topic is deleted and created again, once.
    pub creates_again: bool,
}

impl BrokerPlan {
    pub(in super::super) fn draw(dice: &Dice) -> Self {
        Self {
            pause_ms: dice.one_of(&[2_000, 8_000]),
            new_partitions: dice.within(0..4),
            retention: dice.one_of(&[0.0, 0.5, 0.9]),
            creates_again: dice.chance(0.3),
        }
    }
}

/// Changes the topic until faults are over.
pub async fn broker(world: World, mut plan: BrokerPlan) {
    let dice = world.dice("broker");
    loop {
        tokio::select! {
            biased;
            () = world.quiet().cancelled() => return,
            () = tokio::time::sleep(dice.millis(100..plan.pause_ms)) => {}
        }
        if dice.chance(plan.retention) {
            truncate(&world, &dice);
        } else if plan.creates_again && dice.chance(0.3) {
            plan.creates_again = false;
            create_again(&world, &dice).await;
        } else if plan.new_partitions > 0 {
            plan.new_partitions -= 1;
            add_partition(&world);
        }
    }
}

fn who() -> Who {
    Who { role: Role::World, name: "broker".to_owned() }
}

fn add_partition(world: &World) {
    let partitions = world.record(|records| {
        records.partitions += 1;
        records.partitions
    });
    world.log().create_topic(TOPIC, partitions);
    world.note(&who(), format!("topic {TOPIC} has {partitions} partitions"));
}

/// Retention removes the oldest messages of a partition, read or not.
fn truncate(world: &World, dice: &Dice) {
    let partitions = world.read(|records| records.partitions);
    let number = dice.within(0..u64::from(partitions.unsigned_abs()).max(1));
    let of = partition(i32::try_from(number).unwrap_or(0));
    let (low, high) = (world.log().low(&of), world.log().high(&of));
    if low >= high {
        return;
    }
    let kept = dice.within(0..(high - low).unsigned_abs() + 1);
    let low = high - i64::try_from(kept).unwrap_or(0);
    world.log().truncate_below(&of, low);
    world.record(|records| records.truncated.insert(of.clone(), low));
    world.note(&who(), format!("retention: {of} begins at {low}"));
}

/// The topic is deleted, and is there again under another id after a while.
async fn create_again(world: &World, dice: &Dice) {
    let partitions = world.record(|records| {
        records.truncated.clear();
        records.incarnation += 1;
        std::mem::take(&mut records.partitions)
    });
    world.log().delete_topic(TOPIC);
    world.note(&who(), format!("topic {TOPIC} is deleted"));
    tokio::time::sleep(Duration::from_millis(dice.one_of(&[0, 10, 2_000]))).await;
    world.log().create_topic(TOPIC, partitions);
    world.record(|records| records.partitions = partitions);
    world.note(&who(), format!("topic {TOPIC} is created again"));
}
