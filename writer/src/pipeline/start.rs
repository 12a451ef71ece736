//! Where to begin in a partition: what the table, the topic and the configuration say together. Pure.

use std::collections::BTreeMap;

use firn_table::commit::{Guarantee, SourceIdentity};
use firn_table::ledger::{Cursor, Ledger, TopicPartition};

use crate::config::{OnGap, OnNewSource, Start, WriterConfig};
use crate::ranges::place;
use crate::source::Bounds;
use crate::{Error, ErrorKind, Result};

/// Where to begin in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// At this offset, which is the table's cursor or the first one ever.
    At(i64),
    /// At `to`, after `[from, to)` was recorded as lost.
    AfterGap { from: i64, to: i64 },
}

/// Decides for one partition. `cursor` is the table's, where it has one.
pub(crate) fn begin(
    config: &WriterConfig,
    partition: &TopicPartition,
    cursor: Option<&Cursor>,
    bounds: &Bounds,
) -> Result<Begin> {
    if config.guarantee == Guarantee::AtLeastOnce {
        let next = bounds.group.unwrap_or_else(|| first(config.start, bounds));
        return Ok(Begin::At(next.clamp(bounds.low, bounds.high)));
    }
    let Some(cursor) = cursor else {
        return Ok(Begin::At(first(config.start, bounds)));
    };
    if cursor.next > bounds.high {
        return Err(truncated(partition, cursor.next, bounds));
    }
    if cursor.next >= bounds.low {
        return Ok(Begin::At(cursor.next));
    }
    match config.on_gap {
        OnGap::Record => Ok(Begin::AfterGap { from: cursor.next, to: bounds.low }),
        OnGap::Stop => Err(gap(partition, cursor.next, bounds)),
    }
}

fn first(start: Start, bounds: &Bounds) -> i64 {
    match start {
        Start::Earliest => bounds.low,
        Start::Latest => bounds.high,
        Start::Group => bounds.group.unwrap_or(bounds.low).clamp(bounds.low, bounds.high),
        Start::Timestamp(_) => bounds.at_timestamp.unwrap_or(bounds.high),
    }
}

fn gap(partition: &TopicPartition, cursor: i64, bounds: &Bounds) -> Error {
    let message = format!(
        "{} no longer holds offsets {cursor} to {} (exclusive), which the table does not have: retention was faster \
         than the writer; they are lost to it. Go on after them with `--on-gap record`",
        place(partition),
        bounds.low
    );
    Error::new(ErrorKind::Ledger, message)
}

fn truncated(partition: &TopicPartition, cursor: i64, bounds: &Bounds) -> Error {
    let message = format!(
        "{} ends at offset {} but the table has it up to {cursor}: the topic was truncated, or deleted and created \
         again. Nothing was read. Start over in the new topic with `--on-new-source restart`, or set the cursor with \
         `firn offsets set`",
        place(partition),
        bounds.high
    );
    Error::new(ErrorKind::Ledger, message)
}

/// What follows from the identity of cluster and topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The ledger's, or unknown on either side.
    Same,
    /// These topics begin anew.
    Restart(Vec<String>),
}

/// Compares what the broker tells with what the ledger has. What either does not know is not compared.
pub(crate) fn identity(on_new: OnNewSource, ledger: &Ledger, now: &SourceIdentity) -> Result<Identity> {
    let mut differences = Vec::new();
    let mut topics: Vec<String> = Vec::new();
    if let (Some(old), Some(new)) = (&ledger.cluster_id, &now.cluster_id)
        && old != new
    {
        differences.push(format!("the Kafka cluster is `{new}`, the table was filled from cluster `{old}`"));
        topics.extend(ledger.cursors.keys().map(|p| p.topic.clone()));
    }
    for (topic, new) in &now.topic_ids {
        if let Some(old) = ledger.topic_ids.get(topic)
            && old != new
        {
            differences
                .push(format!("topic `{topic}` has the id `{new}`, the table was filled from id `{old}`"));
            topics.push(topic.clone());
        }
    }
    if differences.is_empty() {
        return Ok(Identity::Same);
    }
    if on_new == OnNewSource::Restart {
        topics.sort();
        topics.dedup();
        return Ok(Identity::Restart(topics));
    }
    let message = format!(
        "{}: it was deleted and created again, or is another one; its offsets mean other messages. Nothing was read. \
         Start over in it with `--on-new-source restart`",
        differences.join("; ")
    );
    Err(Error::new(ErrorKind::Ledger, message))
}

/// Whether a topic is another one than it was: what was read of it before must not be committed under the new id,
/// beside which it would pass for the new topic's messages.
pub(crate) fn is_created_again(before: &SourceIdentity, now: &SourceIdentity, topic: &str) -> bool {
    let differ =
        |old: Option<&String>, new: Option<&String>| matches!((old, new), (Some(o), Some(n)) if o != n);
    differ(before.cluster_id.as_ref(), now.cluster_id.as_ref())
        || differ(before.topic_ids.get(topic), now.topic_ids.get(topic))
}

/// Cursors with which topics begin anew at the oldest offset that they hold.
pub(crate) fn restarted(
    ledger: &Ledger,
    topics: &[String],
    bounds: &BTreeMap<TopicPartition, Bounds>,
) -> BTreeMap<TopicPartition, Cursor> {
    let mut cursors = ledger.cursors.clone();
    cursors.retain(|p, _| !topics.contains(&p.topic));
    for (partition, b) in bounds.iter().filter(|(p, _)| topics.contains(&p.topic)) {
        cursors.insert(partition.clone(), fresh(b.low));
    }
    cursors
}

/// A cursor that holds nothing yet.
pub(crate) fn fresh(at: i64) -> Cursor {
    Cursor { start: at, next: at, rows: 0, rejected: 0, holes: 0, gaps: 0 }
}

/// A cursor after a recorded gap.
pub(crate) fn after_gap(cursor: &Cursor, to: i64) -> Cursor {
    let lost = u64::try_from(to - cursor.next).unwrap_or(0);
    Cursor { next: to, gaps: cursor.gaps + lost, ..cursor.clone() }
}

#[cfg(test)]
mod tests {
    use firn_table::commit::Guarantee;
    use firn_table::ledger::{CommitId, WriterName};
    use uuid::Uuid;

    use super::*;

    fn config() -> WriterConfig {
        WriterConfig::new(WriterName::new("w").unwrap(), vec!["t".to_owned()], "b:1")
    }

    fn tp(partition: i32) -> TopicPartition {
        TopicPartition { topic: "t".to_owned(), partition }
    }

    fn cursor(next: i64) -> Cursor {
        Cursor { start: 0, next, rows: next as u64, rejected: 0, holes: 0, gaps: 0 }
    }

    fn bounds(low: i64, high: i64) -> Bounds {
        Bounds { low, high, group: Some(7), at_timestamp: None }
    }

    #[test]
    fn without_a_cursor_the_configuration_decides() {
        for (start, expected) in
            [(Start::Earliest, 3), (Start::Latest, 20), (Start::Group, 7), (Start::Timestamp(1), 20)]
        {
            let config = WriterConfig { start, ..config() };
            assert_eq!(begin(&config, &tp(0), None, &bounds(3, 20)).unwrap(), Begin::At(expected));
        }
        let config = WriterConfig { start: Start::Timestamp(1), ..config() };
        let found = Bounds { at_timestamp: Some(9), ..bounds(3, 20) };
        assert_eq!(begin(&config, &tp(0), None, &found).unwrap(), Begin::At(9));
    }

    #[test]
    fn the_table_decides_against_the_group() {
        let begun = begin(&config(), &tp(0), Some(&cursor(12)), &bounds(3, 20)).unwrap();
        assert_eq!(begun, Begin::At(12));
    }

    #[test]
    fn at_least_once_begins_at_the_group() {
        let config = WriterConfig { guarantee: Guarantee::AtLeastOnce, ..config() };
        assert_eq!(begin(&config, &tp(0), Some(&cursor(12)), &bounds(3, 20)).unwrap(), Begin::At(7));
        let lost = Bounds { group: Some(1), ..bounds(3, 20) };
        assert_eq!(begin(&config, &tp(0), None, &lost).unwrap(), Begin::At(3));
    }

    #[test]
    fn a_gap_stops_and_names_the_range_or_is_recorded() {
        let error = begin(&config(), &tp(2), Some(&cursor(0)), &bounds(563, 900)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ledger);
        assert!(error.to_string().contains("partition 2 no longer holds offsets 0 to 563"), "{error}");
        let config = WriterConfig { on_gap: OnGap::Record, ..config() };
        let begun = begin(&config, &tp(2), Some(&cursor(0)), &bounds(563, 900)).unwrap();
        assert_eq!(begun, Begin::AfterGap { from: 0, to: 563 });
        let after = after_gap(&Cursor { gaps: 1, start: -1, ..cursor(0) }, 563);
        assert_eq!((after.next, after.gaps), (563, 564));
    }

    #[test]
    fn a_topic_that_is_shorter_than_the_table_stops() {
        let error = begin(&config(), &tp(0), Some(&cursor(10_000)), &bounds(0, 100)).unwrap_err();
        assert!(error.to_string().contains("ends at offset 100"), "{error}");
    }

    #[test]
    fn another_topic_id_stops_or_restarts_that_topic_alone() {
        let ledger = Ledger {
            commit_id: CommitId { instance: Uuid::nil(), counter: 1 },
            snapshot_id: 1,
            sequence_number: 1,
            guarantee: Guarantee::ExactlyOnce,
            cluster_id: Some("c".to_owned()),
            topic_ids: BTreeMap::from([
                ("t".to_owned(), "old".to_owned()),
                ("u".to_owned(), "same".to_owned()),
            ]),
            cursors: BTreeMap::from([
                (tp(0), cursor(50)),
                (TopicPartition { topic: "u".to_owned(), partition: 0 }, cursor(9)),
            ]),
        };
        let now = SourceIdentity {
            cluster_id: Some("c".to_owned()),
            topic_ids: BTreeMap::from([
                ("t".to_owned(), "new".to_owned()),
                ("u".to_owned(), "same".to_owned()),
            ]),
        };
        let error = identity(OnNewSource::Stop, &ledger, &now).unwrap_err();
        assert!(error.to_string().contains("topic `t` has the id `new`"), "{error}");
        let restart = identity(OnNewSource::Restart, &ledger, &now).unwrap();
        assert_eq!(restart, Identity::Restart(vec!["t".to_owned()]));
        let cursors = restarted(&ledger, &["t".to_owned()], &BTreeMap::from([(tp(0), bounds(5, 9))]));
        assert_eq!(cursors[&tp(0)], fresh(5));
        assert_eq!(cursors.len(), 2);
        let old =
            SourceIdentity { topic_ids: BTreeMap::from([("t".to_owned(), "old".to_owned())]), ..now.clone() };
        assert!(is_created_again(&old, &now, "t"));
        assert!(!is_created_again(&old, &now, "u"));
        assert!(!is_created_again(&now, &now, "t"));
        assert!(!is_created_again(&SourceIdentity::default(), &now, "t"));
        let silent = SourceIdentity::default();
        assert_eq!(identity(OnNewSource::Stop, &ledger, &silent).unwrap(), Identity::Same);
    }
}
