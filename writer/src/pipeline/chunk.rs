//! One fetch of one topic partition, decoded and routed: the value in which rows and the offsets they came from travel
//! together. There is no way to take the rows out without the range.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{RecordBatch, UInt32Array};
use firn_table::ledger::OffsetRange;
use iceberg::spec::Struct;
use tokio::time::Instant;

use super::order::RowOrder;
use super::produced::Produced;
use super::shape::TableShape;
use super::spread::assign;
use crate::budget::Charge;
use crate::config::OnBadMessage;
use crate::dead_letters::DeadLetter;
use crate::decode::{DecodeError, Decoded, Decoder, Message, Outcome, Reject};
use crate::observe::Rejection;
use crate::ranges::{Counts, counted};
use crate::source::Fetched;
use crate::{Error, ErrorKind, Result};

/// Decoded messages of one topic partition.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub range: OffsetRange,
    /// The rows of exactly that range.
    pub rows: Vec<Rows>,
    pub epoch: u64,
    /// Messages that were rejected and are counted in the range.
    pub rejections: Vec<Rejection>,
    /// Those among them that are to be kept.
    pub letters: Vec<DeadLetter>,
    /// The message at which the writer has to stop: the first one after the range.
    pub stop: Option<Rejection>,
    pub shape: Arc<TableShape>,
    pub produced: Produced,
    pub charge: Charge,
    pub fetched_at: Instant,
    pub decode_time: Duration,
}

/// Rows of one table partition and shard.
#[derive(Debug)]
pub(crate) struct Rows {
    pub partition: Struct,
    pub shard: u32,
    pub batch: RecordBatch,
    /// Its share of the memory that it holds together with the other partitions of its chunk.
    pub bytes: usize,
}

/// How messages are decoded and routed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecodeRules {
    pub on_bad: OnBadMessage,
    pub shards: u32,
    pub order: RowOrder,
}

/// Rejections of one chunk that are reported one by one; the others are only counted.
const MAX_REPORTED: usize = 10;

/// Decodes and routes. Messages at offsets that are known to be dead are not looked at. CPU work: run it on a worker
/// thread.
pub(crate) fn decode(
    rules: DecodeRules,
    shape: &Arc<TableShape>,
    decoder: &mut dyn Decoder,
    (fetched, dead): (Fetched, Option<&BTreeSet<i64>>),
) -> Result<Chunk> {
    let began = std::time::Instant::now();
    let Fetched { messages: batch, start, next, epoch, fetched_at, mut charge } = fetched;
    let is_dead = |message: &Message<'_>| dead.is_some_and(|dead| dead.contains(&message.offset));
    let messages: Vec<Message<'_>> = batch.messages().filter(|m| !is_dead(m)).collect();
    let (mut counts, mut produced, mut end) = (Counts::default(), Produced::default(), next);
    counts.rejected = (batch.len() - messages.len()) as u64;
    let (mut rejections, mut letters, mut stop, mut rows) = (Vec::new(), Vec::new(), None, Vec::new());
    for (messages, decoded) in decode_all(decoder, &messages)? {
        let before = counts.rows;
        let mut kept = Vec::with_capacity(messages.len());
        for (message, outcome) in messages.iter().zip(&decoded.outcomes) {
            match outcome {
                Outcome::Row => kept.push(message),
                Outcome::Skipped => counts.rejected += 1,
                Outcome::Rejected(reject) if rules.on_bad == OnBadMessage::Stop => {
                    stop = Some(rejection(&batch, message.offset, reject));
                    end = message.offset;
                    break;
                }
                Outcome::Rejected(reject) => {
                    counts.rejected += 1;
                    if rules.on_bad == OnBadMessage::DeadLetter {
                        letters.push(DeadLetter::new(message, reject));
                    }
                    if rejections.len() < MAX_REPORTED {
                        rejections.push(rejection(&batch, message.offset, reject));
                    }
                }
            }
        }
        counts.rows += kept.len() as u64;
        kept.iter().filter_map(|m| m.timestamp_ms).for_each(|at| produced.add(at, 1));
        let decoded_rows = decoded.batch.slice(0, (counts.rows - before) as usize);
        route(rules, shape, &kept, decoded_rows, &mut rows)?;
        if stop.is_some() {
            break;
        }
    }
    let range = counted(batch.partition().clone(), start, end, counts)?;
    let kept: usize = letters.iter().map(DeadLetter::memory_bytes).sum();
    charge.set(rows.iter().map(|r| r.bytes).sum::<usize>() + kept);
    let (shape, decode_time) = (Arc::clone(shape), began.elapsed());
    Ok(Chunk {
        range,
        rows,
        epoch,
        rejections,
        letters,
        stop,
        shape,
        produced,
        charge,
        fetched_at,
        decode_time,
    })
}

/// Decodes all messages, in as many batches as the decoder's limit needs.
fn decode_all<'m, 'a>(
    decoder: &mut dyn Decoder,
    messages: &'m [Message<'a>],
) -> Result<Vec<(&'m [Message<'a>], Decoded)>> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    match decoder.decode(messages) {
        Ok(decoded) if decoded.outcomes.len() == messages.len() => Ok(vec![(messages, decoded)]),
        Ok(decoded) => Err(Error::new(
            ErrorKind::Internal,
            format!("{} messages have {} outcomes", messages.len(), decoded.outcomes.len()),
        )),
        Err(DecodeError::BatchTooLarge { .. }) if messages.len() > 1 => {
            let (first, second) = messages.split_at(messages.len() / 2);
            let mut all = decode_all(decoder, first)?;
            all.extend(decode_all(decoder, second)?);
            Ok(all)
        }
        Err(e) => {
            let kind = match e {
                DecodeError::BatchTooLarge { .. } => ErrorKind::Data,
                DecodeError::UnsupportedColumn { .. }
                | DecodeError::Option { .. }
                | DecodeError::WriterSchema { .. } => ErrorKind::Configuration,
                _ => ErrorKind::Internal,
            };
            let at = messages.first().map(|m| format!("{}/{}@{}", m.topic, m.partition, m.offset));
            let message = format!("messages from {} cannot be decoded: {e}", at.unwrap_or_default());
            Err(Error::new(kind, message).with_source(e))
        }
    }
}

fn rejection(batch: &crate::batch::MessageBatch, offset: i64, reject: &Reject) -> Rejection {
    Rejection {
        partition: batch.partition().clone(),
        offset,
        code: reject.code.as_str().to_owned(),
        path: reject.path.clone(),
        reason: explain(reject),
    }
}

fn explain(reject: &Reject) -> String {
    let mut text = reject.reason.to_string();
    if !reject.expected.is_empty() {
        text.push_str(&format!(", expected {}", reject.expected));
    }
    if !reject.found.is_empty() {
        text.push_str(&format!(", found `{}`", reject.found));
    }
    text
}

/// Splits rows by shard, then by table partition. `messages` are those of the rows.
fn route(
    rules: DecodeRules,
    shape: &TableShape,
    messages: &[&Message<'_>],
    batch: RecordBatch,
    out: &mut Vec<Rows>,
) -> Result<()> {
    if batch.num_rows() == 0 {
        return Ok(());
    }
    let batch = rules.order.carry(batch, messages)?;
    for (shard, whole) in shards(rules.shards, messages, batch)? {
        let (all_bytes, all_rows) = (whole.get_array_memory_size(), whole.num_rows());
        for (partition, batch) in shape.router.split(&whole)? {
            // The router returns slices of one batch.
            let bytes = all_bytes * batch.num_rows() / all_rows;
            out.push(Rows { partition, shard, batch, bytes });
        }
    }
    Ok(())
}

fn shards(shards: u32, messages: &[&Message<'_>], batch: RecordBatch) -> Result<Vec<(u32, RecordBatch)>> {
    if shards <= 1 {
        return Ok(vec![(0, batch)]);
    }
    let mut indices: Vec<Vec<u32>> = vec![Vec::new(); shards as usize];
    for (row, shard) in (0u32..).zip(assign(messages, shards)) {
        indices[shard as usize].push(row);
    }
    (0u32..)
        .zip(indices)
        .filter(|(_, rows)| !rows.is_empty())
        .map(|(shard, rows)| {
            let taken = arrow_select::take::take_record_batch(&batch, &UInt32Array::from(rows));
            let taken = taken.map_err(|e| {
                Error::new(ErrorKind::Internal, "rows cannot be split into shards").with_source(e)
            })?;
            Ok((shard, taken))
        })
        .collect()
}
