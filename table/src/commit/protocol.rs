//! The commit protocol: one loop for every kind of commit.
//!
//! ```text
//! base ─▶ already in it? ─▶ attempt: decide on this base, write what depends on it ─▶ send
//!  ▲                                                                                  │
//!  │  Conflict: at once, with growing jitter    NotApplied: back off as told          │
//!  └──────────────────────── Unknown: back off, load, look ◀──────────────────────────┤
//!                                                            Committed, Rejected: end ▼
//! ```
//!
//! Every request requires its base's uuid and the base's head of the branch, so a request that is applied late
//! either lands on exactly that base or not at all, and the validation that was made on the base is true when it
//! lands. All attempts of a commit share one snapshot id, so the commit is recognised wherever it landed.

use std::collections::HashSet;
use std::future::Future;
use std::time::Duration;

use iceberg::table::Table;
use iceberg::{TableRequirement, TableUpdate};
use tokio::time::Instant;

use super::handle::{Base, Turn, within};
use super::tries::{Tries, unknown_outcome};
use super::written::{Sent, Written, delete};
use super::{CommitTimes, Committed, TableHandle};
use crate::catalog::CommitOutcome;
use crate::ledger::CommitId;
use crate::{Error, ErrorKind, Result};

/// One request: what must hold for the head, and what is changed.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) requirements: Vec<TableRequirement>,
    pub(super) updates: Vec<TableUpdate>,
    /// The files written by this commit that the request names.
    pub(super) files: Vec<String>,
    /// How long the manifest list took to be written.
    pub(super) list_time: Duration,
}

/// What an attempt on a base comes to.
#[derive(Debug)]
pub(super) enum Step<S> {
    /// Send this.
    Send(Request),
    /// There is nothing to send, because of this.
    Stop(S),
}

/// What became of a commit.
#[derive(Debug)]
pub(super) enum Finished<S> {
    /// It is in the table.
    Landed(Box<Committed>),
    /// There was nothing (more) to send.
    Stopped(S),
}

/// A commit that landed, as a table shows it.
#[derive(Debug, Clone)]
pub(super) struct Landed {
    pub(super) snapshot_id: i64,
    pub(super) sequence_number: i64,
    /// The files written by this commit that the landed snapshot names.
    pub(super) files: HashSet<String>,
}

/// A kind of commit.
pub(super) trait Producer: Send {
    /// Why there may be nothing to send.
    type Stop: Send;

    /// The commit's identity, where it has one.
    fn commit_id(&self) -> Option<CommitId>;

    /// The locations that were given to manifests and manifest lists so far.
    fn given(&self) -> Vec<String>;

    /// Whether the commit is in this table.
    fn landed(&self, table: &Table) -> Option<Landed>;

    /// Whether the commit is in the table that the catalog replied with.
    fn landed_in_reply(&self, table: &Table) -> Option<Landed> {
        self.landed(table)
    }

    /// Validates against `base` and makes the request for it.
    fn attempt(
        &mut self,
        turn: &mut Turn,
        base: &Table,
    ) -> impl Future<Output = Result<Step<Self::Stop>>> + Send;

    /// Whether a verdict other than a request counts only if the table was loaded in this call. The table as last
    /// committed may be behind: on it a request does no harm, since it is compared, but a verdict is not.
    fn verdict_needs_head(&self) -> bool {
        true
    }

    /// Whether a table in which the commit landed carries all of it. `turn` may keep what is worth keeping.
    fn confirm(&mut self, turn: &mut Turn, table: &Table) -> Result<()>;
}

/// How one attempt ended.
enum Attempt<S> {
    Landed(Box<Table>, Landed),
    Stop(S),
    /// The known table was not enough for a verdict: load it.
    Again,
    Sent(CommitOutcome),
}

/// How a commit ended, other than by an error.
enum End<S> {
    /// It landed; the table may still fail to carry all of it.
    Landed(Box<Committed>, HashSet<String>, Result<()>),
    Stopped(S),
}

impl TableHandle {
    /// Commits when it is this commit's turn, and removes what may be removed afterwards.
    pub(super) async fn run<P: Producer>(
        &self,
        producer: &mut P,
        mut written: Written,
    ) -> Result<Finished<P::Stop>> {
        let result = {
            let asked_at = Instant::now();
            let mut turn = self.inner.queue.lock().await;
            let mut tries = Tries::start(asked_at.elapsed());
            if producer.commit_id().is_some_and(|id| turn.unknown.contains_key(&id)) {
                written.earlier_call_is_unknown();
            }
            let result = self.attempts(producer, &mut turn, &mut written, &mut tries).await;
            if result.is_ok() {
                self.note_trouble(None);
            }
            result
        };
        let (finished, named) = match result {
            Ok(End::Landed(committed, files, confirmed)) => {
                (confirmed.map(|()| Finished::Landed(committed)), files)
            }
            Ok(End::Stopped(stop)) => (Ok(Finished::Stopped(stop)), HashSet::new()),
            Err(error) => (Err(error), HashSet::new()),
        };
        written.note(producer.given());
        let deletes = delete(&self.inner.stores, written.removable(&named));
        if tokio::time::timeout(self.limits.request_timeout, deletes).await.is_err() {
            tracing::warn!(table = %self.ident(), "files of a discarded commit were not deleted in time");
        }
        finished
    }

    async fn attempts<P: Producer>(
        &self,
        producer: &mut P,
        turn: &mut Turn,
        written: &mut Written,
        tries: &mut Tries,
    ) -> Result<End<P::Stop>> {
        loop {
            let wait = match self.attempt(producer, turn, written, tries).await {
                Ok(Attempt::Landed(table, landed)) => {
                    let confirmed = producer.confirm(turn, &table);
                    return Ok(End::Landed(tries.committed(table, &landed), landed.files, confirmed));
                }
                Ok(Attempt::Stop(stop)) => return Ok(End::Stopped(stop)),
                Ok(Attempt::Again) => continue,
                Ok(Attempt::Sent(CommitOutcome::Rejected(error))) => {
                    return Err(self.rejected(error, written).await);
                }
                Ok(Attempt::Sent(outcome)) => tries.judge(outcome, self)?,
                Err(error) if error.kind() == ErrorKind::Unavailable => tries.failed(None, error, self),
                Err(error) => return Err(error),
            };
            tries.pause(&self.limits, written, wait).await?;
        }
    }

    /// One attempt, from the base to the answer.
    async fn attempt<P: Producer>(
        &self,
        producer: &mut P,
        turn: &mut Turn,
        written: &mut Written,
        tries: &mut Tries,
    ) -> Result<Attempt<P::Stop>> {
        let began = Instant::now();
        let found = self.base().await;
        tries.times.retry += began.elapsed();
        let Base { table: base, loaded } = found?;
        if let Some(landed) = producer.landed(&base) {
            turn.settle(producer.commit_id());
            return Ok(Attempt::Landed(Box::new(base), landed));
        }
        let taken_out = |id: CommitId| base.metadata().snapshot_by_id(id.snapshot_id()).is_some();
        if producer.commit_id().is_some_and(taken_out) {
            // It landed once and was rolled back: its snapshot still names the files.
            written.earlier_call_is_unknown();
        }
        // Until an answer tells otherwise the head may be another one.
        self.forget_base();
        let location = base.metadata_location().unwrap_or_default().to_owned();
        let request = match tries.prepared.take() {
            Some((same, request)) if same == location && !location.is_empty() => request,
            _ => match timed(&mut tries.times, producer.attempt(turn, &base)).await {
                Ok(Step::Send(request)) => {
                    turn.may_name_files(producer.commit_id(), &base)?;
                    request
                }
                _ if !loaded && producer.verdict_needs_head() => return Ok(Attempt::Again),
                Ok(Step::Stop(stop)) => {
                    self.set_base(&base);
                    return Ok(Attempt::Stop(stop));
                }
                Err(error) => return Err(tries.outdated_or(error, location)),
            },
        };
        tries.prepared = Some((location, request.clone()));
        tries.attempts += 1;
        let sent_at = Instant::now();
        let answered = self.send(producer, turn, written, (&base, request)).await;
        tries.times.catalog += sent_at.elapsed();
        answered
    }

    /// Sends a request. From before it is sent until a definite answer the outcome counts as unknown, also where
    /// the caller goes away in between.
    async fn send<P: Producer>(
        &self,
        producer: &P,
        turn: &mut Turn,
        written: &mut Written,
        (base, request): (&Table, Request),
    ) -> Result<Attempt<P::Stop>> {
        let commit_id = producer.commit_id();
        let before = written.sending(&request.files);
        let number = base.metadata().last_sequence_number();
        let first_of_number = commit_id.is_some_and(|id| turn.unknown.entry(id).or_default().insert(number));
        let reply = self.inner.catalog.commit(base, request.requirements, request.updates);
        let reply = within(self.limits.request_timeout, "the commit", reply).await;
        let outcome = match reply.unwrap_or_else(CommitOutcome::Unknown) {
            CommitOutcome::Committed(table) => match producer.landed_in_reply(&table) {
                Some(landed) => {
                    turn.settle(commit_id);
                    written.answered(before);
                    self.set_base(&table);
                    return Ok(Attempt::Landed(table, landed));
                }
                None => CommitOutcome::Unknown(not_in_reply(&table)),
            },
            outcome => outcome,
        };
        if !matches!(outcome, CommitOutcome::Unknown(_)) {
            written.answered(before);
            if let Some(numbers) = commit_id.and_then(|id| turn.unknown.get_mut(&id))
                && first_of_number
            {
                numbers.remove(&number);
            }
            if written.sent() == Sent::Definite {
                turn.settle(commit_id);
            }
        }
        Ok(Attempt::Sent(outcome))
    }

    /// What to tell where the catalog refused for good: that the table is gone, or another one, where it is.
    async fn rejected(&self, error: Error, written: &Written) -> Error {
        if let Err(gone) = self.load().await
            && matches!(gone.kind(), ErrorKind::NotFound | ErrorKind::Ledger)
        {
            return gone;
        }
        match written.sent() {
            Sent::Unknown => unknown_outcome(&error).with_source(error),
            Sent::Never | Sent::Definite => error,
        }
    }
}

/// Tells the time of the manifests from that of their list.
async fn timed<S>(
    times: &mut CommitTimes,
    attempt: impl Future<Output = Result<Step<S>>>,
) -> Result<Step<S>> {
    let began = Instant::now();
    let step = attempt.await;
    let list = if let Ok(Step::Send(request)) = &step { request.list_time } else { Duration::ZERO };
    times.list += list;
    times.manifest += began.elapsed().saturating_sub(list);
    step
}

impl Turn {
    /// Whether a commit with requests that have no answer may name its files again. Such a request may have landed, been
    /// rolled back, and expired together with the files. It can only have landed right after its base, with the next
    /// sequence number: where a snapshot in the metadata has that number, it did not.
    fn may_name_files(&self, commit_id: Option<CommitId>, base: &Table) -> Result<()> {
        let Some(numbers) = commit_id.and_then(|id| self.unknown.get(&id)) else { return Ok(()) };
        let metadata = base.metadata();
        let is_seen = |number: i64| metadata.snapshots().any(|snapshot| snapshot.sequence_number() == number);
        let is_open = |number: &&i64| **number < metadata.last_sequence_number() && !is_seen(**number + 1);
        match numbers.iter().find(is_open) {
            None => Ok(()),
            Some(number) => Err(unknown_outcome(format!(
                "a request of it has no answer, and the snapshot with the sequence number {} that it would have was \
                 expired since: its files may have gone with it",
                number + 1
            ))),
        }
    }

    /// The outcome of this commit is known.
    fn settle(&mut self, commit_id: Option<CommitId>) {
        if let Some(id) = commit_id {
            self.unknown.remove(&id);
        }
    }
}

fn not_in_reply(table: &Table) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!(
            "the catalog answered that `{}` was committed with a table that lacks the snapshot",
            table.identifier()
        ),
    )
}
