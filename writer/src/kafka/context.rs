//! What librdkafka calls back: rebalances, errors, logs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use firn_table::ledger::TopicPartition;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::base_consumer::BaseConsumer;
use rdkafka::consumer::{Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::types::RDKafkaRespErr;
use rdkafka::util::Timeout;
use rdkafka::{ClientContext, TopicPartitionList};

/// A step of a rebalance that waits for its answer.
#[derive(Debug)]
pub(super) enum Rebalance {
    Assigned(Vec<TopicPartition>),
    Revoked(Vec<TopicPartition>),
}

/// The context of the writer's consumer. A rebalance is only noted here: the consumer's thread passes it on, goes on
/// polling, and answers it (with assign or unassign) when the pipeline has said how.
#[derive(Debug, Default)]
pub(super) struct Context {
    rebalances: Mutex<VecDeque<Rebalance>>,
    closing: AtomicBool,
}

impl Context {
    /// The next step that was noted.
    pub(super) fn next_rebalance(&self) -> Option<Rebalance> {
        self.rebalances.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Whether a step waits to be passed on.
    pub(super) fn has_rebalance(&self) -> bool {
        !self.rebalances.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// From now on rebalances are answered at once: nobody listens any more.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        match level {
            // The group's offsets are for dashboards: during a rebalance they are refused, and recorded the next time.
            _ if facility == "COMMITFAIL" => tracing::debug!(facility, message, "librdkafka"),
            RDKafkaLogLevel::Debug | RDKafkaLogLevel::Info | RDKafkaLogLevel::Notice => {
                tracing::debug!(facility, message, "librdkafka");
            }
            _ => tracing::warn!(facility, message, "librdkafka"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::PartitionEOF) {
            tracing::warn!(%error, reason, "consumer trouble");
        }
    }
}

impl ConsumerContext for Context {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, err: RDKafkaRespErr, tpl: &mut TopicPartitionList) {
        let assigned = err == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        if self.closing.load(Ordering::Acquire) {
            let answered = if assigned { answer_assign(consumer, tpl) } else { answer_revoke(consumer, tpl) };
            if let Err(error) = answered {
                tracing::debug!(%error, "a rebalance at the end was not answered");
            }
            return;
        }
        let partitions = partitions(tpl);
        let step = if assigned { Rebalance::Assigned(partitions) } else { Rebalance::Revoked(partitions) };
        self.rebalances.lock().unwrap_or_else(PoisonError::into_inner).push_back(step);
    }

    fn commit_callback(&self, result: KafkaResult<()>, _offsets: &TopicPartitionList) {
        if let Err(error) = result {
            tracing::debug!(%error, "the group's offsets were not recorded");
        }
    }

    fn main_queue_min_poll_interval(&self) -> Timeout {
        Timeout::After(Duration::from_millis(100))
    }
}

/// Answers an assignment with partitions and their offsets.
pub(super) fn answer_assign(consumer: &BaseConsumer<Context>, tpl: &TopicPartitionList) -> KafkaResult<()> {
    match consumer.rebalance_protocol() {
        RebalanceProtocol::Cooperative => consumer.incremental_assign(tpl),
        RebalanceProtocol::Eager | RebalanceProtocol::None => consumer.assign(tpl),
    }
}

/// Answers a revoke.
pub(super) fn answer_revoke(consumer: &BaseConsumer<Context>, tpl: &TopicPartitionList) -> KafkaResult<()> {
    match consumer.rebalance_protocol() {
        RebalanceProtocol::Cooperative => consumer.incremental_unassign(tpl),
        RebalanceProtocol::Eager | RebalanceProtocol::None => consumer.unassign(),
    }
}

fn partitions(tpl: &TopicPartitionList) -> Vec<TopicPartition> {
    let elements = tpl.elements();
    let own = |e: &rdkafka::topic_partition_list::TopicPartitionListElem<'_>| TopicPartition {
        topic: e.topic().to_owned(),
        partition: e.partition(),
    };
    elements.iter().map(own).collect()
}
