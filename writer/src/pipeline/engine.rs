//! The state of a pipeline and its loop.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use firn_table::commit::{CommitLimits, SourceIdentity, TableHandle};
use firn_table::ledger::TopicPartition;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Environment;
use super::chunk::{Chunk, DecodeRules};
use super::commits::{Committing, Expiry};
use super::control::Control;
use super::decoding::Decoding;
use super::fence::Rivalry;
use super::files::{FileDone, FileWrites};
use super::flush::Flush;
use super::letters::DeadLetterState;
use super::shape::TableShape;
use super::shards::{Change, Load};
use crate::budget::Budget;
use crate::config::{End, WriterConfig};
use crate::dead_letters::Share;
use crate::observe::{Event, Observer, Status, WriterReport};
use crate::ranges::place;
use crate::source::{Fetched, Source, SourceEvent};
use crate::{Error, ErrorKind, Result};

/// What a pipeline is made of.
#[derive(Debug)]
pub struct Parts {
    /// What to do.
    pub config: WriterConfig,
    /// The table.
    pub handle: TableHandle,
    /// Where messages come from.
    pub source: Box<dyn Source>,
    /// The budget that the source's messages were admitted to.
    pub budget: Arc<Budget>,
    /// Instance, wall clock, threads.
    pub environment: Environment,
}

/// Runs a pipeline until `stop` is cancelled, the configured end is reached, or an error needs a person.
/// [`run`](crate::run()) makes the parts for Kafka; tests and simulations bring their own.
pub async fn run_pipeline(
    parts: Parts,
    observer: Arc<dyn Observer>,
    stop: CancellationToken,
) -> Result<WriterReport> {
    let mut pipeline = Pipeline::new(parts, observer)?;
    pipeline.tell(Event::Started { instance: pipeline.environment.instance });
    let opened = tokio::select! {
        biased;
        () = stop.cancelled() => Ok(()),
        opened = pipeline.open_letters() => opened,
    };
    let result = match opened {
        Ok(()) => pipeline.run(&stop).await,
        Err(e) => Err(e),
    };
    if result.is_err() {
        pipeline.abandon().await;
    }
    pipeline.source.close().await;
    pipeline.report.peak_memory_bytes = pipeline.budget.peak();
    result.map(|()| pipeline.report)
}

/// All state of a running writer. Its methods are spread over the modules beside this one.
pub(super) struct Pipeline {
    pub(super) config: WriterConfig,
    pub(super) handle: TableHandle,
    pub(super) source: Box<dyn Source>,
    pub(super) budget: Arc<Budget>,
    pub(super) environment: Environment,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) report: WriterReport,

    pub(super) identity: SourceIdentity,
    pub(super) owned: BTreeMap<TopicPartition, Owned>,
    pub(super) next_epoch: u64,
    pub(super) revoking: Option<Revoking>,
    pub(super) phase: Phase,

    pub(super) control: Control,
    pub(super) decoding: Decoding,
    /// Flushes in order; the last one is open, the ones before it are sealed.
    pub(super) line: VecDeque<Flush>,
    pub(super) next_flush: u64,
    pub(super) writes: FileWrites,
    pub(super) committing: Option<Committing>,
    pub(super) next_commit: u64,
    pub(super) expiry: Expiry,
    pub(super) rivalry: Rivalry,
    pub(super) letters: DeadLetterState,
    /// Commits in a row that failed without being overtaken.
    pub(super) failed_commits: u32,

    pub(super) usual_commit: Duration,
    pub(super) usual_write: Duration,
    pub(super) last_seal: Option<Instant>,
    pub(super) unhealthy: bool,
    last_status: Option<Instant>,
}

/// A partition that is read.
#[derive(Debug, Clone)]
pub(super) struct Owned {
    pub epoch: u64,
    /// The next offset that the source will hand over.
    pub next: i64,
    /// Where to stop, when the writer ends by itself.
    pub end: Option<i64>,
}

/// An epoch that nothing is tagged with.
pub(super) const NO_EPOCH: u64 = u64::MAX;

/// Partitions that are to be given up.
#[derive(Debug)]
pub(super) struct Revoking {
    pub partitions: BTreeSet<TopicPartition>,
    pub deadline: Instant,
}

/// What the pipeline is about.
#[derive(Debug)]
pub(super) enum Phase {
    Running,
    /// An offset was lost: commit what is in hand, then look again where to read on.
    Repositioning,
    /// Commit what is in hand, then end: well, or with this error.
    Stopping(Option<Error>),
}

impl Pipeline {
    fn new(parts: Parts, observer: Arc<dyn Observer>) -> Result<Self> {
        let Parts { config, handle, source, budget, environment } = parts;
        // A writer must not give up: while the catalog is away, the budget bounds what it takes in.
        let limits = CommitLimits { max_conflicts: u32::MAX, deadline: None, ..handle.limits().clone() };
        let handle = handle.with_limits(limits);
        let shape = Arc::new(TableShape::of(handle.table(), 0)?);
        let control = Control::new(&config);
        let (shards, order) = (control.shards(), control.order());
        let rules = DecodeRules { on_bad: config.on_bad_message, shards, order };
        let decoding = Decoding::new(environment.cpu, rules, config.decode.clone(), shape)?;
        let writes =
            FileWrites::new(handle.stores().clone(), environment.cpu, order, config.upload_concurrency);
        let expiry = Expiry::new(config.expiry.clone());
        let letters = DeadLetterState::new(Share::new(&config.dead_letters));
        Ok(Self {
            config,
            handle,
            source,
            budget,
            environment,
            observer,
            report: WriterReport::default(),
            identity: SourceIdentity::default(),
            owned: BTreeMap::new(),
            next_epoch: 1,
            revoking: None,
            phase: Phase::Running,
            control,
            decoding,
            line: VecDeque::from([Flush::new(0)]),
            next_flush: 1,
            writes,
            committing: None,
            next_commit: 1,
            expiry,
            rivalry: Rivalry::default(),
            letters,
            failed_commits: 0,
            usual_commit: Duration::from_millis(20),
            usual_write: Duration::from_millis(10),
            last_seal: None,
            unhealthy: false,
            last_status: None,
        })
    }

    pub(super) fn tell(&self, event: Event) {
        self.observer.on_event(&event);
    }

    /// One event at a time until there is nothing left to do.
    async fn run(&mut self, stop: &CancellationToken) -> Result<()> {
        loop {
            self.decoding.pump()?;
            let wake = self.pump_flushes()?;
            self.pump_commit()?;
            self.pump_revoke();
            if self.pump_phase(stop).await? {
                return self.finish();
            }
            self.check_health();
            let stopping = matches!(self.phase, Phase::Stopping(_));
            tokio::select! {
                biased;
                () = stop.cancelled(), if !stopping => self.begin_stop(None),
                done = Committing::outcome(&mut self.committing) => self.after_commit(done).await?,
                done = self.writes.next() => self.after_write(done?)?,
                chunk = self.decoding.next() => self.take_chunk(chunk?)?,
                expired = self.expiry.outcome() => self.after_expiry(expired),
                event = self.source.next() => self.take_event(event?, stop).await?,
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// Whether all that was begun is committed.
    pub(super) fn is_drained(&self) -> bool {
        self.decoding.is_idle()
            && self.committing.is_none()
            && self.line.iter().all(|f| f.ranges.is_empty() && f.outstanding == 0)
    }

    /// Whether everything up to the ends at the start was handed over, where that is what the writer is there for.
    pub(super) fn ends_are_reached(&self) -> bool {
        self.config.end == End::AtEndsOfStart
            && !self.owned.is_empty()
            && self.owned.values().all(|o| o.end.is_some_and(|end| o.next >= end))
    }

    /// Goes on to the next phase where this one is done; true at the end.
    async fn pump_phase(&mut self, stop: &CancellationToken) -> Result<bool> {
        match self.phase {
            Phase::Running => {
                if self.ends_are_reached() && self.is_drained() {
                    self.begin_stop(None);
                }
                Ok(false)
            }
            Phase::Repositioning if self.is_drained() => {
                self.phase = Phase::Running;
                self.reposition(stop).await?;
                Ok(false)
            }
            Phase::Repositioning => Ok(false),
            Phase::Stopping(_) => {
                Ok(self.is_drained() && self.expiry.is_idle() && self.writes.in_flight() == 0)
            }
        }
    }

    fn finish(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.phase, Phase::Stopping(None)) {
            Phase::Stopping(Some(error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes nothing more from the source; what is in hand is committed.
    pub(super) fn begin_stop(&mut self, error: Option<Error>) {
        if error.is_some() {
            // What was fetched after the bad message is not wanted any more.
            self.decoding.retain(|_| false);
            self.owned.values_mut().for_each(|o| o.epoch = NO_EPOCH);
        }
        match &mut self.phase {
            Phase::Stopping(first) => *first = first.take().or(error),
            _ => {
                self.tell(Event::Stopping);
                self.phase = Phase::Stopping(error);
            }
        }
    }

    async fn take_event(&mut self, event: SourceEvent, stop: &CancellationToken) -> Result<()> {
        match event {
            SourceEvent::Messages(all) => all.into_iter().try_for_each(|fetched| self.take_fetched(fetched)),
            SourceEvent::End(partition) => self.take_end(&partition),
            SourceEvent::Assigned(partitions) => self.assign(partitions, stop).await,
            SourceEvent::Revoked(partitions) => {
                self.begin_revoke(partitions);
                Ok(())
            }
            SourceEvent::OffsetLost => {
                if matches!(self.phase, Phase::Running) {
                    self.phase = Phase::Repositioning;
                }
                Ok(())
            }
            SourceEvent::Trouble(message) => {
                self.tell(Event::SourceTrouble { message });
                Ok(())
            }
        }
    }

    fn take_fetched(&mut self, mut fetched: Fetched) -> Result<()> {
        let partition = fetched.messages.partition();
        let running = matches!(self.phase, Phase::Running);
        let Some(owned) = self.owned.get_mut(partition).filter(|o| running && o.epoch == fetched.epoch)
        else {
            return Ok(());
        };
        let first = fetched.messages.first_offset().unwrap_or(fetched.next);
        if fetched.start > owned.next || first < owned.next {
            let message =
                format!("{} went on at offset {first} where {} was expected", place(partition), owned.next);
            return Err(Error::new(ErrorKind::Internal, message));
        }
        fetched.start = owned.next;
        if fetched.next <= fetched.start {
            return Ok(());
        }
        owned.next = fetched.next;
        self.decoding.push(fetched);
        Ok(())
    }

    /// All up to the end was handed over: offsets between the last message and the end at the start are holes.
    fn take_end(&mut self, partition: &TopicPartition) -> Result<()> {
        let Some(owned) = self.owned.get(partition) else { return Ok(()) };
        let (next, epoch) = (owned.next, owned.epoch);
        let Some(end) = owned.end.filter(|end| *end > next) else { return Ok(()) };
        let charge = self.budget.charge(0);
        let messages = crate::batch::MessageBatch::new(partition.clone(), crate::batch::Headers::Drop);
        let fetched_at = Instant::now();
        self.take_fetched(Fetched { messages, start: next, next: end, epoch, fetched_at, charge })
    }

    fn take_chunk(&mut self, mut chunk: Chunk) -> Result<()> {
        let wanted = self.owned.get(&chunk.range.partition).is_some_and(|o| o.epoch == chunk.epoch);
        if !wanted {
            return Ok(());
        }
        for rejection in std::mem::take(&mut chunk.rejections) {
            self.tell(Event::Rejected(rejection));
        }
        let stop = chunk.stop.take();
        let (messages, letters) = (chunk.range.rows + chunk.range.rejected, chunk.letters.len() as u64);
        if chunk.range.next > chunk.range.start {
            self.open().add(chunk, Instant::now())?;
        }
        if let Some(rejection) = stop {
            self.begin_stop(Some(rejection.into_error()));
        }
        if let Err(too_many) = self.letters.share.add(messages, letters) {
            self.begin_stop(Some(too_many));
        }
        Ok(())
    }

    /// The open flush.
    pub(super) fn open(&mut self) -> &mut Flush {
        if self.line.back().is_none_or(|f| f.sealed_at.is_some()) {
            self.line.push_back(Flush::new(self.next_flush));
            self.next_flush += 1;
        }
        let last = self.line.len() - 1;
        &mut self.line[last]
    }

    fn after_write(&mut self, done: FileDone) -> Result<()> {
        let now = Instant::now();
        let Some(flush) = self.line.iter_mut().find(|f| f.number == done.flush) else {
            // Its flush was discarded while the file was being finished.
            self.writes.delete_unsent(done.flush, done.outcome.ok().flatten());
            return Ok(());
        };
        flush.outstanding = flush.outstanding.saturating_sub(1);
        flush.phases.encode += done.encode;
        flush.phases.upload += done.upload;
        flush.files.extend(done.outcome?);
        if let Some(sealed_at) = flush.sealed_at.filter(|_| flush.is_ready()) {
            flush.ready_at = Some(now);
            let (write, number) = (now.saturating_duration_since(sealed_at), flush.number);
            self.usual_write = average(self.usual_write, write);
            self.follow_load(number, write);
        }
        Ok(())
    }

    /// Changes the number of shards as the load that shows in a written flush has it.
    fn follow_load(&mut self, number: u64, write: Duration) {
        let Some(flush) = self.line.iter().find(|f| f.number == number) else { return };
        let load = Load {
            flush_bytes: flush.taken_bytes,
            write,
            interval: flush.interval,
            backlog_bytes: self.line.iter().map(Flush::unwritten_bytes).sum(),
        };
        if let Some(Change { from, to, reason }) = self.control.written(&load) {
            self.decoding.set_shards(to);
            self.tell(Event::Shards { from: from as usize, to: to as usize, reason });
        }
    }

    /// Tells when rows stay invisible for too long, and when that is over.
    fn check_health(&mut self) {
        let oldest = self
            .line
            .iter()
            .filter_map(|f| f.oldest)
            .chain(self.committing.iter().filter_map(|c| c.oldest()));
        let age = oldest.min().map_or(Duration::ZERO, |at| at.elapsed());
        self.tell_status(age);
        if age > self.config.unhealthy_after {
            if !self.unhealthy {
                let reason = self.committing.as_ref().map_or_else(
                    || "files cannot be written".to_owned(),
                    |c| match self.handle.trouble() {
                        Some(trouble) => {
                            format!("commit `{}` does not land: {}", c.commit_id(), trouble.reason)
                        }
                        None => format!("commit `{}` has no answer yet", c.commit_id()),
                    },
                );
                self.tell(Event::Unhealthy { oldest_row_age: age, reason });
            }
            self.unhealthy = true;
        }
    }

    fn tell_status(&mut self, oldest_row_age: Duration) {
        let now = Instant::now();
        if self.last_status.is_some_and(|last| now.saturating_duration_since(last) < STATUS_INTERVAL) {
            return;
        }
        self.last_status = Some(now);
        self.observer.on_status(&Status {
            oldest_row_age,
            memory_bytes: self.budget.used(),
            memory_limit_bytes: self.budget.limit(),
            waiting_flushes: self.line.iter().filter(|f| f.sealed_at.is_some()).count(),
        });
    }
}

/// Between two looks at how things stand, where there is something to do all the time.
const STATUS_INTERVAL: Duration = Duration::from_millis(250);

/// A moving average that follows a change within a few samples.
pub(super) fn average(usual: Duration, sample: Duration) -> Duration {
    (usual * 3 + sample) / 4
}
