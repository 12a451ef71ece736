//! Everything that a run needs, and the recount.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::history::History;
use super::place::Place;
use super::supervised::Supervised;
use super::{Harm, Harms, Setting};
use crate::checks::After;
use crate::kafka::{Brokers, KafkaCluster};
use crate::rows;
use crate::stream::{LIMIT, Stream};
use crate::warehouse::Warehouse;

mod catalog;

use catalog::Catalog;
pub use catalog::CatalogKind;

const PARTITIONS: i32 = 4;
const WRITERS: [&str; 2] = ["writer-a", "writer-b"];

/// How long the table may take to catch up after a harm, on a busy machine.
const RECOVERY: Duration = Duration::from_secs(90);

/// Room for the tables: for the start, and for each minute.
const BASE_MIB: u64 = 512;
const MINUTE_MIB: u64 = 256;

/// A world. It ends with this value.
#[derive(Debug)]
pub(super) struct World {
    pub(super) writers: Vec<Supervised>,
    pub(super) compactor: Supervised,
    pub(super) catalog: Catalog,
    pub(super) cluster: &'static KafkaCluster,
    /// Past the proxy, where one stands before the catalog.
    stream: Stream,
    producer: Producer,
    history: History,
    left_out: Vec<String>,
    brokers: usize,
    /// Last, so that its file system is unmounted when nothing uses it any more.
    pub(super) place: Place,
}

/// Produces events in small batches until it is told to stop.
#[derive(Debug)]
struct Producer {
    stop: Arc<AtomicBool>,
    produced: Arc<AtomicU64>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl World {
    /// Starts everything.
    pub(super) async fn start(test: &str, setting: &Setting) -> Result<Self> {
        // It serves to the end of the process: the stream refers to it.
        let cluster: &'static KafkaCluster = Box::leak(Box::new(KafkaCluster::start(test, setting.brokers)?));
        let minutes = match setting.harms {
            Harms::Each(_) => 0,
            Harms::Any(length) => length.as_secs() / 60,
        };
        let local = Warehouse::with_data(test, |folder| folder.join("data"))?;
        let place = Place::make(&local.folder().join("data"), BASE_MIB + MINUTE_MIB * minutes)?;
        let (catalog, options) = Catalog::start(setting.catalog, test, &local).await?;
        let warehouse = local.with(options);
        let stream = Stream::between(cluster, warehouse, test, PARTITIONS).await?;
        // The table is there before the compactor looks for it.
        stream.write(&OPTIONS).await?.success()?;
        let mut through = stream.clone();
        through.warehouse = catalog.through(&stream.warehouse);
        let writers = WRITERS.into_iter().map(|name| writer(&through, name)).collect();
        let compactor = compactor(&through);
        let producer = Producer::start(cluster, &stream.topic);
        let brokers = if setting.brokers == Brokers::One { 1 } else { 3 };
        let (history, left_out) = (History::new(), Vec::new());
        Ok(Self { writers, compactor, catalog, cluster, stream, producer, history, left_out, brokers, place })
    }

    pub(super) fn note(&mut self, event: impl Into<String>) {
        self.history.add(event);
    }

    pub(super) fn history(&self) -> &History {
        &self.history
    }

    pub(super) fn brokers(&self) -> usize {
        self.brokers
    }

    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    pub(super) fn starts(&self) -> u64 {
        self.writers.iter().map(Supervised::starts).sum::<u64>() + self.compactor.starts()
    }

    pub(super) fn touched_requests(&self) -> Result<Option<usize>> {
        self.catalog.touched()
    }

    pub(super) fn compactions(&self) -> u64 {
        self.compactor.done()
    }

    /// Whether a harm can be done here; where not, the reason is kept.
    pub(super) fn allows(&mut self, harm: Harm) -> bool {
        let reason = match harm {
            Harm::FullWarehouse => self.place.cannot_be_full(),
            Harm::ReadOnlyWarehouse => self.place.cannot_be_read_only(),
            Harm::PauseCatalog => self.catalog.cannot_be_paused(),
            Harm::RestartCatalog => self.catalog.cannot_be_killed(),
            _ => None,
        };
        self.left_out.extend(reason.map(|reason| format!("{harm} ({reason})")));
        reason.is_none()
    }

    /// Looks after all processes for so long.
    pub(super) async fn wait(&mut self, length: Duration) -> Result<()> {
        let until = Instant::now() + length;
        loop {
            self.tend()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            tokio::time::sleep(left.min(Duration::from_millis(50))).await;
        }
    }

    fn tend(&mut self) -> Result<()> {
        for process in self.writers.iter_mut().chain([&mut self.compactor]) {
            let event = process.tend().with_context(|| process.name())?;
            if let Some(event) = event {
                self.history.add(event);
            }
        }
        self.producer.is_well()
    }

    /// Waits until the table holds what was produced by now; the time that it took is the result.
    pub(super) async fn recover(&mut self) -> Result<Duration> {
        let began = Instant::now();
        let produced = i64::try_from(self.producer.produced())?;
        loop {
            self.wait(Duration::from_millis(100)).await?;
            // The catalog may have to come to itself first.
            let cursors = self.stream.cursors().await;
            let covered: i64 = cursors.as_ref().map(|cursors| cursors.values().sum()).unwrap_or_default();
            if covered >= produced {
                break;
            }
            ensure!(
                began.elapsed() < RECOVERY,
                "after {RECOVERY:?} the table covers {covered} of {produced} offsets ({cursors:?})"
            );
        }
        let took = began.elapsed();
        self.note(format!("the table has caught up with {produced} events after {took:.1?}"));
        Ok(took)
    }

    /// Stops everything in good order, writes what is left, and counts again. The number of events is the result.
    pub(super) async fn finish(&mut self) -> Result<u64> {
        let events = self.producer.stop()?;
        self.note(format!("{events} events were produced; everything stops"));
        for process in self.writers.iter_mut().chain([&mut self.compactor]) {
            process.stop(LIMIT).await.with_context(|| process.name())?;
        }
        self.stream.write(&OPTIONS).await?.success()?;
        self.note("the rest was written");
        self.stream.holds(0..events, After::Fault).await?;
        self.stream.holds_each_offset_once().await?;
        let mut expected = Vec::new();
        for partition in 0..PARTITIONS {
            expected.push((partition, self.cluster.offsets(&self.stream.topic, partition)?.1));
        }
        let cursors: Vec<(i32, i64)> = self.stream.cursors().await?.into_iter().collect();
        ensure!(cursors == expected, "cursors {cursors:?}, ends of the partitions {expected:?}");
        let verified = self.stream.warehouse.run(&["verify", &self.stream.table])?;
        ensure!(verified.code == Some(0), "verify: {verified:?}");
        Ok(events)
    }
}

/// Of every writer: small flushes, and old snapshots go while the run lasts.
const OPTIONS: [&str; 6] = [
    "--flush-age",
    "100ms",
    "--table-property",
    "history.expire.max-snapshot-age-ms=15000,history.expire.min-snapshots-to-keep=5",
    "--set",
    "write.expire-every=3s",
];

/// A writer; each second process of it is a static member, which takes its place at once.
fn writer(stream: &Stream, name: &'static str) -> Supervised {
    let (for_command, folder) = (stream.clone(), stream.warehouse.folder().to_owned());
    Supervised::new(name, folder, move |number| {
        let instance = format!("group.instance.id={name}");
        let mut options = OPTIONS.to_vec();
        if number.is_multiple_of(2) {
            options.extend(["--kafka-property", &instance]);
        }
        for_command.command(&options)
    })
}

fn compactor(stream: &Stream) -> Supervised {
    let (warehouse, table) = (stream.warehouse.clone(), stream.table.clone());
    Supervised::new("compactor", warehouse.folder().to_owned(), move |_| {
        warehouse.firn(&["compact", &table, "--target-file-size", "4 MiB", "--option", "min-input-files=3"])
    })
}

impl Producer {
    /// A producer takes most of a second to come and go.
    const BATCH: u64 = 500;

    fn start(cluster: &'static KafkaCluster, topic: &str) -> Self {
        let (stop, produced) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count, topic) = (Arc::clone(&stop), Arc::clone(&produced), topic.to_owned());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let next = count.load(Ordering::Relaxed);
                cluster.produce(&topic, rows::events(next..next + Self::BATCH, PARTITIONS))?;
                count.store(next + Self::BATCH, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
            }
            Ok(())
        });
        Self { stop, produced, thread: Some(thread) }
    }

    fn produced(&self) -> u64 {
        self.produced.load(Ordering::Relaxed)
    }

    fn is_well(&mut self) -> Result<()> {
        let ended = self.thread.take_if(|thread| thread.is_finished());
        let Some(thread) = ended else { return Ok(()) };
        thread.join().map_err(|_| anyhow!("the producer panicked"))?.context("producing")?;
        bail!("the producer stopped by itself")
    }

    fn stop(&mut self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| anyhow!("the producer panicked"))?.context("producing")?;
        }
        Ok(self.produced())
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
