//! Which shard a message goes to. Pure: a function of the messages of one fetch and the number of shards.
//!
//! Messages of one key go to one shard, so that its file holds all of the key; a key that is more than a shard's share
//! of the messages (skew) is spread over as many shards as its share needs, in runs of offsets.

use std::collections::HashMap;

use crate::decode::Message;

/// Fewer messages than this say nothing about skew.
const MIN_SAMPLE: usize = 64;

/// The shard of each message, in their order.
pub(crate) fn assign(messages: &[&Message<'_>], shards: u32) -> Vec<u32> {
    let hashes: Vec<u64> = messages.iter().map(|m| hash(m)).collect();
    let mut hot = hot_keys(messages, &hashes, shards);
    hashes
        .iter()
        .map(|hash| {
            let home = (hash >> 32) % u64::from(shards);
            let step = hot.get_mut(hash).map_or(0, Hot::step);
            ((home + step) % u64::from(shards)) as u32
        })
        .collect()
}

/// A key with more than a shard's share of the messages.
struct Hot {
    messages: u64,
    seen: u64,
    /// Shards that it is spread over.
    width: u64,
}

impl Hot {
    /// How far from its home the next message goes.
    fn step(&mut self) -> u64 {
        let step = self.seen * self.width / self.messages;
        self.seen += 1;
        step
    }
}

fn hot_keys(messages: &[&Message<'_>], hashes: &[u64], shards: u32) -> HashMap<u64, Hot> {
    if messages.len() < MIN_SAMPLE {
        return HashMap::new();
    }
    let mut counts: HashMap<u64, u64> = HashMap::new();
    let keyed = messages.iter().zip(hashes).filter(|(m, _)| m.key.is_some());
    keyed.for_each(|(_, hash)| *counts.entry(*hash).or_default() += 1);
    let (all, shards) = (messages.len() as u64, u64::from(shards));
    counts.retain(|_, count| *count * shards > all);
    let spread = |(hash, messages): (u64, u64)| {
        (hash, Hot { messages, seen: 0, width: (messages * shards).div_ceil(all).clamp(2, shards) })
    };
    counts.into_iter().map(spread).collect()
}

/// FNV-1a with a final mix, since Kafka's own partitioner used another hash of the same key already. Messages without
/// a key go by runs of offsets, so that most fetches stay whole.
fn hash(message: &Message<'_>) -> u64 {
    let hash = match message.key {
        Some(key) => key
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3)),
        None => (message.offset >> 10) as u64 ^ ((message.partition as u64) << 32),
    };
    (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards_of(keys: &[String], shards: u32) -> Vec<u32> {
        let messages: Vec<_> = (0i64..)
            .zip(keys)
            .map(|(offset, key)| Message { offset, key: Some(key.as_bytes()), ..Message::default() })
            .collect();
        assign(&messages.iter().collect::<Vec<_>>(), shards)
    }

    /// 10,000 messages of a hundred keys; key n has a weight of n^-1.2.
    fn zipf() -> Vec<String> {
        let weights: Vec<f64> = (1..=100).map(|n| f64::from(n).powf(-1.2)).collect();
        let total: f64 = weights.iter().sum();
        let mut owed = vec![0.0; 100];
        (0..10_000)
            .map(|_| {
                owed.iter_mut().zip(&weights).for_each(|(owed, weight)| *owed += weight / total);
                let next = (0..100).max_by(|a, b| f64::total_cmp(&owed[*a], &owed[*b])).unwrap();
                owed[next] -= 1.0;
                format!("key-{next}")
            })
            .collect()
    }

    #[test]
    fn a_hot_key_is_spread_and_others_are_not() {
        let keys = zipf();
        let shards = shards_of(&keys, 8);
        let of = |key: &str| {
            let mut of: Vec<u32> =
                keys.iter().zip(&shards).filter(|(k, _)| *k == key).map(|(_, s)| *s).collect();
            of.dedup();
            of
        };
        let share = keys.iter().filter(|k| *k == "key-0").count();
        assert_eq!(share * 8 / 10_000, 2, "the hottest key is more than two shards' share: {share}");
        assert_eq!(of("key-0").len(), 3, "three runs of offsets in three shards");
        for n in 2..100 {
            assert_eq!(of(&format!("key-{n}")).len(), 1, "key {n} stays whole");
        }
        let largest = (0..8).map(|shard| shards.iter().filter(|s| **s == shard).count()).max().unwrap();
        assert!(largest < 2 * 10_000 / 8 + share / 8, "the largest shard has {largest}");
        assert_eq!(shards, shards_of(&keys, 8), "the same messages go the same way");
    }

    #[test]
    fn one_key_alone_fills_all_shards_evenly() {
        let shards = shards_of(&vec!["k".to_owned(); 1_000], 4);
        for shard in 0..4 {
            assert_eq!(shards.iter().filter(|s| **s == shard).count(), 250);
        }
    }

    #[test]
    fn few_messages_are_no_skew_and_no_key_is_no_key() {
        let few = shards_of(&vec!["k".to_owned(); MIN_SAMPLE - 1], 4);
        assert!(few.iter().all(|s| *s == few[0]));
        let messages: Vec<_> = (0..3_000).map(|offset| Message { offset, ..Message::default() }).collect();
        let shards = assign(&messages.iter().collect::<Vec<_>>(), 4);
        assert!(
            shards.chunks(1_024).all(|run| run.iter().all(|s| *s == run[0])),
            "runs of offsets stay whole"
        );
    }
}
