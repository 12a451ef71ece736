//! Everything that speaks Kafka's protocol, by librdkafka.
//!
//! | module | subject |
//! | --- | --- |
//! | [`producer`] | a fast idempotent producer whose deliveries are counted |
//! | [`cluster`] | what a cluster tells about itself: id, topics, watermarks; topics made and deleted |
//! | [`source`] | the consumer, on a thread of its own |
//! | [`group`] | what a consumer group has committed |
//! | [`sample`] | the first messages of a topic, for inferring a schema |

pub mod cluster;
mod consumer;
mod context;
pub mod group;
mod offsets;
pub mod producer;
pub mod sample;
pub mod source;
mod topic_ids;

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::{Error, ErrorKind};

/// Properties for librdkafka: the defaults given, under what the person set.
pub(crate) fn client_config(
    defaults: &[(&str, &str)],
    properties: &BTreeMap<String, String>,
) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set_log_level(RDKafkaLogLevel::Warning);
    for (key, value) in defaults {
        config.set(*key, *value);
    }
    for (key, value) in properties {
        config.set(key, value);
    }
    config
}

/// An error of librdkafka as ours: what was being done, and whether trying again can help.
pub(crate) fn kafka_error(what: impl std::fmt::Display, error: KafkaError) -> Error {
    let kind = match &error {
        KafkaError::ClientConfig(..) | KafkaError::ClientCreation(_) => ErrorKind::Configuration,
        _ => match error.rdkafka_error_code() {
            Some(
                RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::UnknownTopic
                | RDKafkaErrorCode::UnknownPartition,
            ) => ErrorKind::NotFound,
            Some(RDKafkaErrorCode::TopicAlreadyExists) => ErrorKind::AlreadyExists,
            Some(
                RDKafkaErrorCode::Authentication
                | RDKafkaErrorCode::SaslAuthenticationFailed
                | RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::GroupAuthorizationFailed
                | RDKafkaErrorCode::ClusterAuthorizationFailed
                | RDKafkaErrorCode::InvalidPartitions
                | RDKafkaErrorCode::InvalidReplicationFactor
                | RDKafkaErrorCode::InvalidConfig
                | RDKafkaErrorCode::InvalidTopic,
            ) => ErrorKind::Configuration,
            _ => ErrorKind::Unavailable,
        },
    };
    Error::new(kind, format!("{what}: {error}")).with_source(error)
}

/// The time that one request to a broker may take.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
