//! What a run is steered by: the limits of flushes and the number of shards, as given or as measurements have it.

use std::time::Duration;

use super::freshness::{Freshness, Pressure, Taken};
use super::order::RowOrder;
use super::shards::{Change, Load, Shards};
use crate::config::{FlushLimits, Mode, WriterConfig};
use crate::observe::{CommitEvent, Event};

/// The controllers that a configuration asks for.
#[derive(Debug)]
pub(super) struct Control {
    mode: Mode,
    base: FlushLimits,
    limits: FlushLimits,
    shards: Option<Shards>,
    freshness: Option<Freshness>,
}

/// How the flush of a commit came about, beside what its event tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    /// From the seal to the last file.
    pub write: Duration,
    /// Its bytes in memory.
    pub bytes: usize,
    /// Fetches in it.
    pub chunks: u32,
    pub memory: Pressure,
}

impl Control {
    pub(super) fn new(config: &WriterConfig) -> Self {
        let base = match config.mode {
            Mode::Grouped { window, .. } => FlushLimits { age: window, ..config.flush },
            _ => config.flush,
        };
        let shards = match config.mode {
            Mode::Auto { min_shards, max_shards } => {
                Some(Shards::new(narrow(min_shards), narrow(max_shards)))
            }
            _ => None,
        };
        let mut control = Self {
            mode: config.mode,
            base,
            limits: base,
            shards,
            freshness: config.freshness.map(Freshness::new),
        };
        control.plan();
        control
    }

    /// What flushes are sealed by.
    pub(super) fn limits(&self) -> &FlushLimits {
        &self.limits
    }

    /// The number of shards at the start.
    pub(super) fn shards(&self) -> u32 {
        match self.mode {
            Mode::Fixed { shards } | Mode::Grouped { shards, .. } => narrow(shards),
            Mode::LowLatency { .. } => 1,
            Mode::Auto { min_shards, .. } => self.shards.as_ref().map_or(narrow(min_shards), Shards::current),
        }
    }

    pub(super) fn order(&self) -> RowOrder {
        match self.mode {
            Mode::Grouped { .. } => RowOrder::Key,
            Mode::Fixed { .. } | Mode::Auto { .. } | Mode::LowLatency { .. } => RowOrder::Arrival,
        }
    }

    /// All files of a flush are stored.
    pub(super) fn written(&mut self, load: &Load) -> Option<Change> {
        self.shards.as_mut()?.observe(load)
    }

    /// A commit landed.
    pub(super) fn landed(&mut self, event: &CommitEvent, course: Course) -> Option<Event> {
        let verdict = self.freshness.as_mut()?.observe(&taken(event, course));
        self.plan();
        verdict.map(Event::Freshness)
    }

    fn plan(&mut self) {
        let Some(freshness) = &self.freshness else { return };
        self.limits = freshness.limits(&self.base);
        if let Mode::Grouped { window, .. } = self.mode {
            self.limits.age = self.limits.age.min(window);
        }
    }
}

fn taken(event: &CommitEvent, course: Course) -> Taken {
    let phases = &event.phases;
    let (encode, all) = (phases.encode.as_micros(), (phases.encode + phases.upload).as_micros());
    Taken {
        decode: phases.fetch + phases.decode / course.chunks.max(1),
        buffer: phases.buffer,
        write: course.write,
        encode_permille: u32::try_from(encode * 1_000 / all.max(1)).unwrap_or(0),
        queue: phases.queue,
        commit: phases.commit,
        bytes: course.bytes,
        memory: course.memory,
        latencies_ms: event.latencies_ms().collect(),
    }
}

fn narrow(shards: usize) -> u32 {
    u32::try_from(shards).unwrap_or(u32::MAX)
}
