//! The writer as one call.

use std::sync::Arc;

use firn_table::commit::TableHandle;
use tokio_util::sync::CancellationToken;

use crate::Result;
use crate::budget::Budget;
use crate::config::WriterConfig;
use crate::kafka::cluster::check_brokers;
use crate::kafka::source::{KafkaSource, queue_bytes};
use crate::observe::{Observer, WriterReport};
use crate::pipeline::{Environment, Parts, run_pipeline};

/// Streams the configured topics into the table until `stop` is cancelled, the configured end is reached, or an
/// error needs a person.
///
/// Cancelling `stop` is graceful: what is in hand is decoded and committed. Dropping the future stops hard: what is
/// not committed is read again next time.
///
/// Errors: `Configuration`; `Data` for a message that cannot be decoded; `Ledger` where table, topic and ledger
/// contradict each other; `Overtaken` where two deployments share the writer's name; `Unavailable` where what is
/// needed at the start does not answer. Later on, trouble with catalog, store or broker is waited out.
pub async fn run(
    config: WriterConfig,
    handle: TableHandle,
    observer: Arc<dyn Observer>,
    stop: CancellationToken,
) -> Result<WriterReport> {
    config.validate()?;
    tokio::select! {
        checked = check_brokers(&config.kafka) => checked?,
        () = stop.cancelled() => return Ok(WriterReport::default()),
    }
    let budget = Budget::new(config.memory_bytes - queue_bytes(config.memory_bytes));
    let source = Box::new(KafkaSource::open(&config, Arc::clone(&budget))?);
    let environment = Environment::system();
    run_pipeline(Parts { config, handle, source, budget, environment }, observer, stop).await
}
