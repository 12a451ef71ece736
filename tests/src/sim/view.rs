//! What a checker sees, and the trait that it implements.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use firn_table::ledger::WriterName;
use firn_table::storage::Stores;
use firn_writer::source::memory::MemoryLog;
use iceberg::TableIdent;
use iceberg::table::Table;

use super::records::{At, Records};

/// The world between two steps, without faults.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The time.
    pub now: At,
    /// The table's name.
    pub ident: &'a TableIdent,
    /// The table now; `None` where it was dropped. Its files are read without faults and without waiting.
    pub table: Option<&'a Table>,
    /// The stores of its files, without faults. Objects are in `memory://lake`.
    pub stores: &'a Stores,
    /// The topics and consumer groups.
    pub log: &'a MemoryLog,
    /// What happened.
    pub records: &'a Records,
    /// What the run is made of.
    pub setting: &'a Setting,
}

/// What a run is made of, as far as promises depend on it.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The writer names in use.
    pub writers: Vec<WriterName>,
    /// The age at which a writer seals a flush.
    pub flush_age: Duration,
    /// Whether something may happen that moves cursors back by right: a rollback that is replayed, a person.
    pub cursors_may_go_back: bool,
    /// Whether the table may be given rows by others than the writers (negative ids), or lose some to them.
    pub foreign_rows: bool,
}

/// What just happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The last of [`Records::commits`].
    Commit,
    /// The last of [`Records::deleted`].
    Delete,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The promise or rule, as the checker is called.
    pub promise: &'static str,
    /// What was seen and what was expected.
    pub what: String,
}

impl Violation {
    /// A broken promise.
    pub fn new(promise: &'static str, what: impl Into<String>) -> Self {
        Self { promise, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)
    }
}

/// Judges one promise. It may keep what it needs from step to step; files never change, so what was read of one
/// may be kept by its location.
///
/// Its futures must be ready at once: they may read [`View::stores`] and [`View::table`], and must not wait for
/// time or another task.
#[async_trait]
pub trait Checker: Send {
    /// The promise, as the design names it (`W1`), or a short name of the rule.
    fn name(&self) -> &'static str;

    /// Called after each step.
    ///
    /// # Errors
    /// The promise is broken.
    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation>;

    /// Called once, after a quiet hour: faults are off, everything is drained, the last expiry has run.
    ///
    /// # Errors
    /// The promise is broken.
    async fn at_end(&mut self, view: View<'_>) -> Result<(), Violation>;
}
