//! Replay: letters that decode by now become rows, once.
//!
//! All of a replay is one commit to the table of rows, under the name `<writer>-replay`: the rows, and in the same
//! metadata update the property `firn.replayed.<writer>-replay` with their offsets. A commit is refused as overtaken
//! where its base has one of them already. So a replay that ended half-way has done nothing, one whose outcome nobody
//! saw is found out by the next, and two at a time cannot both land. The letters stay where they are; the property
//! tells which of them are rows.
//!
//! A letter at or after the cursor of the rows is left to its writer, which may not have committed what stands before
//! and after it: it can be replayed once the cursor has passed it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::RecordBatch;
use firn_table::commit::{Flush, FlushOutcome, Guarantee, SourceIdentity, TableHandle};
use firn_table::files::{FileTarget, NewFile, data_file_location, encode_file, upload};
use firn_table::ledger::{CommitId, OffsetRange, Replayed, Standing, TopicPartition, WriterName};
use iceberg::spec::Struct;
use uuid::Uuid;

use super::{Stored, read_letters};
use crate::decode::{DecodeOptions, Decoded, Decoder, Header, Message, Outcome};
use crate::pipeline::{TableShape, on_cpu};
use crate::{Error, ErrorKind, Result};

/// What a replay did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayReport {
    /// Letters that became rows.
    pub replayed: u64,
    /// Letters that still cannot be decoded.
    pub still_dead: u64,
    /// Letters that were replayed before.
    pub replayed_before: u64,
    /// Letters that the rows' cursor has not passed yet.
    pub pending: u64,
    /// The snapshot, where there was something to commit.
    pub snapshot_id: Option<i64>,
}

/// The name under which replays of a writer's letters are committed.
pub fn replay_name(writer: &WriterName) -> Result<WriterName> {
    WriterName::new(format!("{writer}-replay"))
}

/// The letters of a writer that were replayed, by the table of rows.
pub fn replayed(rows: &TableHandle, writer: &WriterName) -> Result<Replayed> {
    Replayed::read(rows.table().metadata().properties(), rows.branch(), &replay_name(writer)?)
}

/// Letters decoded in one batch.
const BATCH_LETTERS: usize = 1_000;

/// Decodes a writer's letters with the table's schema of now and appends those that are rows. `Conflict` where another
/// replay was faster: nothing was doubled, and a further one does what is left. All letters are held in memory.
pub async fn replay(
    rows: &TableHandle,
    letters: &TableHandle,
    writer: &WriterName,
    options: &DecodeOptions,
) -> Result<ReplayReport> {
    let Standing::Current(ledger) = rows.standing(writer).await? else {
        let message = format!("the table has no cursor of writer `{writer}` to go by: nothing was replayed");
        return Err(Error::new(ErrorKind::Ledger, message));
    };
    let done = replayed(rows, writer)?;
    let table = letters.refresh().await?;
    let (mut report, mut ready) = (ReplayReport::default(), Vec::new());
    let mut all = read_letters(letters.stores(), &table, i64::MIN).await?;
    all.retain(|stored| stored.writer == writer.as_str());
    all.sort_by(|a, b| place(a).cmp(&place(b)));
    for stored in all {
        let (at, offset) = (&stored.letter.partition, stored.letter.offset);
        let id = stored.topic_id.as_deref();
        let other_topic = matches!((id, ledger.topic_ids.get(&at.topic)), (Some(a), Some(b)) if a != b);
        let passed = other_topic || ledger.cursors.get(at).is_some_and(|cursor| offset < cursor.next);
        match (done.contains(&at.topic, id, at.partition, offset), passed) {
            (true, _) => report.replayed_before += 1,
            (false, false) => report.pending += 1,
            (false, true) => ready.push(stored),
        }
    }
    let shape = Arc::new(TableShape::of(rows.table(), 0)?);
    let decoded = decode(&shape, options, &ready)?;
    report.replayed = decoded.offsets.len() as u64;
    report.still_dead = ready.len() as u64 - report.replayed;
    if report.replayed > 0 {
        report.snapshot_id = Some(commit(rows, &shape, writer, decoded).await?);
    }
    Ok(report)
}

fn place(stored: &Stored) -> (&TopicPartition, Option<&str>, i64) {
    (&stored.letter.partition, stored.topic_id.as_deref(), stored.letter.offset)
}

/// Letters that are rows by now.
#[derive(Debug, Default)]
struct Rows {
    batches: HashMap<Struct, Vec<RecordBatch>>,
    offsets: Vec<(TopicPartition, i64)>,
    replayed: Replayed,
}

fn decode(shape: &TableShape, options: &DecodeOptions, letters: &[Stored]) -> Result<Rows> {
    let mut decoder = shape.decoder(options)?;
    let mut rows = Rows::default();
    for letters in letters.chunks(BATCH_LETTERS) {
        let decoded = decode_batch(decoder.as_mut(), letters)?;
        for (stored, outcome) in letters.iter().zip(&decoded.outcomes) {
            let (at, offset) = (&stored.letter.partition, stored.letter.offset);
            let id = stored.topic_id.as_deref();
            if *outcome == Outcome::Row {
                if !rows.replayed.insert(&at.topic, id, at.partition, offset) {
                    let message = format!(
                        "offset {offset} of `{at}` is in the dead letters twice: nothing was replayed"
                    );
                    return Err(Error::new(ErrorKind::Data, message));
                }
                rows.offsets.push((at.clone(), offset));
            }
        }
        for (partition, batch) in shape.router.split(&decoded.batch)? {
            rows.batches.entry(partition).or_default().push(batch);
        }
    }
    Ok(rows)
}

fn decode_batch(decoder: &mut dyn Decoder, letters: &[Stored]) -> Result<Decoded> {
    let messages: Vec<Message<'_>> = letters.iter().map(message).collect();
    decoder.decode(&messages).map_err(|e| {
        Error::new(ErrorKind::Data, format!("{} letters cannot be decoded: {e}", messages.len()))
            .with_source(e)
    })
}

fn message(stored: &Stored) -> Message<'_> {
    let letter = &stored.letter;
    Message {
        topic: &letter.partition.topic,
        partition: letter.partition.partition,
        offset: letter.offset,
        timestamp_ms: letter.timestamp_ms,
        key: letter.key.as_deref(),
        payload: letter.value.as_deref(),
        headers: letter.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect(),
    }
}

async fn commit(
    handle: &TableHandle,
    shape: &Arc<TableShape>,
    writer: &WriterName,
    rows: Rows,
) -> Result<i64> {
    let commit_id = CommitId { instance: Uuid::now_v7(), counter: 1 };
    let writer = replay_name(writer)?;
    let mut files = Vec::with_capacity(rows.batches.len());
    for (number, (partition, batches)) in rows.batches.into_iter().enumerate() {
        let name = format!("{writer}-{commit_id}-{number}.parquet");
        files.extend(write(handle, shape, (partition, batches), &name).await?);
    }
    let flush = Flush {
        commit_id,
        writer,
        ranges: ranges(&rows.offsets),
        files,
        source: SourceIdentity::default(),
        guarantee: Guarantee::ExactlyOnce,
    };
    match handle.append_replayed(flush, rows.replayed).await? {
        FlushOutcome::Committed(committed) => Ok(committed.snapshot_id),
        FlushOutcome::Overtaken { .. } => {
            let message = "another replay of these letters was faster: nothing was doubled; replay again for what is left";
            Err(Error::new(ErrorKind::Conflict, message))
        }
    }
}

async fn write(
    handle: &TableHandle,
    shape: &Arc<TableShape>,
    (partition, batches): (Struct, Vec<RecordBatch>),
    name: &str,
) -> Result<Option<NewFile>> {
    let location = data_file_location(&shape.table, &shape.spec, &partition, name)?;
    let target = FileTarget { spec: Arc::clone(&shape.spec), partition, location };
    let format = shape.format.clone();
    let encoded = on_cpu(crate::pipeline::Cpu::Threads, move || encode_file(&format, &batches)).await??;
    match encoded {
        Some(file) => upload(handle.stores(), &target, file).await.map(Some),
        None => Ok(None),
    }
}

/// From the first to the last replayed offset of each partition; what was not replayed in between is no row.
fn ranges(offsets: &[(TopicPartition, i64)]) -> Vec<OffsetRange> {
    let mut ranges: BTreeMap<&TopicPartition, OffsetRange> = BTreeMap::new();
    for (partition, offset) in offsets {
        let empty = || OffsetRange {
            partition: partition.clone(),
            start: *offset,
            next: *offset,
            rows: 0,
            rejected: 0,
            holes: 0,
        };
        let range = ranges.entry(partition).or_insert_with(empty);
        range.start = range.start.min(*offset);
        range.next = range.next.max(offset + 1);
        range.rows += 1;
        range.holes = range.len().saturating_sub(range.rows);
    }
    ranges.into_values().collect()
}
