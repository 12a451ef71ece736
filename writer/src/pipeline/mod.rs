//! From a source to commits: one task that owns all state, with bounded helpers for decoding, files and commits.
//!
//! ```text
//! source ─Fetched→ decoding ─Chunk→ open flush ─seal→ file writers ─ready→ commit (one in flight)
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | `engine` | the state and the loop: one event at a time |
//! | `assign` | partitions handed over: where to begin |
//! | `revoke` | partitions taken back, flushes discarded, positions sought |
//! | `commits` | sealing, merging, committing, and what follows from each outcome |
//! | `letters` | dead letters: claims on assignment, letters before rows |
//! | `policy`, `start`, `fence` | the decisions, pure |
//! | `control` | limits and shards, as configured or by `freshness` and `shards`, the pure controllers |
//! | `spread`, `order` | which shard a row goes to, and the order of rows in a file, pure |
//! | `decoding`, `chunk`, `flush`, `files` | the stages and the values that pass through them |
//! | `shape`, `produced` | a table's schema and spec at one time; timestamps of messages |
//!
//! Time is tokio's, so a paused clock drives everything but librdkafka's thread; identity and wall clock come in by
//! [`Environment`].

mod assign;
mod chunk;
mod commits;
mod control;
mod decoding;
mod engine;
mod fence;
mod files;
mod flush;
mod freshness;
mod letters;
mod order;
mod policy;
mod produced;
mod revoke;
mod shape;
mod shards;
mod spread;
mod start;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

pub use engine::{Parts, run_pipeline};
pub(crate) use shape::TableShape;

use crate::{Error, ErrorKind, Result};

/// What a pipeline takes from the world around it.
#[derive(Clone)]
pub struct Environment {
    /// The instance part of its commit ids and file names: a UUIDv7, unique for each process start.
    pub instance: Uuid,
    /// The wall clock, in milliseconds since the epoch. It is shown, never decided by.
    pub now_ms: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Where decoding and encoding run.
    pub cpu: Cpu,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("instance", &self.instance)
            .field("cpu", &self.cpu)
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// The real world.
    #[must_use]
    pub fn system() -> Self {
        Self {
            instance: Uuid::now_v7(),
            now_ms: Arc::new(|| chrono::Utc::now().timestamp_millis()),
            cpu: Cpu::Threads,
        }
    }
}

/// Where decoding and encoding run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpu {
    /// On the runtime's blocking threads, as many at a time as there are cores.
    Threads,
    /// Where they are called: one at a time, in an order that a simulation can repeat.
    Inline,
}

impl Cpu {
    fn parallelism(self) -> usize {
        match self {
            Self::Threads => std::thread::available_parallelism().map_or(1, usize::from),
            Self::Inline => 1,
        }
    }
}

/// Runs CPU work.
pub(crate) fn on_cpu<T: Send + 'static>(
    cpu: Cpu,
    work: impl FnOnce() -> T + Send + 'static,
) -> BoxFuture<'static, Result<T>> {
    match cpu {
        Cpu::Inline => async move { Ok(work()) }.boxed(),
        Cpu::Threads => {
            let task = tokio::task::spawn_blocking(work);
            async move {
                task.await.map_err(|e| {
                    Error::new(ErrorKind::Internal, "decoding or encoding panicked").with_source(e)
                })
            }
            .boxed()
        }
    }
}
