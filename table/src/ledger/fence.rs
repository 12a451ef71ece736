//! The fence: whether a flush may be committed on a base, and the ledger after it.
//!
//! A flush is committed only if, in the base, `cursor == range.start` for every partition in it. The check and the
//! catalog's compare-and-set see the same base, and nothing else is needed for exactly-once. A partition without a
//! cursor is defined by its first flush.

use std::collections::BTreeMap;

use super::{CommitId, Cursor, Guarantee, Ledger, OffsetRange, SourceIdentity, TopicPartition, WriterName};
use crate::{Error, ErrorKind, Result};

/// What a flush asks of the ledger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Advance<'a> {
    pub(crate) writer: &'a WriterName,
    pub(crate) commit_id: CommitId,
    pub(crate) snapshot_id: i64,
    /// The sequence number that the snapshot would get.
    pub(crate) sequence_number: i64,
    pub(crate) ranges: &'a [OffsetRange],
    pub(crate) source: &'a SourceIdentity,
    pub(crate) guarantee: Guarantee,
    /// Whether each range must start at its cursor: always, under exactly once (`LedgerCheck` in `protections`).
    pub(crate) start_counts: bool,
}

/// What the fence says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fenced {
    /// The flush may be committed; this is the ledger after it.
    Pass(Ledger),
    /// It starts where the cursor no longer is.
    Overtaken {
        /// The cursors of the flush's partitions.
        cursors: BTreeMap<TopicPartition, Cursor>,
        /// The commit that moved the ledger last.
        by: Option<CommitId>,
    },
}

/// Judges a flush against the ledger of a base. `Ledger` for a gap and for another cluster or topic.
pub(crate) fn fence(base: Option<&Ledger>, advance: &Advance<'_>) -> Result<Fenced> {
    if let Some(ledger) = base {
        check_source(ledger, advance)?;
    }
    if advance.guarantee == Guarantee::ExactlyOnce
        && advance.start_counts
        && let Some(overtaken) = check_start(base, advance)?
    {
        return Ok(overtaken);
    }
    let mut ledger = after(base, advance);
    for range in advance.ranges {
        let start = Cursor::starting_at(range.start);
        ledger.cursors.entry(range.partition.clone()).or_insert(start).take(range);
    }
    Ok(Fenced::Pass(ledger))
}

/// The ledger of a table of dead letters after more of them. A range says how far they were looked for and how many
/// were found; they may stand before the cursor, where a later decoding judged otherwise than an earlier one. The
/// claim is the fence. A topic that was created again begins anew.
pub(crate) fn take_letters(base: Option<&Ledger>, advance: &Advance<'_>) -> Ledger {
    let mut ledger = after(base, advance);
    for range in advance.ranges {
        let topic = &range.partition.topic;
        let known = base.and_then(|ledger| ledger.topic_ids.get(topic));
        if known.is_some() && ledger.topic_ids.get(topic) != known {
            ledger.cursors.retain(|at, _| at.topic != *topic);
        }
    }
    for range in advance.ranges {
        let start = Cursor::starting_at(range.start);
        let cursor = ledger.cursors.entry(range.partition.clone()).or_insert(start);
        cursor.start = cursor.start.min(range.start);
        cursor.next = cursor.next.max(range.next);
        cursor.rows += range.rows;
        cursor.holes = cursor.covered().saturating_sub(cursor.rows);
    }
    ledger
}

/// The ledger that this commit signs, with the cursors that it had before.
fn after(base: Option<&Ledger>, advance: &Advance<'_>) -> Ledger {
    let mut ledger = base.cloned().unwrap_or_else(|| Ledger {
        commit_id: advance.commit_id,
        snapshot_id: advance.snapshot_id,
        sequence_number: advance.sequence_number,
        guarantee: advance.guarantee,
        cluster_id: None,
        topic_ids: BTreeMap::new(),
        cursors: BTreeMap::new(),
    });
    ledger.commit_id = advance.commit_id;
    ledger.snapshot_id = advance.snapshot_id;
    ledger.sequence_number = advance.sequence_number;
    if advance.guarantee == Guarantee::AtLeastOnce {
        ledger.guarantee = Guarantee::AtLeastOnce;
    }
    ledger.set_source(advance.source);
    ledger
}

fn check_start(base: Option<&Ledger>, advance: &Advance<'_>) -> Result<Option<Fenced>> {
    let cursor_of = |range: &OffsetRange| base.and_then(|ledger| ledger.cursors.get(&range.partition));
    let behind = |range: &&OffsetRange| cursor_of(range).is_some_and(|cursor| cursor.next < range.start);
    if let Some(range) = advance.ranges.iter().find(behind) {
        let next = cursor_of(range).map_or(0, |cursor| cursor.next);
        return Err(Error::new(
            ErrorKind::Ledger,
            format!(
                "gap: the flush of writer `{}` starts at offset {} of `{}` and the table's cursor is {next}: \
                 offsets {next} to {} would be lost; nothing was committed. Seek to the cursor, or record the gap",
                advance.writer,
                range.start,
                range.partition,
                range.start - 1
            ),
        ));
    }
    let moved = |range: &OffsetRange| cursor_of(range).is_some_and(|cursor| cursor.next != range.start);
    if !advance.ranges.iter().any(moved) {
        return Ok(None);
    }
    let cursors = advance
        .ranges
        .iter()
        .filter_map(|range| Some((range.partition.clone(), cursor_of(range)?.clone())))
        .collect();
    Ok(Some(Fenced::Overtaken { cursors, by: base.map(|ledger| ledger.commit_id) }))
}

fn check_source(ledger: &Ledger, advance: &Advance<'_>) -> Result<()> {
    let source = advance.source;
    if let (Some(known), Some(given)) = (&ledger.cluster_id, &source.cluster_id)
        && known != given
    {
        return Err(other_source(advance.writer, "Kafka cluster", known, given));
    }
    for range in advance.ranges {
        let topic = &range.partition.topic;
        if let (Some(known), Some(given)) = (ledger.topic_ids.get(topic), source.topic_ids.get(topic))
            && known != given
        {
            return Err(other_source(advance.writer, &format!("topic `{topic}` with id"), known, given));
        }
    }
    Ok(())
}

fn other_source(writer: &WriterName, what: &str, known: &str, given: &str) -> Error {
    Error::new(
        ErrorKind::Ledger,
        format!(
            "the ledger of writer `{writer}` belongs to {what} `{known}` and the flush comes from `{given}`: it \
             was created again or is another one, and its offsets mean something else; nothing was committed. \
             Set the cursors for the new source, or use another writer name"
        ),
    )
}

impl Ledger {
    /// Records where the messages come from; what is not told stays as it was.
    pub(crate) fn set_source(&mut self, source: &SourceIdentity) {
        if source.cluster_id.is_some() {
            self.cluster_id.clone_from(&source.cluster_id);
        }
        self.topic_ids.extend(source.topic_ids.clone());
    }
}

impl Cursor {
    /// Takes a range. It only grows: a range that was taken before adds its rows (at least once) and moves nothing.
    fn take(&mut self, range: &OffsetRange) {
        if range.start > self.next {
            self.gaps += u64::try_from(range.start - self.next).unwrap_or(0);
        }
        self.next = self.next.max(range.next);
        self.rows += range.rows;
        self.rejected += range.rejected;
        self.holes += range.holes;
    }
}
