//! Kafka as a [`Source`]: a handle on the consumer's thread.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::time::Duration;

use async_trait::async_trait;
use firn_table::commit::SourceIdentity;
use firn_table::ledger::TopicPartition;
use tokio::sync::{mpsc, oneshot};

use super::consumer::ConsumerThread;
use super::context::Context;
use super::{client_config, kafka_error};
use crate::batch::Headers;
use crate::budget::Budget;
use crate::config::{OnBadMessage, WriterConfig};
use crate::decode::KafkaColumns;
use crate::source::{Bounds, BoundsRequest, Position, Source, SourceEvent};
use crate::{Error, ErrorKind, Result};

/// A consumer on a thread of its own. Events come out, answers and questions go in.
pub struct KafkaSource {
    commands: blocking::Sender<Command>,
    events: mpsc::UnboundedReceiver<Result<SourceEvent>>,
}

impl fmt::Debug for KafkaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSource").finish_non_exhaustive()
    }
}

/// What the thread is told.
#[derive(Debug)]
pub(super) enum Command {
    Start(Vec<Position>),
    Seek(Vec<Position>),
    Release(Vec<TopicPartition>),
    Record(Vec<(TopicPartition, i64)>),
    Identity(oneshot::Sender<SourceIdentity>),
    Bounds(BoundsRequest, oneshot::Sender<Result<BTreeMap<TopicPartition, Bounds>>>),
    Close(oneshot::Sender<()>),
}

/// Under what the person sets: fetches large enough for a fast broker, waits short enough for low latency. The session
/// is short, because a partition whose owner died is read by nobody until it ends, and the fence makes an owner that
/// was only slow harmless.
const DEFAULTS: &[(&str, &str)] = &[
    ("client.id", "firn"),
    ("partition.assignment.strategy", "cooperative-sticky"),
    ("session.timeout.ms", "10000"),
    ("heartbeat.interval.ms", "2000"),
    ("fetch.wait.max.ms", "10"),
    ("fetch.queue.backoff.ms", "10"),
    ("fetch.error.backoff.ms", "50"),
    ("queued.min.messages", "1000000"),
    ("topic.metadata.refresh.interval.ms", "2000"),
];

/// Over what the person sets: the promises of the writer depend on these.
const OWNED: &[(&str, &str)] = &[
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("auto.offset.reset", "error"),
    ("enable.partition.eof", "true"),
];

/// The part of the writer's memory that librdkafka's fetch queue takes: a quarter, within bounds.
#[must_use]
pub(crate) fn queue_bytes(memory_bytes: usize) -> usize {
    (memory_bytes / 4).clamp(1 << 20, 128 << 20)
}

/// Sizes that follow from the queue's: the queue may be exceeded by one answer of each broker.
fn sizes(queue_bytes: usize) -> [(&'static str, usize); 3] {
    [
        ("queued.max.messages.kbytes", queue_bytes >> 10),
        ("fetch.max.bytes", queue_bytes.min(50 << 20)),
        ("fetch.message.max.bytes", queue_bytes.min(8 << 20)),
    ]
}

impl KafkaSource {
    /// Subscribes to the configured topics. Messages are admitted to `budget`; librdkafka's own queue holds
    /// a quarter of [`WriterConfig::memory_bytes`] besides.
    pub fn open(config: &WriterConfig, budget: Arc<Budget>) -> Result<Self> {
        let mut properties = config.kafka.clone();
        properties.entry("group.id".to_owned()).or_insert_with(|| format!("firn-{}", config.name));
        for (key, value) in sizes(queue_bytes(config.memory_bytes)) {
            properties.entry(key.to_owned()).or_insert_with(|| value.to_string());
        }
        for (key, value) in OWNED {
            properties.insert((*key).to_owned(), (*value).to_owned());
        }
        let consumer = client_config(DEFAULTS, &properties)
            .create_with_context(Context::default())
            .map_err(|e| kafka_error("the consumer cannot be made", e))?;
        let headers = match (config.decode.kafka_columns, config.on_bad_message) {
            (KafkaColumns::On, _) | (_, OnBadMessage::DeadLetter) => Headers::Keep,
            (KafkaColumns::Off, _) => Headers::Drop,
        };
        let (commands, received) = blocking::channel();
        // Unbounded on purpose: messages are bounded by the budget, and the thread must never block on the pipeline,
        // which may itself be waiting for the thread's answer.
        let (sender, events) = mpsc::unbounded_channel();
        let thread = ConsumerThread::new(consumer, config.topics.clone(), budget, headers, sender)?;
        std::thread::Builder::new()
            .name("firn-consumer".to_owned())
            .spawn(move || thread.run(&received))
            .map_err(|e| {
                Error::new(ErrorKind::Unavailable, "the consumer's thread cannot be started").with_source(e)
            })?;
        Ok(Self { commands, events })
    }

    /// A command to a thread that has ended is not missed: the next event says so.
    fn tell(&self, command: Command) {
        let _ended = self.commands.send(command);
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Internal, "the consumer's thread has ended")
}

#[async_trait]
impl Source for KafkaSource {
    async fn next(&mut self) -> Result<SourceEvent> {
        self.events.recv().await.unwrap_or_else(|| Err(ended()))
    }

    async fn identity(&mut self) -> Result<SourceIdentity> {
        let (reply, answer) = oneshot::channel();
        self.tell(Command::Identity(reply));
        answer.await.map_err(|_| ended())
    }

    async fn bounds(&mut self, request: BoundsRequest) -> Result<BTreeMap<TopicPartition, Bounds>> {
        let (reply, answer) = oneshot::channel();
        self.tell(Command::Bounds(request, reply));
        answer.await.map_err(|_| ended())?
    }

    fn start(&mut self, positions: Vec<Position>) {
        self.tell(Command::Start(positions));
    }

    fn seek(&mut self, positions: Vec<Position>) {
        self.tell(Command::Seek(positions));
    }

    fn release(&mut self, partitions: Vec<TopicPartition>) {
        self.tell(Command::Release(partitions));
    }

    fn record(&mut self, offsets: Vec<(TopicPartition, i64)>) {
        self.tell(Command::Record(offsets));
    }

    async fn close(&mut self) {
        let (reply, answer) = oneshot::channel();
        self.tell(Command::Close(reply));
        if tokio::time::timeout(CLOSE_TIMEOUT, answer).await.is_err() {
            tracing::warn!("leaving the consumer group takes too long; its session will time out");
        }
    }
}

const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
