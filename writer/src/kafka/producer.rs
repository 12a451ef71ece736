//! A producer for test loads and demonstrations: idempotent, as fast as the broker takes messages, every delivery
//! counted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer as _, ProducerContext, ThreadedProducer};

use super::{client_config, kafka_error};
use crate::{Error, ErrorKind, Result};

/// What calms a shared broker and is still fast (DESIGN section 6, the way back).
const DEFAULTS: &[(&str, &str)] = &[
    ("enable.idempotence", "true"),
    ("acks", "all"),
    ("linger.ms", "5"),
    ("batch.size", "1048576"),
    ("batch.num.messages", "100000"),
    ("compression.type", "lz4"),
    ("queue.buffering.max.messages", "500000"),
    ("queue.buffering.max.kbytes", "131072"),
    ("message.timeout.ms", "120000"),
];

/// One message to produce.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition; `None` leaves it to the key's hash, or to chance where there is no key.
    pub partition: Option<i32>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// Milliseconds since the epoch; `None` is the time of the call.
    pub timestamp_ms: Option<i64>,
}

/// What became of the messages so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// Handed to the producer.
    pub sent: u64,
    /// Acknowledged by the broker.
    pub delivered: u64,
    /// Given up.
    pub failed: u64,
    /// Bytes of the values acknowledged.
    pub bytes: u64,
}

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    delivered: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    last_failure: std::sync::Mutex<Option<String>>,
}

#[derive(Clone)]
struct CountDeliveries(Arc<Counters>);

impl ClientContext for CountDeliveries {
    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(%error, reason, "producer trouble");
    }
}

impl ProducerContext for CountDeliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(message) => {
                self.0.delivered.fetch_add(1, Ordering::Relaxed);
                self.0.bytes.fetch_add(message.payload_len() as u64, Ordering::Relaxed);
            }
            Err((error, message)) => {
                self.0.failed.fetch_add(1, Ordering::Relaxed);
                let text = format!("topic `{}`, partition {}: {error}", message.topic(), message.partition());
                if let Ok(mut last) = self.0.last_failure.lock() {
                    *last = Some(text);
                }
            }
        }
    }
}

/// A producer. Share it by reference between threads; one per process is fastest.
pub struct Producer {
    inner: ThreadedProducer<CountDeliveries>,
    counters: Arc<Counters>,
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("deliveries", &self.deliveries()).finish_non_exhaustive()
    }
}

impl Producer {
    /// A producer with librdkafka's `properties` over the defaults of this module.
    pub fn new(properties: &BTreeMap<String, String>) -> Result<Self> {
        let counters = Arc::new(Counters::default());
        let inner = client_config(DEFAULTS, properties)
            .create_with_context(CountDeliveries(Arc::clone(&counters)))
            .map_err(|e| kafka_error("the producer cannot be made", e))?;
        Ok(Self { inner, counters })
    }

    /// Queues a message; waits, blocking the thread, while the queue is full. The value is copied.
    pub fn send(&self, record: Record<'_>) -> Result<()> {
        while !self.try_send(record)? {
            self.inner.poll(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Queues a message; false where the queue is full.
    pub fn try_send(&self, record: Record<'_>) -> Result<bool> {
        let mut out: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(record.topic);
        out.partition = record.partition;
        out.key = record.key;
        out.payload = record.value;
        out.timestamp = record.timestamp_ms;
        match self.inner.send(out) {
            Ok(()) => {
                self.counters.sent.fetch_add(1, Ordering::Relaxed);
                Ok(true)
            }
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => Ok(false),
            Err((error, _)) => Err(kafka_error(format!("a message for topic `{}`", record.topic), error)),
        }
    }

    /// What became of the messages so far.
    #[must_use]
    pub fn deliveries(&self) -> Deliveries {
        Deliveries {
            sent: self.counters.sent.load(Ordering::Relaxed),
            delivered: self.counters.delivered.load(Ordering::Relaxed),
            failed: self.counters.failed.load(Ordering::Relaxed),
            bytes: self.counters.bytes.load(Ordering::Relaxed),
        }
    }

    /// Waits until every message has been acknowledged. `Unavailable` where one was given up or time ran out.
    /// Blocks the thread.
    pub fn flush(&self, timeout: Duration) -> Result<Deliveries> {
        self.inner.flush(timeout).map_err(|e| kafka_error("not every message was delivered in time", e))?;
        let deliveries = self.deliveries();
        if deliveries.failed == 0 {
            return Ok(deliveries);
        }
        let last = self.counters.last_failure.lock().ok().and_then(|l| l.clone()).unwrap_or_default();
        let message = format!("{} messages were not delivered, the last for {last}", deliveries.failed);
        Err(Error::new(ErrorKind::Unavailable, message))
    }
}
