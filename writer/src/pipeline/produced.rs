//! When messages were produced, as counts by millisecond.

use std::collections::BTreeMap;

/// Counts of messages by timestamp. Above a number of distinct timestamps it becomes coarser instead of larger, and
/// counts a message as older than it is, never as younger.
#[derive(Debug, Clone)]
pub(crate) struct Produced {
    counts: BTreeMap<i64, u64>,
    resolution_ms: i64,
}

const MAX_ENTRIES: usize = 2048;

impl Default for Produced {
    fn default() -> Self {
        Self { counts: BTreeMap::new(), resolution_ms: 1 }
    }
}

impl Produced {
    pub(crate) fn add(&mut self, timestamp_ms: i64, count: u64) {
        let slot = timestamp_ms.div_euclid(self.resolution_ms) * self.resolution_ms;
        *self.counts.entry(slot).or_default() += count;
        while self.counts.len() > MAX_ENTRIES {
            self.coarsen();
        }
    }

    pub(crate) fn absorb(&mut self, other: Self) {
        while self.resolution_ms < other.resolution_ms {
            self.coarsen();
        }
        for (at, count) in other.counts {
            self.add(at, count);
        }
    }

    pub(crate) fn into_pairs(self) -> Vec<(i64, u64)> {
        self.counts.into_iter().collect()
    }

    fn coarsen(&mut self) {
        self.resolution_ms *= 2;
        let resolution = self.resolution_ms;
        let mut coarser = BTreeMap::new();
        for (at, count) in std::mem::take(&mut self.counts) {
            *coarser.entry(at.div_euclid(resolution) * resolution).or_default() += count;
        }
        self.counts = coarser;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_small_and_never_makes_a_message_younger() {
        let mut produced = Produced::default();
        for at in 0..10_000 {
            produced.add(at * 3, 2);
        }
        let mut other = Produced::default();
        other.add(7, 1);
        other.absorb(produced);
        let pairs = other.into_pairs();
        assert!(pairs.len() <= MAX_ENTRIES, "{}", pairs.len());
        assert_eq!(pairs.iter().map(|p| p.1).sum::<u64>(), 20_001);
        assert!(pairs.iter().all(|p| p.0 <= 29_997));
        assert_eq!(pairs[0].0, 0);
    }
}
