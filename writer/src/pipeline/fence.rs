//! What follows from being overtaken. Pure.
//!
//! When a flush is overtaken, or discarded for a revoke, later flushes of this process that touch its partitions have
//! lost their place too, and so have those that touch theirs (`fence_model.py`: without this, rows are lost).

use std::collections::{BTreeMap, BTreeSet};

use firn_table::ledger::{CommitId, OffsetRange, TopicPartition};

use crate::{Error, ErrorKind};

/// Goes over flushes in order and tells which of them have to go.
#[derive(Debug)]
pub(crate) struct Touched {
    partitions: BTreeSet<TopicPartition>,
    starts: BTreeMap<TopicPartition, i64>,
}

impl Touched {
    /// Begins with partitions whose flushes have to go.
    pub(crate) fn new(partitions: impl IntoIterator<Item = TopicPartition>) -> Self {
        Self { partitions: partitions.into_iter().collect(), starts: BTreeMap::new() }
    }

    /// Whether a flush with these ranges has to go; its partitions are touched from then on.
    pub(crate) fn takes<'a>(&mut self, ranges: impl Iterator<Item = &'a OffsetRange> + Clone) -> bool {
        if !ranges.clone().any(|r| self.partitions.contains(&r.partition)) {
            return false;
        }
        for range in ranges {
            self.partitions.insert(range.partition.clone());
            self.starts.entry(range.partition.clone()).or_insert(range.start);
        }
        true
    }

    /// The partitions of the flushes that had to go, each with the start of its first range.
    pub(crate) fn into_starts(self) -> BTreeMap<TopicPartition, i64> {
        self.starts
    }
}

/// Counts overtaken flushes against commits, to tell a rolling restart from two deployments under one name.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rivalry {
    in_a_row: u32,
    /// Two for each overtaken flush, one back for each commit: it grows where commits and overtakings alternate.
    score: u32,
}

impl Rivalry {
    pub(crate) fn committed(&mut self) {
        self.in_a_row = 0;
        self.score = self.score.saturating_sub(1);
    }

    /// Counts an overtaken flush; an error where it happened too often.
    pub(crate) fn overtaken(
        &mut self,
        limit: u32,
        ours: CommitId,
        by: Option<CommitId>,
    ) -> Result<(), Error> {
        self.in_a_row += 1;
        self.score += 2;
        if self.in_a_row < limit && self.score < limit.saturating_mul(2) {
            return Ok(());
        }
        let by = by.map_or_else(|| "another commit".to_owned(), |id| format!("commit `{id}`"));
        let message = format!(
            "the last {} flushes were overtaken, this one (commit `{ours}`) by {by}: two deployments use the same \
             writer name on the same partitions. Nothing is doubled or lost; stop one of them or give it another name",
            self.in_a_row
        );
        Err(Error::new(ErrorKind::Overtaken, message))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ranges::{Counts, counted};

    fn tp(partition: i32) -> TopicPartition {
        TopicPartition { topic: "t".to_owned(), partition }
    }

    fn range(partition: i32, start: i64) -> OffsetRange {
        counted(tp(partition), start, start + 5, Counts { rows: 5, rejected: 0 }).unwrap()
    }

    #[test]
    fn what_shares_a_partition_goes_and_touches_its_other_partitions() {
        let flushes =
            [vec![range(3, 0)], vec![range(0, 10), range(1, 20)], vec![range(1, 25)], vec![range(2, 5)]];
        let mut touched = Touched::new([tp(0)]);
        let gone: Vec<bool> = flushes.iter().map(|f| touched.takes(f.iter())).collect();
        assert_eq!(gone, [false, true, true, false]);
        assert_eq!(touched.into_starts(), BTreeMap::from([(tp(0), 10), (tp(1), 20)]));
    }

    fn id(counter: u64) -> CommitId {
        CommitId { instance: Uuid::nil(), counter }
    }

    #[test]
    fn many_overtakings_in_a_row_stop_and_name_both_commits() {
        let mut rivalry = Rivalry::default();
        for _ in 0..3 {
            rivalry.overtaken(4, id(1), None).unwrap();
        }
        let error = rivalry.overtaken(4, id(1), Some(id(2))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overtaken);
        let text = error.to_string();
        assert!(text.contains(&id(1).to_string()) && text.contains(&id(2).to_string()), "{text}");
    }

    #[test]
    fn alternating_commits_stop_in_the_end_and_rare_overtakings_never() {
        let mut rivals = Rivalry::default();
        let rounds = (1..100).find(|_| {
            rivals.committed();
            rivals.overtaken(10, id(1), None).is_err()
        });
        assert!(rounds.is_some_and(|r| r <= 20), "{rounds:?}");
        let mut restarts = Rivalry::default();
        for _ in 0..1000 {
            (0..3).for_each(|_| restarts.committed());
            restarts.overtaken(10, id(1), None).unwrap();
        }
    }
}
