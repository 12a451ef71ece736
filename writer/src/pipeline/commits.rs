//! Sealing flushes, committing them in order, one at a time, and what follows from each outcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use firn_table::commit::{
    CommitTimes, Committed, ExpireReport, Flush as TableFlush, FlushOutcome, Guarantee, TableHandle,
};
use firn_table::ledger::{CommitId, Cursor, TopicPartition};
use firn_table::protections::{Protection, stands};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::assign::{FIRST_WAIT, passes};
use super::control::Course;
use super::engine::{NO_EPOCH, Phase, Pipeline, average};
use super::files::FileWork;
use super::flush::{Buffer, Flush};
use super::freshness::Pressure;
use super::letters::commit;
use super::policy::{Decision, Memory, Situation, Urgency, decide};
use super::shape::TableShape;
use crate::config::ExpirySchedule;
use crate::observe::{CommitEvent, Event};
use crate::ranges::Ranges;
use crate::{Error, ErrorKind, Result};

/// A commit in flight.
#[derive(Debug)]
pub(super) struct Committing {
    flush: Flush,
    commit_id: CommitId,
    since: Instant,
    task: JoinSet<Result<FlushOutcome>>,
}

impl Committing {
    pub(super) fn ranges(&self) -> &Ranges {
        &self.flush.ranges
    }

    pub(super) fn commit_id(&self) -> CommitId {
        self.commit_id
    }

    pub(super) fn oldest(&self) -> Option<Instant> {
        self.flush.oldest
    }

    /// Waits for the outcome; pending for ever where no commit is in flight. Safe to cancel.
    pub(super) async fn outcome(committing: &mut Option<Self>) -> Result<FlushOutcome> {
        let Some(committing) = committing else { return std::future::pending().await };
        match committing.task.join_next().await {
            Some(Ok(outcome)) => outcome,
            Some(Err(e)) => Err(Error::new(ErrorKind::Internal, "a commit panicked").with_source(e)),
            None => std::future::pending().await,
        }
    }

    /// Waits for the outcome, whatever it is.
    pub(super) async fn finish(self) {
        if let Err(e) = Self::outcome(&mut Some(self)).await {
            tracing::warn!(error = %e, "the last commit failed");
        }
    }
}

impl Pipeline {
    /// Seals, spills or waits, as the policy says. Returns when to look again.
    pub(super) fn pump_flushes(&mut self) -> Result<Instant> {
        let now = Instant::now();
        loop {
            let situation = self.situation(now);
            match decide(self.config.mode, self.control.limits(), &situation) {
                Decision::Wait(until) => {
                    let next_look = now + NEXT_LOOK;
                    let revoke = self.revoking.as_ref().map_or(next_look, |r| r.deadline);
                    return Ok(until.unwrap_or(next_look).min(next_look).min(revoke));
                }
                Decision::Seal => self.seal(now)?,
                Decision::Spill => {
                    let buffers = self.open().take_largest()?;
                    self.write(buffers)?;
                }
            }
        }
    }

    fn situation(&mut self, now: Instant) -> Situation {
        let running = matches!(self.phase, Phase::Running);
        let urgent =
            !running || self.revoking.is_some() || (self.ends_are_reached() && self.decoding.is_idle());
        let open = self.open().stats();
        Situation {
            now,
            open,
            waiting: self.line.iter().filter(|f| f.sealed_at.is_some()).count(),
            writes_in_flight: self.writes.in_flight(),
            committing_since: self.committing.as_ref().map(|c| c.since),
            usual_commit: self.usual_commit,
            usual_write: self.usual_write,
            last_seal: self.last_seal,
            memory: Memory { used: self.budget.used(), limit: self.budget.limit() },
            urgency: if urgent { Urgency::Drain } else { Urgency::Usual },
        }
    }

    fn seal(&mut self, now: Instant) -> Result<()> {
        let buffers = self.open().take_all();
        self.write(buffers)?;
        let interval =
            self.last_seal.map_or(self.control.limits().age, |at| now.saturating_duration_since(at));
        let flush = self.open();
        flush.interval = interval;
        flush.sealed_at = Some(now);
        flush.phases.buffer = flush.oldest.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        if flush.is_ready() {
            flush.ready_at = Some(now);
        }
        self.last_seal = Some(now);
        Ok(())
    }

    /// Starts writing buffers of the open flush.
    fn write(&mut self, buffers: Vec<Buffer>) -> Result<()> {
        let (writer, instance) = (self.config.name.clone(), self.environment.instance);
        for buffer in buffers {
            let flush = self.open();
            let shard = buffer.shard;
            // The counter keeps names apart where one flush writes a shard of a partition more than once.
            let name = format!("{writer}-{instance}-{:06}-{shard}-{}.parquet", flush.number, flush.named);
            flush.named += 1;
            flush.outstanding += 1;
            let work = FileWork { flush: flush.number, name, buffer, discarded: flush.discarded.clone() };
            self.writes.start(work);
        }
        Ok(())
    }

    /// Starts the next commit, with all flushes that are ready in a row, and expiry when its time has come.
    pub(super) fn pump_commit(&mut self) -> Result<()> {
        if matches!(self.phase, Phase::Running) && self.committing.is_none() {
            self.expiry.pump(&self.handle);
        }
        if self.committing.is_some() || !self.line.front().is_some_and(Flush::is_ready) {
            return Ok(());
        }
        let Some(mut flush) = self.line.pop_front() else { return Ok(()) };
        while self.line.front().is_some_and(Flush::is_ready)
            && let Some(later) = self.line.pop_front()
        {
            flush.merge(later)?;
        }
        let commit_id = self.new_commit_id();
        let since = Instant::now();
        let sealed = TableFlush {
            commit_id,
            writer: self.config.name.clone(),
            ranges: flush.ranges.iter().cloned().collect(),
            files: flush.files.clone(),
            source: self.identity.clone(),
            guarantee: self.config.guarantee,
        };
        flush.dead_letters = flush.letters.len() as u64;
        let (letters, claims) = (self.letters_of(&mut flush), self.row_claims());
        let mut task = JoinSet::new();
        task.spawn(commit(self.handle.clone(), letters, sealed, claims));
        flush.phases.queue = flush.ready_at.map_or(Duration::ZERO, |at| since.saturating_duration_since(at));
        self.committing = Some(Committing { flush, commit_id, since, task });
        Ok(())
    }

    pub(super) async fn after_commit(&mut self, outcome: Result<FlushOutcome>) -> Result<()> {
        let Some(Committing { flush, commit_id, since, .. }) = self.committing.take() else { return Ok(()) };
        match outcome {
            Ok(FlushOutcome::Committed(committed)) => self.landed(flush, commit_id, since, *committed),
            Ok(FlushOutcome::Overtaken { cursors, by }) => {
                self.overtaken(flush, commit_id, cursors, by).await
            }
            Err(e) if passes(e.kind()) || e.kind() == ErrorKind::Ledger => {
                self.failed_commits += 1;
                if self.failed_commits > MAX_FAILED_COMMITS {
                    return Err(e);
                }
                tracing::warn!(commit = %commit_id, error = %e, "a flush was not committed, reading it again");
                self.read_again(flush).await
            }
            Err(e) => Err(e),
        }
    }

    fn landed(
        &mut self,
        flush: Flush,
        commit_id: CommitId,
        since: Instant,
        committed: Committed,
    ) -> Result<()> {
        self.failed_commits = 0;
        self.rivalry.committed();
        self.usual_commit = average(self.usual_commit, since.elapsed());
        if std::mem::take(&mut self.unhealthy) {
            self.tell(Event::Healthy);
        }
        let dead_letters = flush.dead_letters;
        let offsets = flush.ranges.iter().map(|r| (r.partition.clone(), r.next)).collect();
        self.source.record(offsets);
        let memory = Memory { used: self.budget.used(), limit: self.budget.limit() };
        let course = Course {
            write: flush.write_time(),
            bytes: flush.taken_bytes,
            chunks: flush.chunks,
            memory: if memory.is_short() { Pressure::Short } else { Pressure::Free },
        };
        let event = self.commit_event(flush, commit_id, since, &committed);
        self.report.rows += event.rows;
        self.report.rejected += event.rejected;
        self.report.holes += event.ranges.iter().map(|r| r.holes).sum::<u64>();
        self.report.files += event.files as u64;
        self.report.bytes += event.bytes;
        self.report.commits += 1;
        self.report.dead_letters += dead_letters;
        let freshness = self.control.landed(&event, course);
        self.tell(Event::Committed(Box::new(event)));
        freshness.into_iter().for_each(|event| self.tell(event));
        self.adopt(committed)
    }

    fn commit_event(
        &self,
        flush: Flush,
        commit_id: CommitId,
        since: Instant,
        committed: &Committed,
    ) -> CommitEvent {
        let mut phases = flush.phases;
        phases.commit = since.elapsed();
        let CommitTimes { turn, manifest, list, catalog, retry } = committed.times;
        phases.queue += turn;
        (phases.manifest, phases.list, phases.catalog, phases.retry) = (manifest, list, catalog, retry);
        let ranges = flush.ranges.into_vec();
        let file_sizes: Vec<u64> = flush.files.iter().map(|f| f.file.file_size_in_bytes()).collect();
        CommitEvent {
            snapshot_id: committed.snapshot_id,
            commit_id,
            rows: ranges.iter().map(|r| r.rows).sum(),
            rejected: ranges.iter().map(|r| r.rejected).sum(),
            ranges,
            files: file_sizes.len(),
            bytes: file_sizes.iter().sum(),
            file_sizes,
            visible_at_ms: (self.environment.now_ms)(),
            produced_at_ms: flush.produced.into_pairs(),
            phases,
            attempts: committed.attempts,
            conflicts: committed.conflicts,
        }
    }

    /// Takes over a schema or spec that somebody else changed, for what is decoded from here on.
    fn adopt(&mut self, committed: Committed) -> Result<()> {
        let shape = self.decoding.shape();
        if !shape.differs(&committed.table) {
            return Ok(());
        }
        let shape = TableShape::of(committed.table, shape.generation + 1)?;
        let (schema_id, spec_id) = (shape.format.schema().schema_id(), shape.spec.spec_id());
        self.decoding.set_shape(Arc::new(shape))?;
        self.tell(Event::TableChanged { schema_id, spec_id });
        Ok(())
    }

    /// The flush is not in the table, or its place was taken: read on from the table's cursors.
    async fn overtaken(
        &mut self,
        flush: Flush,
        commit_id: CommitId,
        cursors: BTreeMap<TopicPartition, Cursor>,
        by: Option<CommitId>,
    ) -> Result<()> {
        self.report.overtaken += 1;
        self.tell(Event::Overtaken { ranges: flush.ranges.iter().cloned().collect(), by });
        self.rivalry.overtaken(self.config.max_overtaken, commit_id, by)?;
        if self.holds_claims() {
            return self.read_again(flush).await;
        }
        let starts = self.discard_after(flush);
        let at = |(p, start): (TopicPartition, i64)| {
            let next = cursors.get(&p).map_or(start, |c| c.next);
            (p, next)
        };
        self.seek_back(starts.into_iter().map(at).collect());
        Ok(())
    }

    /// Discards what follows a flush that did not land. Its own files are the commit's to delete.
    fn discard_after(&mut self, flush: Flush) -> BTreeMap<TopicPartition, i64> {
        let mut starts: BTreeMap<_, _> =
            flush.ranges.iter().map(|r| (r.partition.clone(), r.start)).collect();
        let touched: Vec<_> = starts.keys().filter(|_| stands(Protection::DiscardLater)).cloned().collect();
        for (partition, start) in self.discard(touched) {
            starts.entry(partition).or_insert(start);
        }
        starts
    }

    /// The outcome of a commit is not known, or the ledger contradicts it: the table decides where to read on.
    async fn read_again(&mut self, flush: Flush) -> Result<()> {
        let starts = self.discard_after(flush);
        tokio::time::sleep(FIRST_WAIT * self.failed_commits).await;
        if self.config.guarantee == Guarantee::AtLeastOnce {
            self.seek_back(starts);
            return Ok(());
        }
        let all: Vec<_> = self.owned.keys().cloned().collect();
        self.discard(all);
        // What is on its way from the source is of no epoch any more; new ones come with the new positions.
        self.decoding.retain(|_| false);
        self.owned.values_mut().for_each(|o| o.epoch = NO_EPOCH);
        if matches!(self.phase, Phase::Running) {
            self.phase = Phase::Repositioning;
        }
        Ok(())
    }

    pub(super) fn after_expiry(&mut self, outcome: (Result<ExpireReport>, Duration)) {
        match outcome {
            (Ok(report), elapsed) if !report.snapshot_ids.is_empty() => {
                let snapshots = report.snapshot_ids.len();
                let files = report.data_files.len() + report.manifests.len() + report.manifest_lists.len();
                self.report.expired_snapshots += snapshots as u64;
                self.tell(Event::Expired { snapshots, files, elapsed });
            }
            (Ok(_), _) => {}
            (Err(e), _) => tracing::warn!(error = %e, "snapshots were not expired, trying again later"),
        }
    }
}

/// Failed commits in a row after which the writer gives up on a catalog that answers, but not sensibly.
const MAX_FAILED_COMMITS: u32 = 20;
/// The longest time between two looks at the state.
const NEXT_LOOK: Duration = Duration::from_secs(1);

/// Snapshot expiry between commits.
#[derive(Debug)]
pub(super) struct Expiry {
    schedule: Option<ExpirySchedule>,
    due: Option<Instant>,
    began: Option<Instant>,
    task: JoinSet<Result<ExpireReport>>,
}

impl Expiry {
    pub(super) fn new(schedule: Option<ExpirySchedule>) -> Self {
        Self { schedule, due: None, began: None, task: JoinSet::new() }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.task.is_empty()
    }

    /// Starts a run when one is due. The caller knows that the commit queue is free.
    fn pump(&mut self, handle: &TableHandle) {
        let Some(schedule) = &self.schedule else { return };
        let now = Instant::now();
        let due = *self.due.get_or_insert(now + schedule.every);
        if now < due || !self.task.is_empty() {
            return;
        }
        self.due = Some(now + schedule.every);
        self.began = Some(now);
        let (handle, options) = (handle.clone(), schedule.options.clone());
        self.task.spawn(async move { handle.expire(&options).await });
    }

    /// Waits for the run; pending for ever where there is none. Safe to cancel.
    pub(super) async fn outcome(&mut self) -> (Result<ExpireReport>, Duration) {
        let result = match self.task.join_next().await {
            Some(Ok(result)) => result,
            Some(Err(e)) => Err(Error::new(ErrorKind::Internal, "expiry panicked").with_source(e)),
            None => std::future::pending().await,
        };
        (result, self.began.map_or(Duration::ZERO, |at| at.elapsed()))
    }
}
