//! The decode stage: a bounded number of chunks at a time, in the order in which they were fetched.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesOrdered;

use super::chunk::{Chunk, DecodeRules, decode};
use super::shape::TableShape;
use super::{Cpu, on_cpu};
use crate::Result;
use crate::dead_letters::DeadOffsets;
use crate::decode::{DecodeOptions, Decoder};
use crate::source::Fetched;

type Done = (Result<Chunk>, u64, Box<dyn Decoder>);

/// Fetched messages on their way to becoming chunks.
pub(crate) struct Decoding {
    cpu: Cpu,
    slots: usize,
    rules: DecodeRules,
    options: DecodeOptions,
    shape: Arc<TableShape>,
    dead: Arc<DeadOffsets>,
    idle: Vec<Box<dyn Decoder>>,
    pending: VecDeque<Fetched>,
    running: FuturesOrdered<BoxFuture<'static, Result<Done>>>,
}

impl fmt::Debug for Decoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pending, running) = (self.pending.len(), self.running.len());
        f.debug_struct("Decoding")
            .field("pending", &pending)
            .field("running", &running)
            .finish_non_exhaustive()
    }
}

impl Decoding {
    pub(crate) fn new(
        cpu: Cpu,
        rules: DecodeRules,
        options: DecodeOptions,
        shape: Arc<TableShape>,
    ) -> Result<Self> {
        // The first decoder is made now: a column that cannot be filled is told before anything is read.
        let idle = vec![shape.decoder(&options)?];
        let slots = cpu.parallelism();
        let (pending, running) = (VecDeque::new(), FuturesOrdered::new());
        let dead = Arc::default();
        Ok(Self { cpu, slots, rules, options, shape, dead, idle, pending, running })
    }

    pub(crate) fn shape(&self) -> &Arc<TableShape> {
        &self.shape
    }

    /// What is decoded from here on has another shape.
    pub(crate) fn set_shape(&mut self, shape: Arc<TableShape>) -> Result<()> {
        self.idle = vec![shape.decoder(&self.options)?];
        self.shape = shape;
        Ok(())
    }

    /// Messages at these offsets are rejected already, whatever decoding them would say.
    pub(crate) fn set_dead(&mut self, dead: DeadOffsets) {
        self.dead = Arc::new(dead);
    }

    /// What is decoded from here on goes to so many shards.
    pub(crate) fn set_shards(&mut self, shards: u32) {
        self.rules.shards = shards;
    }

    pub(crate) fn push(&mut self, fetched: Fetched) {
        self.pending.push_back(fetched);
    }

    /// Drops what is not being decoded yet and not wanted any more.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Fetched) -> bool) {
        self.pending.retain(keep);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.running.is_empty()
    }

    /// Starts what there is room for.
    pub(crate) fn pump(&mut self) -> Result<()> {
        while self.running.len() < self.slots
            && let Some(fetched) = self.pending.pop_front()
        {
            let mut decoder = match self.idle.pop() {
                Some(decoder) => decoder,
                None => self.shape.decoder(&self.options)?,
            };
            let (rules, shape, dead) = (self.rules, Arc::clone(&self.shape), Arc::clone(&self.dead));
            self.running.push_back(on_cpu(self.cpu, move || {
                let known = dead.of(fetched.messages.partition());
                let chunk = decode(rules, &shape, decoder.as_mut(), (fetched, known));
                (chunk, shape.generation, decoder)
            }));
        }
        Ok(())
    }

    /// The next chunk in order; pending for ever where nothing is being decoded. Safe to cancel.
    pub(crate) async fn next(&mut self) -> Result<Chunk> {
        let Some(done) = self.running.next().await else { return std::future::pending().await };
        let (chunk, generation, decoder) = done?;
        if generation == self.shape.generation {
            self.idle.push(decoder);
        }
        chunk
    }
}
