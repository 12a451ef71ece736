//! Load, writer and compactor at the same time, and an orderly end: the load stops first, the writer when every
//! message is in the table, the compactor last.

use std::sync::Arc;
use std::time::{Duration, Instant};

use firn_compactor::{ContinuousOptions, ContinuousReport, Trigger, continuous};
use firn_table::ledger::WriterName;
use firn_writer::config::Mode;
use firn_writer::kafka::producer::Deliveries;
use firn_writer::{WriterConfig, run as run_writer};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::demo::PATIENCE;
use crate::demo::setup::Stage;
use crate::demo::tally::Tally;
use crate::exit::Failure;
use crate::load::{self, Limit, Load, Rate};

/// The shortest time between two flushes: five commits a second, each with files of some hundred kilobytes.
const MIN_INTERVAL: Duration = Duration::from_millis(200);
/// Small files that make a compaction worth it: about ten seconds' worth.
const EXCESS_FILES: u64 = 50;
/// Between two looks of the compactor.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The writer's memory: far more than a second's messages.
const WRITER_MEMORY_BYTES: usize = 256 << 20;
/// Between two looks whether all rows have arrived.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// The seed of the messages.
const SEED: u64 = 1;

/// What happened while the stream ran.
#[derive(Debug)]
pub(crate) struct Streamed {
    /// What the broker acknowledged.
    pub deliveries: Deliveries,
    /// What the compactor did meanwhile.
    pub compactions: ContinuousReport,
}

/// Streams for as long as the stage says, or until the user stops it.
pub(crate) async fn run(stage: &Stage, tally: &Arc<Tally>, context: &Context) -> anyhow::Result<Streamed> {
    let (stop_writer, stop_compactor) = (CancellationToken::new(), CancellationToken::new());
    let mut writer = spawn_writer(stage, tally, stop_writer.clone())?;
    let compactor = spawn_compactor(stage, tally, stop_compactor.clone());
    tokio::select! {
        () = assignment(tally, &context.stop) => {}
        ended = &mut writer => return Err(ended_early(ended)),
    }
    let load = load::run(load(stage)?, context.stop.clone(), {
        let tally = Arc::clone(tally);
        move |deliveries| tally.produced(deliveries.delivered, deliveries.bytes)
    });
    let deliveries = tokio::select! {
        deliveries = load => deliveries?,
        ended = &mut writer => return Err(ended_early(ended)),
    };
    tally.produced(deliveries.delivered, deliveries.bytes);
    tokio::select! {
        arrived = arrival(tally, deliveries.delivered) => arrived?,
        ended = &mut writer => return Err(ended_early(ended)),
    }
    stop_writer.cancel();
    writer.await??;
    stop_compactor.cancel();
    Ok(Streamed { deliveries, compactions: compactor.await?? })
}

fn load(stage: &Stage) -> anyhow::Result<Load> {
    let generator = stage
        .template
        .generator(SEED, stage.partitions)
        .map_err(|error| Failure::internal(format!("the built-in template cannot be used: {error}")))?;
    Ok(Load {
        kafka: stage.kafka.clone(),
        topic: stage.topic.clone(),
        generator,
        rate: Rate::PerSecond(stage.rate),
        limit: Limit { count: None, time: Some(Duration::from_secs(stage.seconds)) },
    })
}

fn spawn_writer(
    stage: &Stage,
    tally: &Arc<Tally>,
    stop: CancellationToken,
) -> anyhow::Result<JoinHandle<anyhow::Result<()>>> {
    let mut config = WriterConfig::new(WriterName::new("demo")?, vec![stage.topic.clone()], "");
    config.kafka = stage.kafka.clone();
    config.mode = Mode::LowLatency { min_interval: MIN_INTERVAL };
    config.memory_bytes = WRITER_MEMORY_BYTES;
    // Nothing is old enough to expire within a demo.
    config.expiry = None;
    let (handle, observer) = (stage.handle.clone(), Arc::clone(tally));
    Ok(tokio::spawn(async move {
        run_writer(config, handle, observer, stop).await?;
        Ok(())
    }))
}

fn spawn_compactor(
    stage: &Stage,
    tally: &Arc<Tally>,
    stop: CancellationToken,
) -> JoinHandle<firn_compactor::Result<ContinuousReport>> {
    let options = ContinuousOptions {
        compact: stage.compaction.clone(),
        trigger: Trigger { excess_files: Some(EXCESS_FILES), bytes: None },
        interval: LOOK_EVERY,
    };
    let (handle, observer) = (stage.handle.clone(), Arc::clone(tally));
    tokio::spawn(async move { continuous(&handle, &options, observer, stop).await })
}

/// Waits until the writer reads: what it takes to join a consumer group is no latency of a stream.
///
/// A broker that lets it wait for too long is one on which the stream may begin nevertheless: the numbers will tell.
async fn assignment(tally: &Tally, stop: &CancellationToken) {
    let assigned = async {
        while !tally.snapshot().assigned {
            tokio::time::sleep(ASK_EVERY).await;
        }
    };
    tokio::select! {
        _ = tokio::time::timeout(PATIENCE, assigned) => {}
        () = stop.cancelled() => {}
    }
}

/// A writer that ends before it is told to has a reason.
fn ended_early(ended: Result<anyhow::Result<()>, tokio::task::JoinError>) -> anyhow::Error {
    match ended {
        Ok(Ok(())) => Failure::internal("the writer ended before the stream did").into(),
        Ok(Err(error)) => error.context("the writer stopped"),
        Err(panicked) => anyhow::Error::new(panicked).context("the writer panicked"),
    }
}

/// Waits until as many rows are committed as messages were acknowledged, as long as there is progress.
async fn arrival(tally: &Tally, produced: u64) -> anyhow::Result<()> {
    let mut last = (0, Instant::now());
    loop {
        let counted = tally.snapshot();
        let arrived = counted.rows + counted.rejected;
        if arrived >= produced {
            return Ok(());
        }
        if arrived > last.0 {
            last = (arrived, Instant::now());
        } else if last.1.elapsed() > PATIENCE {
            // The report will say that rows are missing; waiting longer would only hide it.
            tracing::error!(produced, arrived, "no row arrived for {PATIENCE:?}");
            return Ok(());
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}
