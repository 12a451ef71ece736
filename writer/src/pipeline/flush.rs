//! Flushes before they are committed: ranges, rows that are still in memory, and files that are written already.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;
use firn_table::files::NewFile;
use iceberg::spec::Struct;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::chunk::{Chunk, Rows};
use super::policy::{Covers, OpenStats};
use super::produced::Produced;
use super::shape::TableShape;
use crate::budget::Charge;
use crate::dead_letters::DeadLetter;
use crate::observe::Phases;
use crate::ranges::Ranges;
use crate::{Error, ErrorKind, Result};

/// A flush: the open one, to which chunks are added, or a sealed one, to which nothing is added any more.
#[derive(Debug)]
pub(crate) struct Flush {
    /// Its number in this run.
    pub number: u64,
    pub ranges: Ranges,
    buffers: Vec<Buffer>,
    index: HashMap<BufferKey, usize>,
    /// Files written so far.
    pub files: Vec<NewFile>,
    /// Files being written.
    pub outstanding: usize,
    /// Files named so far.
    pub named: usize,
    /// Bytes in memory that were handed to file writers.
    pub taken_bytes: usize,
    /// Fetches in it.
    pub chunks: u32,
    /// From the seal before it to its own.
    pub interval: Duration,
    pub sealed_at: Option<Instant>,
    pub ready_at: Option<Instant>,
    /// When its oldest row was decoded.
    pub oldest: Option<Instant>,
    rows: u64,
    rejected: u64,
    pub letters: KeptLetters,
    /// Letters that are kept with its commit.
    pub dead_letters: u64,
    pub produced: Produced,
    pub phases: Phases,
    /// Cancelled when the flush is discarded: files that are not stored yet need not be.
    pub discarded: CancellationToken,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BufferKey {
    generation: u64,
    shard: u32,
    partition: Struct,
}

/// Rows that will be one file.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub shape: Arc<TableShape>,
    pub partition: Struct,
    pub shard: u32,
    pub batches: Vec<RecordBatch>,
    pub charge: Charge,
}

impl Buffer {
    /// Copies the rows into one batch of their own.
    fn detach(&mut self) -> Result<()> {
        let Some(first) = self.batches.first() else { return Ok(()) };
        let whole = arrow_select::concat::concat_batches(&first.schema(), &self.batches).and_then(|joined| {
            // Joining one batch does not copy it.
            let rows = UInt32Array::from_iter_values(0..joined.num_rows() as u32);
            take_record_batch(&joined, &rows)
        });
        let whole = whole
            .map_err(|e| Error::new(ErrorKind::Internal, "buffered rows cannot be copied").with_source(e))?;
        self.charge.set(whole.get_array_memory_size());
        self.batches = vec![whole];
        Ok(())
    }
}

/// Dead letters, with the memory that they are charged.
#[derive(Debug, Default)]
pub(crate) struct KeptLetters {
    letters: Vec<DeadLetter>,
    charges: Vec<Charge>,
}

impl KeptLetters {
    fn append(&mut self, mut later: Self) {
        self.letters.append(&mut later.letters);
        self.charges.append(&mut later.charges);
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.letters.len()
    }

    /// The letters. Their memory is given back with the flush.
    pub(crate) fn take(&mut self) -> Vec<DeadLetter> {
        std::mem::take(&mut self.letters)
    }
}

impl Flush {
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            ranges: Ranges::default(),
            buffers: Vec::new(),
            index: HashMap::new(),
            files: Vec::new(),
            outstanding: 0,
            named: 0,
            taken_bytes: 0,
            chunks: 0,
            interval: Duration::ZERO,
            sealed_at: None,
            ready_at: None,
            oldest: None,
            rows: 0,
            rejected: 0,
            letters: KeptLetters::default(),
            dead_letters: 0,
            produced: Produced::default(),
            phases: Phases::default(),
            discarded: CancellationToken::new(),
        }
    }

    /// Adds rows and their range.
    pub(crate) fn add(&mut self, chunk: Chunk, now: Instant) -> Result<()> {
        let Chunk { range, rows, letters, shape, produced, mut charge, fetched_at, decode_time, .. } = chunk;
        self.rows += range.rows;
        self.rejected += range.rejected;
        if range.rows + range.rejected > 0 && self.oldest.is_none() {
            self.oldest = Some(now);
            self.phases.fetch = now.saturating_duration_since(fetched_at).saturating_sub(decode_time);
        }
        self.phases.decode += decode_time;
        self.chunks += 1;
        self.produced.absorb(produced);
        self.ranges.append(range)?;
        for Rows { partition, shard, batch, bytes } in rows {
            let part = charge.split(bytes);
            let key = BufferKey { generation: shape.generation, shard, partition: partition.clone() };
            if let Some(&at) = self.index.get(&key) {
                let buffer = &mut self.buffers[at];
                buffer.batches.push(batch);
                buffer.charge.absorb(part);
            } else {
                self.index.insert(key, self.buffers.len());
                let (shape, batches) = (Arc::clone(&shape), vec![batch]);
                self.buffers.push(Buffer { shape, partition, shard, batches, charge: part });
            }
        }
        if !letters.is_empty() {
            self.letters.append(KeptLetters { letters, charges: vec![charge] });
        }
        Ok(())
    }

    /// What the policy needs to know.
    pub(crate) fn stats(&self) -> OpenStats {
        OpenStats {
            rows: self.rows,
            messages: self.rows + self.rejected,
            covers: if self.ranges.is_empty() { Covers::Nothing } else { Covers::Offsets },
            bytes: self.buffered_bytes(),
            files: self.files.len() + self.outstanding,
            oldest: self.oldest,
        }
    }

    fn buffered_bytes(&self) -> usize {
        self.buffers.iter().map(|b| b.charge.bytes()).sum()
    }

    /// Bytes that are decoded and not in a file yet.
    pub(crate) fn unwritten_bytes(&self) -> usize {
        self.buffered_bytes() + if self.outstanding > 0 { self.taken_bytes } else { 0 }
    }

    /// From the seal to the last file.
    pub(crate) fn write_time(&self) -> Duration {
        match (self.sealed_at, self.ready_at) {
            (Some(sealed), Some(ready)) => ready.saturating_duration_since(sealed),
            _ => Duration::ZERO,
        }
    }

    /// Takes all buffers.
    pub(crate) fn take_all(&mut self) -> Vec<Buffer> {
        self.index.clear();
        self.taken_bytes += self.buffered_bytes();
        std::mem::take(&mut self.buffers)
    }

    /// Takes the largest buffers that together hold half of the bytes. The others are copied, so that none of them
    /// keeps memory alive that it shared with those that go.
    pub(crate) fn take_largest(&mut self) -> Result<Vec<Buffer>> {
        let enough = self.buffered_bytes() / 2;
        let mut buffers = self.take_all();
        buffers.sort_by_key(|b| std::cmp::Reverse(b.charge.bytes()));
        let mut taken = 0;
        let count = buffers.iter().take_while(|b| {
            let more = taken < enough.max(1);
            taken += b.charge.bytes();
            more
        });
        let mut rest = buffers.split_off(count.count());
        for (at, buffer) in rest.iter_mut().enumerate() {
            buffer.detach()?;
            let (generation, shard) = (buffer.shape.generation, buffer.shard);
            let key = BufferKey { generation, shard, partition: buffer.partition.clone() };
            self.index.insert(key, at);
        }
        self.taken_bytes = self.taken_bytes.saturating_sub(rest.iter().map(|b| b.charge.bytes()).sum());
        self.buffers = rest;
        Ok(buffers)
    }

    /// Sealed, and all its files are stored.
    pub(crate) fn is_ready(&self) -> bool {
        self.sealed_at.is_some() && self.outstanding == 0
    }

    /// Joins a later flush that is ready too, so that both are committed at once.
    pub(crate) fn merge(&mut self, later: Self) -> Result<()> {
        self.ranges.append_all(later.ranges)?;
        self.files.extend(later.files);
        self.rows += later.rows;
        self.rejected += later.rejected;
        self.letters.append(later.letters);
        self.produced.absorb(later.produced);
        self.phases.decode += later.phases.decode;
        self.phases.encode += later.phases.encode;
        self.phases.upload += later.phases.upload;
        Ok(())
    }
}
