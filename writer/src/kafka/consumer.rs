//! The consumer's thread: it polls, copies messages into batches, and never waits for the pipeline.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use firn_table::ledger::TopicPartition;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{Offset, TopicPartitionList};
use tokio::sync::mpsc::UnboundedSender;

use super::cluster::{is_offset_lost, source_identity};
use super::context::{Context, Rebalance, answer_assign, answer_revoke};
use super::source::Command;
use super::{REQUEST_TIMEOUT, kafka_error, offsets};
use crate::Result;
use crate::batch::{Headers, MessageBatch};
use crate::budget::{Budget, Charge};
use crate::source::{Fetched, Position, SourceEvent};

/// The state of the thread.
pub(super) struct ConsumerThread {
    consumer: BaseConsumer<Context>,
    topics: Vec<String>,
    budget: Arc<Budget>,
    headers: Headers,
    events: UnboundedSender<Result<SourceEvent>>,
    readings: Vec<Reading>,
    /// The reading of the last message: messages come in runs.
    last: usize,
    /// Bytes of messages to gather before they are handed over.
    chunk_bytes: usize,
    gathered_bytes: usize,
    gathered_since: Option<Instant>,
    reserve: Option<Charge>,
    short_since: Option<Instant>,
    paused: bool,
    positions_checked: Instant,
    last_trouble: Option<(Instant, String)>,
    offset_lost: bool,
}

/// A partition that is read.
struct Reading {
    partition: TopicPartition,
    epoch: u64,
    /// The first offset that was not handed over.
    next: i64,
    batch: MessageBatch,
    /// A seek that librdkafka did not take yet; messages from before it are dropped.
    seeking: Option<i64>,
    ended: bool,
}

/// How long messages are gathered when they come slowly: a batch of many costs little more than a batch of one.
const LINGER: Duration = Duration::from_millis(5);
/// The longest poll without messages: how late a command may be noticed.
const IDLE_POLL: Duration = Duration::from_millis(10);
/// How long the thread waits for memory before it pauses its partitions, which drops what librdkafka has fetched.
const PATIENCE: Duration = Duration::from_millis(500);
const POSITIONS_EVERY: Duration = Duration::from_millis(100);
const TROUBLE_EVERY: Duration = Duration::from_secs(5);
/// Decoded rows take about as much memory as their messages, for a while beside them.
const EXPANSION: usize = 3;
/// Bytes of messages to gather where the budget is not small.
const CHUNK_BYTES: usize = 1 << 20;

impl ConsumerThread {
    pub(super) fn new(
        consumer: BaseConsumer<Context>,
        topics: Vec<String>,
        budget: Arc<Budget>,
        headers: Headers,
        events: UnboundedSender<Result<SourceEvent>>,
    ) -> Result<Self> {
        let names: Vec<&str> = topics.iter().map(String::as_str).collect();
        consumer.subscribe(&names).map_err(|e| kafka_error("the topics cannot be subscribed to", e))?;
        let chunk_bytes = CHUNK_BYTES.min(budget.limit() / 8 / EXPANSION);
        Ok(Self {
            consumer,
            topics,
            budget,
            headers,
            events,
            readings: Vec::new(),
            last: 0,
            chunk_bytes,
            gathered_bytes: 0,
            gathered_since: None,
            reserve: None,
            short_since: None,
            paused: false,
            positions_checked: Instant::now(),
            last_trouble: None,
            offset_lost: false,
        })
    }

    /// Runs until it is told to close, or nobody listens any more.
    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        let closed = loop {
            match commands.try_recv() {
                Ok(Command::Close(reply)) => break Some(reply),
                Ok(command) => self.obey(command),
                Err(TryRecvError::Disconnected) => break None,
                Err(TryRecvError::Empty) if self.has_memory() => {
                    self.gather();
                    self.pass_on_rebalances();
                    self.retry_seeks();
                }
                Err(TryRecvError::Empty) => self.wait_for_memory(),
            }
        };
        self.consumer.context().close();
        // A rebalance that nobody answered would keep the consumer from closing.
        let answered = self.consumer.assignment().and_then(|all| answer_revoke(&self.consumer, &all));
        if let Err(error) = answered {
            tracing::debug!(%error, "partitions were not given up before closing");
        }
        drop(self.consumer);
        if let Some(reply) = closed {
            let _nobody_waits = reply.send(());
        }
    }

    fn send(&self, event: SourceEvent) {
        let _nobody_listens = self.events.send(Ok(event));
    }

    fn has_memory(&mut self) -> bool {
        if self.reserve.is_none() {
            self.reserve = self.budget.try_admit(self.chunk_bytes * EXPANSION);
        }
        if self.reserve.is_none() {
            return false;
        }
        self.short_since = None;
        if self.paused {
            self.paused = false;
            self.with_assignment("resume", |consumer, all| consumer.resume(all));
        }
        true
    }

    /// Memory is short. Polling goes on, since rebalances free it; paused partitions deliver nothing meanwhile.
    fn wait_for_memory(&mut self) {
        let since = *self.short_since.get_or_insert_with(Instant::now);
        if !self.paused && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
            return;
        }
        if !self.paused {
            self.paused = true;
            self.with_assignment("pause", |consumer, all| consumer.pause(all));
        }
        self.gather();
        self.pass_on_rebalances();
    }

    fn with_assignment(
        &self,
        what: &str,
        act: impl Fn(&BaseConsumer<Context>, &TopicPartitionList) -> rdkafka::error::KafkaResult<()>,
    ) {
        let done = self.consumer.assignment().and_then(|all| act(&self.consumer, &all));
        if let Err(error) = done {
            tracing::warn!(%error, "partitions cannot be {what}d");
        }
    }

    /// Polls until a chunk is full, nothing more is there, or something else is to be done; then hands over.
    fn gather(&mut self) {
        loop {
            let timeout = match self.gathered_since {
                None => IDLE_POLL,
                Some(since) => LINGER.saturating_sub(since.elapsed()),
            };
            // Taken apart from `self`, so that a message may borrow the consumer while the state changes.
            let Self { consumer, readings, last, .. } = self;
            match consumer.poll(timeout) {
                Some(Ok(message)) => {
                    let taken = take(readings, last, &message);
                    drop(message);
                    if taken > 0 {
                        self.gathered_bytes += taken;
                        self.gathered_since.get_or_insert_with(Instant::now);
                    }
                    if self.gathered_bytes >= self.chunk_bytes {
                        break;
                    }
                }
                Some(Err(error)) => self.note_error(error),
                None => break,
            }
            if self.consumer.context().has_rebalance() {
                break;
            }
        }
        self.hand_over();
        if self.positions_checked.elapsed() >= POSITIONS_EVERY {
            self.positions_checked = Instant::now();
            self.hand_over_holes();
        }
    }

    fn hand_over(&mut self) {
        let mut all = Vec::new();
        let fetched_at = self.gathered_since.take().unwrap_or_else(Instant::now).into();
        self.gathered_bytes = 0;
        let mut reserve = self.reserve.take();
        for reading in &mut self.readings {
            let Some(last) = reading.batch.last_offset() else { continue };
            let empty = MessageBatch::new(reading.partition.clone(), self.headers);
            let messages = std::mem::replace(&mut reading.batch, empty);
            let bytes = messages.memory_bytes();
            let charge = match &mut reserve {
                Some(reserve) => reserve.split(bytes),
                None => self.budget.charge(bytes),
            };
            let (start, next, epoch) = (reading.next, last + 1, reading.epoch);
            reading.next = next;
            all.push(Fetched { messages, start, next, epoch, fetched_at, charge });
        }
        if !all.is_empty() {
            self.send(SourceEvent::Messages(all));
        }
        for reading in &mut self.readings {
            if std::mem::take(&mut reading.ended) {
                let _nobody_listens = self.events.send(Ok(SourceEvent::End(reading.partition.clone())));
            }
        }
    }

    /// Control records move the position though no message arrives.
    fn hand_over_holes(&mut self) {
        let Ok(positions) = self.consumer.position() else { return };
        let mut all = Vec::new();
        for element in positions.elements() {
            let Offset::Offset(at) = element.offset() else { continue };
            let found = self.readings.iter_mut().find(|r| {
                r.partition.partition == element.partition() && r.partition.topic == element.topic()
            });
            let Some(reading) = found.filter(|r| r.seeking.is_none() && r.batch.is_empty() && at > r.next)
            else {
                continue;
            };
            let messages = MessageBatch::new(reading.partition.clone(), self.headers);
            let (start, epoch) = (reading.next, reading.epoch);
            reading.next = at;
            let (charge, fetched_at) = (self.budget.charge(0), tokio::time::Instant::now());
            all.push(Fetched { messages, start, next: at, epoch, fetched_at, charge });
        }
        if !all.is_empty() {
            self.send(SourceEvent::Messages(all));
        }
    }

    fn pass_on_rebalances(&mut self) {
        while let Some(step) = self.consumer.context().next_rebalance() {
            match step {
                Rebalance::Assigned(partitions) => self.send(SourceEvent::Assigned(partitions)),
                Rebalance::Revoked(partitions) => {
                    self.forget(&partitions);
                    self.send(SourceEvent::Revoked(partitions));
                }
            }
        }
    }

    fn forget(&mut self, partitions: &[TopicPartition]) {
        self.readings.retain(|r| !partitions.contains(&r.partition));
        self.last = 0;
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Start(positions) => self.start(positions),
            Command::Seek(positions) => self.seek(positions),
            Command::Release(partitions) => self.release(&partitions),
            Command::Record(offsets) => self.record(&offsets),
            Command::Identity(reply) => {
                let _nobody_waits =
                    reply.send(source_identity(&self.consumer, &self.topics, REQUEST_TIMEOUT));
            }
            Command::Bounds(request, reply) => {
                let _nobody_waits = reply.send(offsets::bounds(&self.consumer, &request));
            }
            // Handled by the loop.
            Command::Close(_) => {}
        }
    }

    fn start(&mut self, positions: Vec<Position>) {
        self.offset_lost = false;
        let list = offsets::list(positions.iter().map(|p| (&p.partition, p.offset)));
        let partitions: Vec<_> = positions.iter().map(|p| p.partition.clone()).collect();
        self.forget(&partitions);
        self.readings.extend(positions.into_iter().map(|p| Reading {
            batch: MessageBatch::new(p.partition.clone(), self.headers),
            partition: p.partition,
            epoch: p.epoch,
            next: p.offset,
            seeking: None,
            ended: false,
        }));
        let answered = list.and_then(|list| {
            answer_assign(&self.consumer, &list)?;
            if self.paused { self.consumer.pause(&list) } else { Ok(()) }
        });
        if let Err(error) = answered {
            let _nobody_listens = self.events.send(Err(kafka_error("partitions cannot be assigned", error)));
        }
    }

    fn seek(&mut self, positions: Vec<Position>) {
        self.offset_lost = false;
        for position in positions {
            let Some(reading) = self.readings.iter_mut().find(|r| r.partition == position.partition) else {
                continue;
            };
            reading.epoch = position.epoch;
            reading.next = position.offset;
            reading.batch = MessageBatch::new(position.partition, self.headers);
            reading.seeking = Some(position.offset);
            reading.ended = false;
        }
        self.retry_seeks();
    }

    /// librdkafka refuses a seek while a partition is just being assigned: it is tried until it is taken.
    fn retry_seeks(&mut self) {
        for reading in self.readings.iter_mut().filter(|r| r.seeking.is_some()) {
            let Some(offset) = reading.seeking else { continue };
            let TopicPartition { topic, partition } = &reading.partition;
            match self.consumer.seek(topic, *partition, Offset::Offset(offset), Duration::from_secs(1)) {
                Ok(()) => reading.seeking = None,
                Err(error) => tracing::debug!(%error, topic, partition, offset, "seek is not taken yet"),
            }
        }
    }

    fn release(&mut self, partitions: &[TopicPartition]) {
        self.forget(partitions);
        let answered = offsets::list(partitions.iter().map(|p| (p, -1)))
            .and_then(|list| answer_revoke(&self.consumer, &list));
        if let Err(error) = answered {
            let _nobody_listens = self.events.send(Err(kafka_error("partitions cannot be given up", error)));
        }
    }

    fn record(&self, recorded: &[(TopicPartition, i64)]) {
        let committed = offsets::list(recorded.iter().map(|(p, at)| (p, *at)))
            .and_then(|list| self.consumer.commit(&list, CommitMode::Async));
        if let Err(error) = committed {
            tracing::debug!(%error, "the group's offsets were not recorded");
        }
    }

    fn note_error(&mut self, error: KafkaError) {
        if let KafkaError::PartitionEOF(partition) = error {
            self.note_end(partition);
        } else if is_offset_lost(&error) {
            if !std::mem::replace(&mut self.offset_lost, true) {
                self.send(SourceEvent::OffsetLost);
            }
        } else if matches!(error, KafkaError::MessageConsumptionFatal(_)) || is_refused(&error) {
            let _nobody_listens = self.events.send(Err(kafka_error("messages cannot be read", error)));
        } else if !is_absent(&error) {
            self.note_trouble(error.to_string());
        }
    }

    /// The client tells only the number of the partition that ended, so with two topics it is not known which one it
    /// was; then the position, which control records move too, has to do.
    fn note_end(&mut self, partition: i32) {
        let mut found = self.readings.iter_mut().filter(|r| r.partition.partition == partition);
        if let (Some(reading), None) = (found.next(), found.next())
            && reading.seeking.is_none()
        {
            reading.ended = true;
        }
    }

    fn note_trouble(&mut self, message: String) {
        let told = self.last_trouble.as_ref();
        if told.is_some_and(|(at, last)| *last == message && at.elapsed() < TROUBLE_EVERY) {
            return;
        }
        self.last_trouble = Some((Instant::now(), message.clone()));
        self.send(SourceEvent::Trouble(message));
    }
}

/// Copies a message into the batch of its partition; returns its bytes.
fn take(readings: &mut [Reading], last: &mut usize, message: &BorrowedMessage<'_>) -> usize {
    let is_of =
        |r: &Reading| r.partition.partition == message.partition() && r.partition.topic == message.topic();
    if !readings.get(*last).is_some_and(is_of) {
        let Some(found) = readings.iter().position(is_of) else { return 0 };
        *last = found;
    }
    let reading = &mut readings[*last];
    let expected = reading.batch.last_offset().map_or(reading.next, |o| o + 1);
    if reading.seeking.is_some() || message.offset() < expected {
        return 0;
    }
    let before = reading.batch.content_bytes();
    reading.batch.push(message);
    reading.batch.content_bytes() - before + MESSAGE_OVERHEAD
}

/// What a message costs beside its bytes, so that a chunk of empty messages ends too.
const MESSAGE_OVERHEAD: usize = 64;

/// Credentials or rights are wrong: trying again does not help.
fn is_refused(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::GroupAuthorizationFailed
                | RDKafkaErrorCode::Authentication
        )
    )
}

/// The topic does not exist yet: it is waited for.
fn is_absent(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::UnknownTopic
                | RDKafkaErrorCode::UnknownPartition
        )
    )
}
