//! Claims: which process may go on from a cursor, where a second table is written before the first.
//!
//! The fence of a flush needs no owner: its check and the compare-and-set see one base. With dead letters there are
//! two tables and no commit over both, so what a process learnt of one must not be outrun in the other. A process
//! claims its partitions in both tables before it reads what the dead letters hold; from then on a commit under an
//! older claim is overtaken, also one that was on its way. The property `firn.claim.<writer>`
//! (`firn.claim.<branch>.<writer>` off `main`) holds, per topic partition, the snapshot id of the claiming commit.

use std::collections::{BTreeMap, HashMap};

use super::{OffsetRange, TopicPartition, WriterName};
use crate::{Error, ErrorKind, Result};

/// The claims of one writer name on one branch, or those that a process holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims(BTreeMap<TopicPartition, i64>);

impl Claims {
    /// Claims of `partitions` by the commit that adds this snapshot.
    #[must_use]
    pub fn by(snapshot_id: i64, partitions: impl IntoIterator<Item = TopicPartition>) -> Self {
        Self(partitions.into_iter().map(|partition| (partition, snapshot_id)).collect())
    }

    /// Reads the claims from the table's properties. `Ledger` where they cannot be understood.
    pub(crate) fn read(
        properties: &HashMap<String, String>,
        branch: &str,
        writer: &WriterName,
    ) -> Result<Self> {
        let name = claim_property(branch, writer);
        let Some(text) = properties.get(&name) else { return Ok(Self::default()) };
        let topics: BTreeMap<String, BTreeMap<i32, i64>> = serde_json::from_str(text).map_err(|e| {
            let message = format!("the claims in property `{name}` cannot be read: unset it to go on");
            Error::new(ErrorKind::Ledger, message).with_source(e)
        })?;
        let of_topic = |(topic, partitions): (String, BTreeMap<i32, i64>)| {
            partitions
                .into_iter()
                .map(move |(partition, claim)| (TopicPartition { topic: topic.clone(), partition }, claim))
        };
        Ok(Self(topics.into_iter().flat_map(of_topic).collect()))
    }

    /// The text of the property.
    pub(crate) fn to_text(&self) -> String {
        let mut topics: BTreeMap<&str, BTreeMap<i32, i64>> = BTreeMap::new();
        for (at, claim) in &self.0 {
            topics.entry(&at.topic).or_default().insert(at.partition, *claim);
        }
        serde_json::to_string(&topics).expect("maps with string and integer keys serialise")
    }

    /// Adds claims; they replace those of the same partitions.
    pub fn extend(&mut self, newer: Self) {
        self.0.extend(newer.0);
    }

    /// Whether, in a table with these claims, those that `held` has of `partitions` still stand.
    pub(crate) fn hold(&self, held: &Self, partitions: &[TopicPartition]) -> bool {
        partitions.iter().all(|at| self.0.contains_key(at) && self.0.get(at) == held.0.get(at))
    }

    /// Whether, in a table with these claims, `held` still stands for all partitions of `ranges`.
    pub(crate) fn allow(&self, held: &Self, ranges: &[OffsetRange]) -> bool {
        ranges.iter().all(|range| {
            let claim = self.0.get(&range.partition);
            claim.is_some() && claim == held.0.get(&range.partition)
        })
    }
}

/// The name of the property that holds a writer's claims on a branch.
pub(crate) fn claim_property(branch: &str, writer: &WriterName) -> String {
    if branch == "main" { format!("firn.claim.{writer}") } else { format!("firn.claim.{branch}.{writer}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tp(topic: &str, partition: i32) -> TopicPartition {
        TopicPartition { topic: topic.to_owned(), partition }
    }

    fn range(partition: TopicPartition) -> OffsetRange {
        OffsetRange { partition, start: 0, next: 1, rows: 1, rejected: 0, holes: 0 }
    }

    #[test]
    fn claims_come_back_from_their_text() {
        let writer = WriterName::new("w").unwrap();
        let mut claims = Claims::by(7, [tp("a", 0), tp("a", 1), tp("b", 0)]);
        claims.extend(Claims::by(9, [tp("a", 1)]));
        let properties = HashMap::from([("firn.claim.w".to_owned(), claims.to_text())]);
        assert_eq!(Claims::read(&properties, "main", &writer).unwrap(), claims);
        assert_eq!(Claims::read(&properties, "other", &writer).unwrap(), Claims::default());
        assert_eq!(claims.to_text(), r#"{"a":{"0":7,"1":9},"b":{"0":7}}"#);
        let broken = HashMap::from([("firn.claim.w".to_owned(), "7".to_owned())]);
        assert_eq!(Claims::read(&broken, "main", &writer).unwrap_err().kind(), ErrorKind::Ledger);
    }

    #[test]
    fn an_older_claim_stands_only_where_no_newer_one_was_made() {
        let held = Claims::by(7, [tp("a", 0), tp("a", 1)]);
        let mut table = held.clone();
        table.extend(Claims::by(9, [tp("a", 1)]));
        assert!(table.allow(&held, &[range(tp("a", 0))]));
        assert!(!table.allow(&held, &[range(tp("a", 0)), range(tp("a", 1))]));
        assert!(!table.allow(&held, &[range(tp("b", 0))]), "never claimed");
        assert!(!Claims::default().allow(&held, &[range(tp("a", 0))]), "the claim is gone");
    }
}
