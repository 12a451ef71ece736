//! Scenarios of one pipeline or several, with a log in memory and a SQLite catalog in a scratch folder.

mod dead_letters;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use firn_table::catalog::{CatalogOptions, IfMissing, OpenCatalog, open_catalog};
use firn_table::commit::{Guarantee, TableHandle};
use firn_table::files::read_data_file;
use firn_table::layout::live_files;
use firn_table::ledger::{Ledger, Standing, TopicPartition, WriterName};
use futures::TryStreamExt;
use iceberg::TableIdent;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Transform, Type, UnboundPartitionSpec};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Cpu, Environment, Parts, run_pipeline};
use crate::budget::Budget;
use crate::config::{
    AfterRollback, End, FlushLimits, FreshnessGoal, Mode, OnBadMessage, OnGap, WriterConfig,
};
use crate::create::{NewTable, create_table};
use crate::observe::{Event, Observer, WriterReport};
use crate::source::memory::{MemoryLog, MemoryRecord};
use crate::{ErrorKind, Result};

const PATIENCE: Duration = Duration::from_secs(60);

fn tp(partition: i32) -> TopicPartition {
    TopicPartition { topic: "t".to_owned(), partition }
}

/// Keeps all events and lets a test wait for what they show.
struct Recorder {
    events: Mutex<Vec<Event>>,
    count: watch::Sender<usize>,
}

impl Recorder {
    fn new() -> Arc<Self> {
        Arc::new(Self { events: Mutex::default(), count: watch::channel(0).0 })
    }

    fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    async fn until(&self, what: &str, shown: impl Fn(&[Event]) -> bool) {
        let mut count = self.count.subscribe();
        let wait = async {
            loop {
                count.borrow_and_update();
                if shown(&self.events()) {
                    return;
                }
                count.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        assert!(waited.is_ok(), "{what} did not happen; events: {:#?}", self.events());
    }

    async fn until_rows(&self, rows: u64) {
        self.until(&format!("{rows} rows committed"), |events| rows_of(events) >= rows).await;
    }
}

fn rows_of(events: &[Event]) -> u64 {
    events.iter().map(|e| if let Event::Committed(c) = e { c.rows } else { 0 }).sum()
}

impl Observer for Recorder {
    fn on_event(&self, event: &Event) {
        self.events.lock().unwrap().push(event.clone());
        self.count.send_modify(|count| *count += 1);
    }
}

struct World {
    _dir: TempDir,
    catalog: OpenCatalog,
    ident: TableIdent,
    log: MemoryLog,
}

struct Running {
    task: JoinHandle<Result<WriterReport>>,
    recorder: Arc<Recorder>,
    stop: CancellationToken,
    budget: Arc<Budget>,
}

impl Running {
    async fn stop(self) -> Result<WriterReport> {
        self.stop.cancel();
        self.ended().await
    }

    async fn ended(self) -> Result<WriterReport> {
        tokio::time::timeout(PATIENCE, self.task).await.expect("the writer ends").unwrap()
    }
}

fn schema() -> Schema {
    let field = |id, name: &str, kind| Arc::new(NestedField::optional(id, name, Type::Primitive(kind)));
    Schema::builder()
        .with_fields([
            field(1, "id", PrimitiveType::Long),
            field(2, "name", PrimitiveType::String),
            field(3, "day", PrimitiveType::Int),
        ])
        .build()
        .unwrap()
}

impl World {
    async fn new(partitions: i32) -> Self {
        Self::partitioned(partitions, None).await
    }

    async fn partitioned(partitions: i32, spec: Option<UnboundPartitionSpec>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = CatalogOptions {
            uri: format!("sqlite:{}", dir.path().join("catalog.db").display()),
            warehouse: Some(dir.path().join("warehouse").display().to_string()),
            if_missing: IfMissing::Create,
            ..CatalogOptions::default()
        };
        let catalog = open_catalog(&options, None).await.unwrap();
        let ident = TableIdent::from_strs(["n", "t"]).unwrap();
        let new =
            NewTable { schema: schema(), partition: spec, location: None, properties: Default::default() };
        create_table(&catalog, &ident, new).await.unwrap();
        let log = MemoryLog::default();
        if partitions > 0 {
            log.create_topic("t", partitions);
        }
        Self { _dir: dir, catalog, ident, log }
    }

    async fn handle(&self) -> TableHandle {
        let OpenCatalog { catalog, stores } = self.catalog.clone();
        TableHandle::open(catalog, stores, self.ident.clone(), "main").await.unwrap()
    }

    /// Appends messages whose ids tell where they stand: partition · 1,000,000 + offset.
    fn produce(&self, partition: i32, count: usize) {
        for _ in 0..count {
            let id = i64::from(partition) * 1_000_000 + self.log.high(&tp(partition));
            self.produce_text(partition, &format!(r#"{{"id":{id},"name":"n{id}","day":{}}}"#, id % 7));
        }
    }

    fn produce_text(&self, partition: i32, text: &str) {
        self.append(partition, None, text);
    }

    fn produce_keyed(&self, partition: i32, id: i64, key: Option<&str>) {
        self.append(partition, key, &format!(r#"{{"id":{id}}}"#));
    }

    fn append(&self, partition: i32, key: Option<&str>, text: &str) {
        let timestamp_ms = chrono::Utc::now().timestamp_millis();
        let (key, value) = (key.map(|k| k.as_bytes().to_vec()), Some(text.as_bytes().to_vec()));
        self.log.append(&tp(partition), MemoryRecord { key, value, timestamp_ms });
    }

    async fn start(&self, config: WriterConfig) -> Running {
        self.start_in("g", config).await
    }

    async fn start_in(&self, group: &str, config: WriterConfig) -> Running {
        let budget = Budget::new(config.memory_bytes);
        let source = self.log.join(group, &config.topics, Arc::clone(&budget));
        let environment =
            Environment { instance: Uuid::now_v7(), cpu: Cpu::Threads, ..Environment::system() };
        let (stop, recorder) = (CancellationToken::new(), Recorder::new());
        let handle = self.handle().await;
        let source = Box::new(source);
        let parts = Parts { config, handle, source, budget: Arc::clone(&budget), environment };
        let observer: Arc<dyn Observer> = Arc::clone(&recorder) as _;
        let task = tokio::spawn(run_pipeline(parts, observer, stop.clone()));
        Running { task, recorder, stop, budget }
    }

    /// The ids of all rows, sorted.
    async fn ids(&self) -> Vec<i64> {
        let mut ids = self.ids_by_file().await.concat();
        ids.sort_unstable();
        ids
    }

    /// The ids of each file's rows, in the file's order.
    async fn ids_by_file(&self) -> Vec<Vec<i64>> {
        let handle = self.handle().await;
        let table = handle.table();
        let Some(head) = table.metadata().current_snapshot_id() else { return Vec::new() };
        let mut all = Vec::new();
        for file in live_files(&table, head).await.unwrap() {
            let schema = table.metadata().current_schema();
            let batches = read_data_file(handle.stores(), &table, schema, &file.file, 10_000).await.unwrap();
            let batches: Vec<_> = batches.try_collect().await.unwrap();
            let of = |batch: &RecordBatch| {
                let column = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().clone();
                column.iter().flatten().collect::<Vec<i64>>()
            };
            all.push(batches.iter().flat_map(of).collect());
        }
        all
    }

    async fn ledger(&self) -> Option<Ledger> {
        match self.handle().await.standing(&name()).await.unwrap() {
            Standing::Current(ledger) => Some(ledger),
            Standing::Absent => None,
            other => panic!("unexpected standing {other:?}"),
        }
    }

    async fn assert_whole(&self, counts: &[i64]) {
        let expected: Vec<i64> = (0i64..)
            .zip(counts)
            .flat_map(|(partition, count)| (0..*count).map(move |offset| partition * 1_000_000 + offset))
            .collect();
        assert_eq!(self.ids().await, expected);
    }

    /// Every file under the table's data folder is live: nothing was left behind.
    async fn assert_no_orphans(&self) {
        let table = self.handle().await.table();
        let head = table.metadata().current_snapshot_id().unwrap();
        let live = live_files(&table, head).await.unwrap().len();
        let data = self._dir.path().join("warehouse/n/t/data");
        assert_eq!(files_below(&data), live);
    }
}

fn files_below(path: &std::path::Path) -> usize {
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    let count = |entry: std::fs::DirEntry| {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path)
        } else {
            usize::from(path.extension().is_some_and(|e| e == "parquet"))
        }
    };
    entries.map(|entry| count(entry.unwrap())).sum()
}

fn name() -> WriterName {
    WriterName::new("w").unwrap()
}

fn config() -> WriterConfig {
    WriterConfig {
        flush: FlushLimits { age: Duration::from_millis(50), ..FlushLimits::default() },
        expiry: None,
        memory_bytes: 64 << 20,
        ..WriterConfig::new(name(), vec!["t".to_owned()], "unused:1")
    }
}

fn until_end() -> WriterConfig {
    WriterConfig { end: End::AtEndsOfStart, ..config() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_ends_at_the_end_commits_rows_and_holes_once() {
    let world = World::new(3).await;
    world.produce(0, 700);
    world.log.append_hole(&tp(0));
    world.produce(1, 3);
    let report = world.start(until_end()).await.ended().await.unwrap();
    assert_eq!((report.rows, report.holes, report.rejected), (703, 1, 0));
    world.assert_whole(&[700, 3, 0]).await;
    world.assert_no_orphans().await;
    let cursor = &world.ledger().await.unwrap().cursors[&tp(0)];
    assert_eq!((cursor.next, cursor.rows, cursor.holes), (701, 700, 1));

    let again = world.start(until_end()).await.ended().await.unwrap();
    assert_eq!(again.commits, 0, "nothing is new");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_commits_what_is_in_hand_and_records_the_group_offsets() {
    let world = World::new(2).await;
    let slow = FlushLimits { age: Duration::from_secs(3600), ..FlushLimits::default() };
    let running = world.start(WriterConfig { flush: slow, ..config() }).await;
    world.produce(0, 100);
    world.produce(1, 50);
    let budget = Arc::clone(&running.budget);
    let held = async {
        while budget.used() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, held).await.expect("messages are taken in");
    let report = running.stop().await.unwrap();
    let cursors = world.ledger().await.unwrap().cursors;
    assert_eq!(report.rows, cursors.values().map(|c| c.rows).sum::<u64>());
    assert_eq!(world.ids().await.len() as u64, report.rows);
    let offsets: BTreeMap<_, _> = cursors.into_iter().map(|(p, c)| (p, c.next)).collect();
    assert_eq!(world.log.group_offsets("g"), offsets);
    assert_eq!(budget.used(), 0, "all memory is given back");
    world.assert_no_orphans().await;
}

/// K8.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_was_reset_doubles_nothing() {
    let world = World::new(1).await;
    world.produce(0, 100);
    world.start(until_end()).await.ended().await.unwrap();
    world.log.set_group_offset("g", &tp(0), 10);
    world.produce(0, 20);
    world.start(until_end()).await.ended().await.unwrap();
    world.assert_whole(&[120]).await;
}

/// K5, K22: whoever commits first wins, and nothing is doubled or lost.
#[tokio::test(flavor = "multi_thread")]
async fn two_deployments_under_one_name_double_nothing_and_one_stops() {
    let world = World::new(1).await;
    let rivals = WriterConfig { max_overtaken: 3, ..config() };
    let a = world.start_in("a", rivals.clone()).await;
    let b = world.start_in("b", rivals).await;
    let mut produced = 0;
    while !a.task.is_finished() && !b.task.is_finished() {
        world.produce(0, 20);
        produced += 20;
        assert!(produced < 100_000, "neither of them stops");
        let (a, b) = (&a.recorder, &b.recorder);
        let committed = |r: &Recorder| rows_of(&r.events());
        let wait = async {
            while committed(a) + committed(b) + 20 < produced {
                tokio::task::yield_now().await;
            }
        };
        let _some_are_late = tokio::time::timeout(Duration::from_millis(500), wait).await;
    }
    let (loser, winner) = if a.task.is_finished() { (a, b) } else { (b, a) };
    let error = loser.ended().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overtaken, "{error}");
    let winner_instance = winner.recorder.events().iter().find_map(|e| match e {
        Event::Started { instance } => Some(instance.to_string()),
        _ => None,
    });
    assert!(error.to_string().contains(&winner_instance.unwrap()), "{error}");
    let cursor = async {
        while world.ledger().await.is_none_or(|l| l.cursors[&tp(0)].next < produced as i64) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, cursor).await.expect("the other one goes on");
    winner.stop().await.unwrap();
    world.assert_whole(&[produced as i64]).await;
    world.assert_no_orphans().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_move_between_members_without_loss() {
    let world = World::new(4).await;
    (0..4).for_each(|p| world.produce(p, 300));
    let first = world.start(config()).await;
    first.recorder.until_rows(1).await;
    let second = world.start(config()).await;
    second.recorder.until("an assignment", |e| e.iter().any(|e| matches!(e, Event::Assigned { .. }))).await;
    (0..4).for_each(|p| world.produce(p, 300));
    second.recorder.until_rows(1).await;
    first.stop().await.unwrap();
    (0..4).for_each(|p| world.produce(p, 10));
    let whole = async {
        while world.ledger().await.is_none_or(|l| l.cursors.values().any(|c| c.next < 610)) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, whole).await.expect("the other one takes all");
    second.stop().await.unwrap();
    world.assert_whole(&[610, 610, 610, 610]).await;
    world.assert_no_orphans().await;
}

/// K13.
#[tokio::test(flavor = "multi_thread")]
async fn idle_partitions_delay_nobody() {
    let world = World::new(8).await;
    let interval = Duration::from_millis(500);
    let flush = FlushLimits { age: interval, ..FlushLimits::default() };
    let running = world.start(WriterConfig { flush, ..config() }).await;
    let assigned = |e: &[Event]| e.iter().any(|e| matches!(e, Event::Assigned { .. }));
    running.recorder.until("an assignment", assigned).await;
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    for _ in 0..200 {
        ticks.tick().await;
        world.produce(3, 5);
    }
    running.recorder.until_rows(1000).await;
    let mut latencies: Vec<u64> = Vec::new();
    for event in running.recorder.events() {
        if let Event::Committed(commit) = event {
            for (ms, count) in commit.latencies_ms() {
                latencies.extend(std::iter::repeat_n(ms, count as usize));
            }
        }
    }
    latencies.sort_unstable();
    let p99 = latencies[latencies.len() * 99 / 100];
    assert!(p99 < 2 * interval.as_millis() as u64, "P99 is {p99} ms");
    running.stop().await.unwrap();
}

/// K16.
#[tokio::test(flavor = "multi_thread")]
async fn topics_and_partitions_that_come_later_are_read() {
    let world = World::new(0).await;
    let running = world.start(config()).await;
    world.log.create_topic("t", 1);
    world.produce(0, 10);
    running.recorder.until_rows(10).await;
    world.log.create_topic("t", 3);
    world.produce(2, 5);
    running.recorder.until_rows(15).await;
    running.stop().await.unwrap();
    world.assert_whole(&[10, 0, 5]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_message_stops_after_what_came_before_it_is_committed() {
    let world = World::new(1).await;
    world.produce(0, 7);
    world.produce_text(0, r#"{"id":"no number"}"#);
    let error = world.start(until_end()).await.ended().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    let text = error.to_string();
    assert!(text.contains("topic `t`, partition 0, offset 7") && text.contains("`id`"), "{text}");
    world.assert_whole(&[7]).await;
    assert_eq!(world.ledger().await.unwrap().cursors[&tp(0)].next, 7);

    let skip = WriterConfig { on_bad_message: OnBadMessage::Skip, ..until_end() };
    let report = world.start(skip).await.ended().await.unwrap();
    assert_eq!((report.rows, report.rejected), (0, 1));
    let cursor = &world.ledger().await.unwrap().cursors[&tp(0)];
    assert_eq!((cursor.next, cursor.rows, cursor.rejected), (8, 7, 1));
}

/// K7.
#[tokio::test(flavor = "multi_thread")]
async fn offsets_lost_to_retention_stop_or_are_recorded() {
    let world = World::new(1).await;
    world.produce(0, 10);
    world.start(until_end()).await.ended().await.unwrap();
    world.produce(0, 90);
    world.log.truncate_below(&tp(0), 60);
    let error = world.start(until_end()).await.ended().await.unwrap_err();
    assert!(error.to_string().contains("offsets 10 to 60"), "{error}");
    let record = WriterConfig { on_gap: OnGap::Record, ..until_end() };
    world.start(record).await.ended().await.unwrap();
    let cursor = &world.ledger().await.unwrap().cursors[&tp(0)];
    assert_eq!((cursor.next, cursor.rows, cursor.gaps), (100, 50, 50));
}

/// K17, while the writer is down.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_stops_is_replayed_or_kept() {
    for (choice, expected) in [(AfterRollback::Replay, 30), (AfterRollback::Keep, 20)] {
        let world = World::new(1).await;
        world.produce(0, 10);
        world.start(until_end()).await.ended().await.unwrap();
        let before = world.handle().await.table().metadata().current_snapshot_id().unwrap();
        world.produce(0, 10);
        world.start(until_end()).await.ended().await.unwrap();
        roll_back(&world, before).await;
        world.produce(0, 10);
        let error = world.start(until_end()).await.ended().await.unwrap_err();
        assert!(error.to_string().contains("offsets 10 to 20"), "{error}");
        let config = WriterConfig { after_rollback: choice, ..until_end() };
        world.start(config).await.ended().await.unwrap();
        assert_eq!(world.ids().await.len(), expected, "{choice:?}");
        assert_eq!(world.ledger().await.unwrap().cursors[&tp(0)].next, 30);
    }
}

/// K17, while the writer runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_while_running_stops_the_writer() {
    let world = World::new(1).await;
    let running = world.start(config()).await;
    world.produce(0, 10);
    running.recorder.until_rows(10).await;
    let before = world.handle().await.table().metadata().current_snapshot_id().unwrap();
    world.produce(0, 10);
    running.recorder.until_rows(20).await;
    roll_back(&world, before).await;
    world.produce(0, 10);
    let error = running.ended().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ledger);
    assert!(error.to_string().contains("offsets 10 to 20"), "{error}");
}

async fn roll_back(world: &World, snapshot_id: i64) {
    use firn_table::catalog::CommitOutcome;
    use iceberg::TableUpdate;
    use iceberg::spec::{SnapshotReference, SnapshotRetention};
    let table = world.catalog.catalog.load_table(&world.ident).await.unwrap();
    let reference = SnapshotReference::new(snapshot_id, SnapshotRetention::branch(None, None, None));
    let update = TableUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference };
    let outcome = world.catalog.catalog.commit(&table, Vec::new(), vec![update]).await;
    assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
}

/// M13: a column and a partition field that somebody else adds are used for new files; old files keep their spec.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_column_and_partition_field_are_adopted() {
    use firn_table::catalog::CommitOutcome;
    use iceberg::TableUpdate;
    let world = World::new(1).await;
    let running = world.start(config()).await;
    world.produce(0, 10);
    running.recorder.until_rows(10).await;

    let table = world.catalog.catalog.load_table(&world.ident).await.unwrap();
    let old = table.metadata().current_schema();
    let mut fields = old.as_struct().fields().to_vec();
    fields.push(Arc::new(NestedField::optional(4, "more", Type::Primitive(PrimitiveType::String))));
    let schema = Schema::builder().with_fields(fields).build().unwrap();
    let spec =
        UnboundPartitionSpec::builder().add_partition_field(3, "day", Transform::Identity).unwrap().build();
    let updates = vec![
        TableUpdate::AddSchema { schema },
        TableUpdate::SetCurrentSchema { schema_id: -1 },
        TableUpdate::AddSpec { spec },
        TableUpdate::SetDefaultSpec { spec_id: -1 },
    ];
    let outcome = world.catalog.catalog.commit(&table, Vec::new(), updates).await;
    assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");

    // The change is seen with the commit that follows it.
    world.produce(0, 5);
    let changed = |e: &[Event]| e.iter().any(|e| matches!(e, Event::TableChanged { .. }));
    running.recorder.until("a changed table", changed).await;
    let before = world.log.high(&tp(0));
    world.produce_text(0, &format!(r#"{{"id":{before},"day":1,"more":"m"}}"#));
    running.recorder.until_rows(16).await;
    running.stop().await.unwrap();

    world.assert_whole(&[16]).await;
    let table = world.handle().await.table();
    let head = table.metadata().current_snapshot_id().unwrap();
    let files = live_files(&table, head).await.unwrap();
    let rows_of = |new: bool| -> u64 {
        let of = files.iter().filter(|f| (f.spec_id == table.metadata().default_partition_spec_id()) == new);
        of.map(|f| f.file.record_count()).sum()
    };
    assert_eq!((rows_of(false), rows_of(true)), (15, 1));
    assert!(files.iter().any(|f| f.partition_path == "day=1" && f.file.value_counts().contains_key(&4)));
}

/// L1, smaller: many partitions in one batch make smaller files, and the budget holds.
#[tokio::test(flavor = "multi_thread")]
async fn many_partitions_stay_within_the_budget() {
    let spec = UnboundPartitionSpec::builder()
        .with_spec_id(0)
        .add_partition_field(3, "day", Transform::Identity)
        .unwrap()
        .build();
    let world = World::partitioned(1, Some(spec)).await;
    let padding = "x".repeat(400);
    for id in 0..24_000 {
        world.produce_text(0, &format!(r#"{{"id":{id},"name":"{padding}","day":{}}}"#, id % 2_000));
    }
    let flush = FlushLimits { age: Duration::from_secs(3600), ..FlushLimits::default() };
    let config =
        WriterConfig { flush, memory_bytes: 8 << 20, mode: Mode::Fixed { shards: 1 }, ..until_end() };
    let running = world.start(config).await;
    let budget = Arc::clone(&running.budget);
    let report = running.ended().await.unwrap();
    assert_eq!(report.rows, 24_000);
    assert!(report.files >= 2_000);
    // A charge may grow by what the rows of the chunks in hand take beyond their messages.
    assert!(budget.peak() < budget.limit() * 5 / 4, "peak {} of {}", budget.peak(), budget.limit());
    world.assert_whole(&[24_000]).await;
    world.assert_no_orphans().await;
}

fn modes() -> [Mode; 5] {
    let window = Duration::from_millis(100);
    [
        Mode::Fixed { shards: 1 },
        Mode::Fixed { shards: 4 },
        Mode::Auto { min_shards: 1, max_shards: 4 },
        Mode::Grouped { window, shards: 2 },
        Mode::low_latency(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mode_writes_all_rows_with_both_guarantees() {
    for mode in modes() {
        for guarantee in [Guarantee::ExactlyOnce, Guarantee::AtLeastOnce] {
            let world = World::new(2).await;
            for n in 0..500 {
                world.produce_keyed(0, n, Some(&format!("k{}", n % 50)));
            }
            let config = WriterConfig { mode, guarantee, ..until_end() };
            let report = world.start(config).await.ended().await.unwrap();
            assert_eq!(report.rows, 500, "{mode:?} {guarantee:?}");
            world.assert_whole(&[500]).await;
            world.assert_no_orphans().await;
            if let Mode::Fixed { shards } | Mode::Grouped { shards, .. } = mode {
                assert_eq!(report.files, report.commits * shards as u64, "{mode:?} {guarantee:?}");
            }
        }
    }
}

/// Rows of one key stand together, keys in order, rows without a key first, and each key's rows by offset, also where
/// the file has rows of several fetches.
#[tokio::test(flavor = "multi_thread")]
async fn grouped_files_are_in_key_order_and_stable_by_offset() {
    let world = World::new(1).await;
    let key = |id: i64| (id % 7 != 0).then(|| format!("k{}", (id * 31) % 7));
    for id in 0..20_000 {
        world.produce_keyed(0, id, key(id).as_deref());
    }
    let mode = Mode::Grouped { window: Duration::from_secs(3600), shards: 1 };
    let report = world.start(WriterConfig { mode, ..until_end() }).await.ended().await.unwrap();
    assert_eq!((report.rows, report.files), (20_000, 1));
    let mut expected: Vec<i64> = (0..20_000).collect();
    expected.sort_by_key(|id| (key(*id), *id));
    assert_eq!(world.ids_by_file().await, vec![expected]);
}

/// L3: the rows of a hot key are in several shards' files, in key order each.
#[tokio::test(flavor = "multi_thread")]
async fn a_hot_key_is_spread_over_shards() {
    for mode in [Mode::Fixed { shards: 4 }, Mode::Grouped { window: Duration::from_secs(3600), shards: 4 }] {
        let world = World::new(1).await;
        let key = |id: i64| if id % 10 < 8 { "hot".to_owned() } else { format!("k{id}") };
        for id in 0..4_000 {
            world.produce_keyed(0, id, Some(&key(id)));
        }
        let report = world.start(WriterConfig { mode, ..until_end() }).await.ended().await.unwrap();
        assert_eq!((report.rows, report.files), (4_000, 4), "{mode:?}");
        for ids in world.ids_by_file().await {
            let hot = ids.iter().filter(|id| key(**id) == "hot").count();
            assert!(
                (600..=1_000).contains(&hot),
                "{mode:?}: {hot} of 3,200 rows of the hot key are in one file"
            );
            let sorted = ids.is_sorted_by_key(|id| (key(*id), *id));
            assert!(sorted || matches!(mode, Mode::Fixed { .. }), "{mode:?}: {ids:?}");
        }
    }
}

/// The window ends early where the budget is short, and nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_is_bounded_by_the_memory_budget() {
    let world = World::new(1).await;
    let padding = "x".repeat(1_000);
    for id in 0..40_000_i64 {
        let (key, text) = (format!("k{}", id % 100), format!(r#"{{"id":{id},"name":"{padding}"}}"#));
        world.append(0, Some(&key), &text);
    }
    let mode = Mode::Grouped { window: Duration::from_secs(3600), shards: 1 };
    let running = world.start(WriterConfig { mode, memory_bytes: 16 << 20, ..until_end() }).await;
    let budget = Arc::clone(&running.budget);
    let report = running.ended().await.unwrap();
    assert!(report.commits > 1, "40 MB do not fit into one window");
    assert!(budget.peak() < budget.limit() * 5 / 4, "peak {} of {}", budget.peak(), budget.limit());
    world.assert_whole(&[40_000]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freshness_out_of_reach_is_told_with_what_stands_in_the_way() {
    let world = World::new(1).await;
    let goal = FreshnessGoal { permille: 990, within: Duration::from_millis(1) };
    let running = world.start(WriterConfig { freshness: Some(goal), ..config() }).await;
    let missed = |events: &[Event]| {
        events.iter().any(|e| matches!(e, Event::Freshness(f) if f.goal == goal && f.missed_by.is_some()))
    };
    let mut rows = 0;
    while !missed(&running.recorder.events()) && rows < 1_000 {
        world.produce(0, 10);
        rows += 10;
        running.recorder.until_rows(rows).await;
    }
    assert!(missed(&running.recorder.events()), "{:#?}", running.recorder.events());
    running.stop().await.unwrap();
    world.assert_whole(&[rows as i64]).await;
}
