//! How a commit of a writer describes itself in the summary of its snapshot.
//!
//! Three short entries: `firn.writer`, `firn.commit-id`, and, for up to [`MAX_PARTITIONS`] partitions,
//! `firn.ranges`: `topic partition:start+offsets[/rejected/holes],…;topic …`. Kafka's topic names hold none of the
//! separators.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use super::{CommitId, OffsetRange, TopicPartition, WriterName};

const WRITER: &str = "firn.writer";
const COMMIT_ID: &str = "firn.commit-id";
const RANGES: &str = "firn.ranges";
const CURSORS: &str = "firn.cursors";

/// Above this many partitions a summary does not list the ranges.
const MAX_PARTITIONS: usize = 64;

/// What a snapshot's summary says about the commit that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRecord {
    /// Whose commit it was.
    pub writer: WriterName,
    /// The commit.
    pub commit_id: CommitId,
    /// The ranges it holds; `None` where there were too many to list.
    pub ranges: Option<Vec<OffsetRange>>,
    /// Whether a person's decision set the cursors in it, so that offsets need not go on from the commit before.
    pub sets_cursors: bool,
}

impl CommitRecord {
    /// Reads it from a summary; `None` where the snapshot is not a commit of a writer of firn.
    #[must_use]
    pub fn read(summary: &HashMap<String, String>) -> Option<Self> {
        Some(Self {
            writer: WriterName::new(summary.get(WRITER)?.as_str()).ok()?,
            commit_id: summary.get(COMMIT_ID)?.parse().ok()?,
            ranges: summary.get(RANGES).and_then(|text| parse_ranges(text)),
            sets_cursors: summary.contains_key(CURSORS),
        })
    }

    /// The entries for the summary.
    #[must_use]
    pub fn entries(&self) -> BTreeMap<String, String> {
        let mut entries = BTreeMap::from([
            (WRITER.to_owned(), self.writer.to_string()),
            (COMMIT_ID.to_owned(), self.commit_id.to_string()),
        ]);
        if let Some(ranges) = self.ranges.as_deref().filter(|ranges| listable(ranges)) {
            entries.insert(RANGES.to_owned(), format_ranges(ranges));
        }
        if self.sets_cursors {
            entries.insert(CURSORS.to_owned(), "set".to_owned());
        }
        entries
    }
}

fn listable(ranges: &[OffsetRange]) -> bool {
    ranges.len() <= MAX_PARTITIONS && ranges.iter().all(OffsetRange::is_balanced)
}

fn format_ranges(ranges: &[OffsetRange]) -> String {
    let mut by_topic: BTreeMap<&str, Vec<&OffsetRange>> = BTreeMap::new();
    for range in ranges {
        by_topic.entry(&range.partition.topic).or_default().push(range);
    }
    let mut text = String::new();
    for (topic, mut ranges) in by_topic {
        ranges.sort_by_key(|range| range.partition.partition);
        let separator = if text.is_empty() { "" } else { ";" };
        let _ = write!(text, "{separator}{topic} ");
        for (index, range) in ranges.into_iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            let _ = write!(text, "{separator}{}:{}+{}", range.partition.partition, range.start, range.len());
            if range.rejected + range.holes > 0 {
                let _ = write!(text, "/{}/{}", range.rejected, range.holes);
            }
        }
    }
    text
}

fn parse_ranges(text: &str) -> Option<Vec<OffsetRange>> {
    let mut ranges = Vec::new();
    for part in text.split(';').filter(|part| !part.is_empty()) {
        let (topic, list) = part.split_once(' ')?;
        for item in list.split(',') {
            ranges.push(parse_range(topic, item)?);
        }
    }
    Some(ranges)
}

fn parse_range(topic: &str, item: &str) -> Option<OffsetRange> {
    let (partition, rest) = item.split_once(':')?;
    let (start, rest) = rest.split_once('+')?;
    let mut counts = rest.split('/').map(str::parse::<u64>);
    let offsets = counts.next()?.ok()?;
    let rejected = counts.next().unwrap_or(Ok(0)).ok()?;
    let holes = counts.next().unwrap_or(Ok(0)).ok()?;
    let start: i64 = start.parse().ok()?;
    Some(OffsetRange {
        partition: TopicPartition { topic: topic.to_owned(), partition: partition.parse().ok()? },
        start,
        next: start.checked_add(i64::try_from(offsets).ok()?)?,
        rows: offsets.checked_sub(rejected)?.checked_sub(holes)?,
        rejected,
        holes,
    })
}
