//! The algebra of offset ranges: what a decoded chunk covers, and how chunks and flushes join.
//!
//! A range always satisfies `rows + rejected + holes == next - start`, and ranges of one topic partition join only
//! where one ends and the next begins. Both are checked wherever ranges are made or joined; a violation is a defect
//! of firn and stops the writer before it reaches the table.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use firn_table::ledger::{OffsetRange, TopicPartition};

use crate::{Error, ErrorKind, Result};

/// What became of the messages of a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Messages that became rows.
    pub rows: u64,
    /// Messages that were rejected and counted.
    pub rejected: u64,
}

/// The range `[start, next)` in which `counts` messages were delivered; all other offsets in it are holes.
pub(crate) fn counted(
    partition: TopicPartition,
    start: i64,
    next: i64,
    counts: Counts,
) -> Result<OffsetRange> {
    let covered = u64::try_from(next - start).ok();
    let holes = covered.and_then(|c| c.checked_sub(counts.rows)?.checked_sub(counts.rejected));
    let Some(holes) = holes else {
        return Err(defect(format!(
            "{} rows and {} rejected messages do not fit in offsets {start} to {next} of {}",
            counts.rows,
            counts.rejected,
            place(&partition)
        )));
    };
    Ok(OffsetRange { partition, start, next, rows: counts.rows, rejected: counts.rejected, holes })
}

/// Ranges of several topic partitions, each at most once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges(BTreeMap<TopicPartition, OffsetRange>);

impl Ranges {
    /// Joins a range to the one before it.
    pub(crate) fn append(&mut self, range: OffsetRange) -> Result<()> {
        let delivered = range.rows + range.rejected + range.holes;
        if range.start > range.next || i128::from(delivered) != i128::from(range.next - range.start) {
            return Err(defect(format!("{range:?} does not add up")));
        }
        match self.0.entry(range.partition.clone()) {
            Entry::Vacant(slot) => {
                slot.insert(range);
            }
            Entry::Occupied(mut slot) => {
                let held = slot.get_mut();
                if held.next != range.start {
                    return Err(defect(format!(
                        "offsets of {} end at {} and go on at {}",
                        place(&range.partition),
                        held.next,
                        range.start
                    )));
                }
                held.next = range.next;
                held.rows += range.rows;
                held.rejected += range.rejected;
                held.holes += range.holes;
            }
        }
        Ok(())
    }

    /// Joins the ranges of a later flush.
    pub(crate) fn append_all(&mut self, later: Self) -> Result<()> {
        later.0.into_values().try_for_each(|range| self.append(range))
    }

    /// Whether a topic partition is in it.
    #[must_use]
    pub(crate) fn contains(&self, partition: &TopicPartition) -> bool {
        self.0.contains_key(partition)
    }

    /// The topic partitions.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = &TopicPartition> {
        self.0.keys()
    }

    /// The ranges.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &OffsetRange> + Clone {
        self.0.values()
    }

    /// Whether there is no range.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges, in order of topic partition.
    #[must_use]
    pub(crate) fn into_vec(self) -> Vec<OffsetRange> {
        self.0.into_values().collect()
    }
}

/// A topic partition for a message.
pub(crate) fn place(p: &TopicPartition) -> String {
    format!("topic `{}`, partition {}", p.topic, p.partition)
}

fn defect(message: String) -> Error {
    Error::new(ErrorKind::Internal, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tp(partition: i32) -> TopicPartition {
        TopicPartition { topic: "t".to_owned(), partition }
    }

    fn range(partition: i32, start: i64, next: i64, rows: u64, rejected: u64) -> OffsetRange {
        counted(tp(partition), start, next, Counts { rows, rejected }).unwrap()
    }

    #[test]
    fn offsets_that_were_not_delivered_are_holes() {
        assert_eq!(range(0, 10, 20, 6, 1).holes, 3);
        assert_eq!(range(0, 10, 10, 0, 0).holes, 0);
    }

    #[test]
    fn more_messages_than_offsets_are_refused() {
        assert!(counted(tp(0), 10, 12, Counts { rows: 2, rejected: 1 }).is_err());
        assert!(counted(tp(0), 10, 9, Counts::default()).is_err());
    }

    #[test]
    fn a_range_that_does_not_follow_is_refused() {
        let mut ranges = Ranges::default();
        ranges.append(range(0, 0, 5, 5, 0)).unwrap();
        assert!(ranges.clone().append(range(0, 6, 7, 1, 0)).is_err(), "gap");
        assert!(ranges.clone().append(range(0, 4, 7, 3, 0)).is_err(), "overlap");
        ranges.append(range(0, 5, 7, 1, 1)).unwrap();
        ranges.append(range(1, 3, 4, 1, 0)).unwrap();
        assert_eq!(ranges.into_vec(), [range(0, 0, 7, 6, 1), range(1, 3, 4, 1, 0)]);
    }

    #[test]
    fn a_range_that_does_not_add_up_is_refused() {
        let wrong = OffsetRange { holes: 1, ..range(0, 0, 5, 5, 0) };
        assert!(Ranges::default().append(wrong).is_err());
    }

    proptest! {
        #[test]
        fn joining_in_any_grouping_gives_the_same(cuts in prop::collection::vec((1i64..5, 0u64..3, 0u64..2), 1..20), at in 0usize..20) {
            let mut start = 0;
            let pieces: Vec<_> = cuts.iter().map(|&(len, rows, rejected)| {
                let len = len.max((rows + rejected) as i64);
                start += len;
                range(0, start - len, start, rows, rejected)
            }).collect();
            let at = at.min(pieces.len());
            let join = |pieces: &[OffsetRange]| {
                let mut all = Ranges::default();
                for piece in pieces { all.append(piece.clone()).unwrap(); }
                all
            };
            let mut grouped = join(&pieces[..at]);
            grouped.append_all(join(&pieces[at..])).unwrap();
            prop_assert_eq!(join(&pieces), grouped);
        }
    }
}
