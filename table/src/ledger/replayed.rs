//! Which dead letters became rows after all: offsets, in a table property that is set with the rows.
//!
//! `firn.replayed.<writer>` (`firn.replayed.<branch>.<writer>` off `main`) holds, per topic and partition, runs
//! `[first, next)` of offsets. A topic whose id is known is `topic@id`: created again, its offsets mean others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::WriterName;
use crate::{Error, ErrorKind, Result};

/// The property stands in every metadata file: more runs than these are refused.
const MAX_RUNS: usize = 10_000;

/// Offsets that were replayed, by topic (with its id) and partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed(BTreeMap<(String, i32), BTreeSet<i64>>);

type Runs = BTreeMap<String, BTreeMap<i32, Vec<(i64, i64)>>>;

impl Replayed {
    /// Adds one offset; false where it is in already.
    pub fn insert(&mut self, topic: &str, topic_id: Option<&str>, partition: i32, offset: i64) -> bool {
        self.0.entry((key(topic, topic_id), partition)).or_default().insert(offset)
    }

    /// Whether an offset was replayed.
    #[must_use]
    pub fn contains(&self, topic: &str, topic_id: Option<&str>, partition: i32, offset: i64) -> bool {
        self.0.get(&(key(topic, topic_id), partition)).is_some_and(|offsets| offsets.contains(&offset))
    }

    /// Reads it from a table's properties; empty where there is none. `writer` is the name that replays commit under.
    pub fn read(properties: &HashMap<String, String>, branch: &str, writer: &WriterName) -> Result<Self> {
        let name = replayed_property(branch, writer);
        let Some(text) = properties.get(&name) else { return Ok(Self::default()) };
        let runs: Runs = serde_json::from_str(text).map_err(|e| {
            let message =
                format!("the replayed offsets in property `{name}` cannot be read: nothing is replayed");
            Error::new(ErrorKind::Ledger, message).with_source(e)
        })?;
        let mut replayed = Self::default();
        for (topic, partitions) in runs {
            for (partition, runs) in partitions {
                let offsets = runs.into_iter().flat_map(|(first, next)| first..next).collect();
                replayed.0.insert((topic.clone(), partition), offsets);
            }
        }
        Ok(replayed)
    }

    /// Joins `more`; `None` where any of it is in already.
    pub(crate) fn joined(mut self, more: &Self) -> Option<Self> {
        for (place, offsets) in &more.0 {
            let known = self.0.entry(place.clone()).or_default();
            if !known.is_disjoint(offsets) {
                return None;
            }
            known.extend(offsets);
        }
        Some(self)
    }

    /// The text of the property. `Unsupported` where it would be too long.
    pub(crate) fn to_text(&self) -> Result<String> {
        let mut all = Runs::new();
        let mut count = 0;
        for ((topic, partition), offsets) in &self.0 {
            let mut runs: Vec<(i64, i64)> = Vec::new();
            for offset in offsets {
                match runs.last_mut() {
                    Some((_, next)) if next == offset => *next += 1,
                    _ => runs.push((*offset, offset + 1)),
                }
            }
            count += runs.len();
            all.entry(topic.clone()).or_default().insert(*partition, runs);
        }
        if count > MAX_RUNS {
            let message = format!(
                "the record of replayed offsets would have {count} runs, the limit is {MAX_RUNS}: nothing was replayed. \
                 Produce such messages to the topic again instead"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(serde_json::to_string(&all).expect("maps with string and integer keys serialise"))
    }
}

fn key(topic: &str, topic_id: Option<&str>) -> String {
    topic_id.map_or_else(|| topic.to_owned(), |id| format!("{topic}@{id}"))
}

/// The name of the property for replays that commit under this name.
pub(crate) fn replayed_property(branch: &str, writer: &WriterName) -> String {
    if branch == "main" {
        format!("firn.replayed.{writer}")
    } else {
        format!("firn.replayed.{branch}.{writer}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replayed(offsets: &[i64]) -> Replayed {
        let mut all = Replayed::default();
        for offset in offsets {
            assert!(all.insert("t", Some("id"), 0, *offset));
        }
        all
    }

    #[test]
    fn offsets_come_back_from_their_runs() {
        let writer = WriterName::new("w-replay").unwrap();
        let all = replayed(&[3, 4, 5, 9]);
        let text = all.to_text().unwrap();
        assert_eq!(text, r#"{"t@id":{"0":[[3,6],[9,10]]}}"#);
        let properties = HashMap::from([("firn.replayed.w-replay".to_owned(), text)]);
        let read = Replayed::read(&properties, "main", &writer).unwrap();
        assert_eq!(read, all);
        assert!(read.contains("t", Some("id"), 0, 4) && !read.contains("t", Some("other"), 0, 4));
    }

    #[test]
    fn what_was_replayed_cannot_be_joined_again() {
        assert_eq!(replayed(&[1]).joined(&replayed(&[2])), Some(replayed(&[1, 2])));
        assert_eq!(replayed(&[1, 2]).joined(&replayed(&[2, 3])), None);
    }

    #[test]
    fn a_record_without_bound_is_refused() {
        let offsets: Vec<i64> = (0..10_001).map(|n| n * 2).collect();
        assert_eq!(replayed(&offsets).to_text().unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
