//! Counting the attempts of one commit: what follows from an answer, and when to give up.

use std::fmt;
use std::time::Duration;

use iceberg::table::Table;
use tokio::time::Instant;

use super::backoff::{after_conflict, after_failure};
use super::protocol::{Landed, Request};
use super::written::{Sent, Written};
use super::{CommitLimits, CommitTimes, Committed, TableHandle};
use crate::catalog::CommitOutcome;
use crate::{Error, ErrorKind, Result};

/// Counts and clocks of one commit.
#[derive(Debug)]
pub(super) struct Tries {
    started: Instant,
    pub(super) times: CommitTimes,
    pub(super) attempts: u32,
    conflicts: u32,
    /// Failures in a row that were not conflicts.
    failures: u32,
    /// Why the last attempt failed.
    last: Option<Error>,
    /// The last request, with the metadata location of its base: good again on the same base.
    pub(super) prepared: Option<(String, Request)>,
    /// The metadata location of a base that names a file which is not there.
    incomplete: Option<String>,
}

impl Tries {
    /// `turn` is how long it took until it was this commit's turn.
    pub(super) fn start(turn: Duration) -> Self {
        Self {
            started: Instant::now(),
            times: CommitTimes { turn, ..CommitTimes::default() },
            attempts: 0,
            conflicts: 0,
            failures: 0,
            last: None,
            prepared: None,
            incomplete: None,
        }
    }

    /// What follows from an answer that is neither the end nor an error: the wait before the next attempt.
    pub(super) fn judge(&mut self, outcome: CommitOutcome, handle: &TableHandle) -> Result<Duration> {
        match outcome {
            CommitOutcome::Conflict => {
                self.conflicts += 1;
                self.failures = 0;
                self.last = None;
                tracing::debug!(table = %handle.ident(), conflicts = self.conflicts, "the head moved: re-basing");
                Ok(after_conflict(&handle.limits, self.conflicts, handle.surroundings.fraction()))
            }
            CommitOutcome::NotApplied { retry_after, cause } => Ok(self.failed(retry_after, cause, handle)),
            CommitOutcome::Unknown(error) => Ok(self.failed(None, error, handle)),
            CommitOutcome::Rejected(error) => Err(error),
            CommitOutcome::Committed(_) => Err(Error::new(
                ErrorKind::Internal,
                "a commit that was applied was judged as one that was not",
            )),
        }
    }

    /// A file that the base names may have been expired since the base was loaded: then the newest table names
    /// others. On the same metadata for the second time, the table itself is broken.
    pub(super) fn outdated_or(&mut self, error: Error, location: String) -> Error {
        if error.kind() != ErrorKind::NotFound || self.incomplete.as_ref() == Some(&location) {
            return error;
        }
        self.incomplete = Some(location);
        Error::new(ErrorKind::Unavailable, "the base is outdated: a file that it names is gone")
            .with_source(error)
    }

    pub(super) fn failed(
        &mut self,
        retry_after: Option<Duration>,
        error: Error,
        handle: &TableHandle,
    ) -> Duration {
        self.failures += 1;
        tracing::warn!(
            table = %handle.ident(), failures = self.failures, %error, "a commit was not confirmed: trying again"
        );
        handle.note_trouble(Some(error.to_string()));
        self.last = Some(error);
        handle.forget_base();
        after_failure(&handle.limits, self.failures, retry_after, handle.surroundings.fraction())
    }

    /// Waits before the next attempt, or ends where the limits say so.
    pub(super) async fn pause(
        &mut self,
        limits: &CommitLimits,
        written: &Written,
        wait: Duration,
    ) -> Result<()> {
        if self.conflicts > limits.max_conflicts {
            return Err(self.give_up(written, ErrorKind::Conflict));
        }
        if let Some(deadline) = limits.deadline
            && self.started.elapsed() + wait >= deadline
        {
            return Err(self.give_up(written, ErrorKind::Unavailable));
        }
        let began = Instant::now();
        tokio::time::sleep(wait).await;
        self.times.retry += began.elapsed();
        Ok(())
    }

    fn give_up(&mut self, written: &Written, kind: ErrorKind) -> Error {
        let tries = format!(
            "given up after {} requests, {} of them conflicts, and {} ms",
            self.attempts,
            self.conflicts,
            self.started.elapsed().as_millis()
        );
        let cause = self.last.take();
        let reason = cause.as_ref().map_or_else(|| "the head kept moving".to_owned(), Error::to_string);
        let error = if written.sent() == Sent::Unknown {
            unknown_outcome(format!("{tries}: {reason}"))
        } else {
            Error::new(kind, format!("{tries}: {reason}; nothing was committed and its files were removed"))
        };
        match cause {
            Some(cause) => error.with_source(cause),
            None => error,
        }
    }

    pub(super) fn committed(&self, table: Box<Table>, landed: &Landed) -> Box<Committed> {
        Box::new(Committed {
            table: *table,
            snapshot_id: landed.snapshot_id,
            sequence_number: landed.sequence_number,
            attempts: self.attempts,
            conflicts: self.conflicts,
            elapsed: self.started.elapsed(),
            times: self.times,
        })
    }
}

pub(super) fn unknown_outcome(reason: impl fmt::Display) -> Error {
    Error::new(
        ErrorKind::UnknownOutcome,
        format!(
            "whether the commit landed is not known ({reason}); none of its files was deleted: look at the table \
             before it is done again"
        ),
    )
}
