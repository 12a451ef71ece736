//! Appends over the REST catalog: whatever becomes of a request and its answer, each flush lands once, and no file that
//! a snapshot names is deleted.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use iceberg::spec::{DataContentType, DataFileBuilder, DataFileFormat, Struct};
use serde_json::json;
use uuid::Uuid;

use super::fake::{Fake, Fault, LOCATION, TABLE, ident};
use super::server::{Reply, Server};
use crate::ErrorKind;
use crate::commit::{
    CommitLimits, Flush, FlushOutcome, Guarantee, Replace, ReplaceGroup, SourceIdentity, TableHandle,
};
use crate::files::NewFile;
use crate::layout::LiveFile;
use crate::ledger::{CommitId, Ledger, OffsetRange, TopicPartition, WriterName};
use crate::manifest::{read_entries, read_list};

struct World {
    fake: Fake,
    server: Server,
    handle: TableHandle,
    instance: Uuid,
}

impl World {
    async fn new() -> Self {
        let fake = Fake::new();
        fake.set_config(json!({"idempotency-key-lifetime": "PT30M"}));
        Self::of(fake).await
    }

    async fn of(fake: Fake) -> Self {
        let server = fake.serve().await;
        let opened = fake.open(&server, &[("rest.client.socket-timeout-ms", "300")]).await;
        let handle = TableHandle::open(opened.catalog, opened.stores, ident(), "main").await.unwrap();
        let limits = CommitLimits {
            max_conflicts: 20,
            min_wait: Duration::from_millis(1),
            max_wait: Duration::from_millis(5),
            request_timeout: Duration::from_secs(5),
            deadline: Some(Duration::from_secs(20)),
        };
        Self { fake, server, handle: handle.with_limits(limits), instance: Uuid::now_v7() }
    }

    async fn file(&self, name: &str, rows: u64) -> NewFile {
        let path = format!("{LOCATION}/data/{name}.parquet");
        self.handle.stores().write(&path, Bytes::from_static(b"rows")).await.unwrap();
        let file = DataFileBuilder::default()
            .content(DataContentType::Data)
            .file_path(path)
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::empty())
            .record_count(rows)
            .file_size_in_bytes(4)
            .build()
            .unwrap();
        NewFile { file, spec_id: 0 }
    }

    /// The flush of offsets 10·n to 10·n + 10.
    async fn flush(&self, number: u64) -> Flush {
        let start = i64::try_from(number).unwrap() * 10;
        let partition = TopicPartition { topic: "events".to_owned(), partition: 0 };
        Flush {
            commit_id: CommitId { instance: self.instance, counter: number + 1 },
            writer: WriterName::new("w").unwrap(),
            ranges: vec![OffsetRange { partition, start, next: start + 10, rows: 10, rejected: 0, holes: 0 }],
            files: vec![self.file(&format!("f{number}-{}", self.instance), 10).await],
            source: SourceIdentity::default(),
            guarantee: Guarantee::ExactlyOnce,
        }
    }

    async fn append(&self, number: u64) -> crate::Result<FlushOutcome> {
        self.handle.append(self.flush(number).await).await
    }

    /// The rows and paths that are live, each path once and in the store.
    async fn live(&self) -> Vec<LiveFile> {
        let table = self.handle.refresh().await.unwrap();
        let head = table.metadata().current_snapshot().unwrap().snapshot_id();
        let mut live = Vec::new();
        for manifest in read_list(&table, head).await.unwrap() {
            for entry in read_entries(table.file_io(), &manifest).await.unwrap() {
                if entry.is_live() {
                    assert!(
                        self.handle.stores().exists(entry.file.file_path()).await.unwrap(),
                        "a live file is gone"
                    );
                    live.push(LiveFile {
                        file: entry.file,
                        spec_id: 0,
                        partition_path: String::new(),
                        sequence_number: entry.sequence_number,
                        file_sequence_number: entry.file_sequence_number,
                        snapshot_id: entry.snapshot_id,
                        added_at_ms: None,
                        manifest_path: manifest.manifest_path.clone().into(),
                    });
                }
            }
        }
        let paths: HashSet<&str> = live.iter().map(|live| live.file.file_path()).collect();
        assert_eq!(paths.len(), live.len(), "a file is live twice");
        live
    }

    fn cursor(&self) -> i64 {
        let metadata = self.fake.metadata();
        let ledger =
            Ledger::read(metadata.properties(), "main", &WriterName::new("w").unwrap()).unwrap().unwrap();
        ledger.cursors.values().next().unwrap().next
    }

    /// After `flushes` that landed: as many snapshots, each row once, the cursor behind them.
    async fn check(&self, flushes: u64) {
        let metadata = self.fake.metadata();
        assert_eq!(u64::try_from(metadata.snapshots().len()).unwrap(), flushes, "exactly one snapshot each");
        let rows: u64 = self.live().await.iter().map(|live| live.file.record_count()).sum();
        assert_eq!(rows, 10 * flushes);
        assert_eq!(self.cursor(), 10 * i64::try_from(flushes).unwrap());
        assert_eq!(self.fake.faults_left(), 0);
    }
}

fn lost_answers() -> Vec<Reply> {
    vec![
        Reply::page(500),
        Reply::refusal(502, "BadGateway"),
        Reply::page(504),
        Reply::Close,
        Reply::Hang,
        Reply::Cut { status: 200, body: vec![b' '; 64].into() },
        Reply::page(200),
        Reply::page(409),
        Reply::refusal(409, "CommitFailedException"),
        Reply::refusal(400, "ValidationException"),
        Reply::page(400),
        Reply::page(408),
        Reply::page(429),
    ]
}

#[tokio::test]
async fn a_flush_whose_answer_is_lost_lands_once() {
    for reply in lost_answers() {
        let world = World::new().await;
        world.append(0).await.unwrap();
        world.fake.fail([Fault::Applied(reply.clone())]);
        for number in 1..4 {
            let outcome = world.append(number).await.unwrap();
            assert!(matches!(outcome, FlushOutcome::Committed(_)), "{reply:?}: {outcome:?}");
        }
        world.check(4).await;
    }
}

#[tokio::test]
async fn a_flush_that_was_not_applied_lands_with_a_later_request() {
    let throttled = Reply::refusal(429, "TooManyRequestsException").with("retry-after", "0");
    for reply in lost_answers().into_iter().chain([throttled, Reply::refusal(503, "SlowDown")]) {
        let world = World::new().await;
        world.fake.fail([Fault::Refused(reply.clone()), Fault::Refused(reply.clone())]);
        for number in 0..3 {
            let outcome = world.append(number).await.unwrap();
            assert!(matches!(outcome, FlushOutcome::Committed(_)), "{reply:?}: {outcome:?}");
        }
        world.check(3).await;
    }
}

#[tokio::test]
async fn a_request_that_is_applied_late_does_not_land_twice() {
    for reply in lost_answers() {
        let world = World::new().await;
        world.append(0).await.unwrap();
        world.fake.fail([Fault::Late(reply.clone())]);
        for number in 1..4 {
            world.append(number).await.unwrap();
        }
        world.check(4).await;
    }
}

#[tokio::test]
async fn a_new_process_goes_on_where_a_late_request_of_the_old_one_landed() {
    let world = World::new().await;
    world.append(0).await.unwrap();
    world.fake.fail([Fault::Late(Reply::Hang)]);
    let flush = world.flush(1).await;
    let died = tokio::time::timeout(Duration::from_millis(100), world.handle.append(flush)).await;
    assert!(died.is_err());
    let next = World::of(world.fake.clone()).await;
    match next.append(1).await.unwrap() {
        FlushOutcome::Overtaken { cursors, .. } => {
            assert_eq!(cursors.values().map(|cursor| cursor.next).collect::<Vec<_>>(), [20]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(world.fake.metadata().snapshots().len(), 2);
    assert_eq!(world.cursor(), 20);
}

#[tokio::test]
async fn a_storm_of_429_loses_nothing() {
    let world = World::new().await;
    let throttled =
        || Fault::Refused(Reply::refusal(429, "TooManyRequestsException").with("retry-after", "0"));
    world.fake.fail((0..30).map(|_| throttled()));
    for number in 0..3 {
        world.append(number).await.unwrap();
    }
    world.check(3).await;
    let sent = world.server.received_at("POST", TABLE);
    let keys: HashSet<_> =
        sent.iter().map(|request| request.header("idempotency-key").map(str::to_owned)).collect();
    assert_eq!((sent.len(), keys.len()), (33, 3), "one key per flush");
}

#[tokio::test]
async fn a_table_that_is_dropped_or_made_anew_stops_the_writer() {
    for (made_anew, kind) in [(false, ErrorKind::NotFound), (true, ErrorKind::Ledger)] {
        let world = World::new().await;
        world.append(0).await.unwrap();
        world.fake.change(|_| made_anew.then(|| super::fake::metadata(LOCATION)));
        let error = world.append(1).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[tokio::test]
async fn a_catalog_that_drops_the_ledger_stops_the_writer() {
    let world = World::new().await;
    world.append(0).await.unwrap();
    world.fake.change(|metadata| {
        let names: Vec<String> = metadata.properties().keys().cloned().collect();
        let builder = metadata.into_builder(None).remove_properties(&names).unwrap();
        Some(builder.build().unwrap().metadata)
    });
    world.handle.refresh().await.unwrap();
    let error = world.append(1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ledger, "{error}");
    assert_eq!(world.fake.metadata().snapshots().len(), 1);
}

#[tokio::test]
async fn a_rewrite_lands_once_whatever_is_answered() {
    for reply in lost_answers() {
        for fault in
            [Fault::Applied(reply.clone()), Fault::Refused(reply.clone()), Fault::Late(reply.clone())]
        {
            let world = World::new().await;
            world.append(0).await.unwrap();
            world.append(1).await.unwrap();
            let planned = world.live().await;
            let planned_on = world.fake.metadata().current_snapshot_id().unwrap();
            world.fake.fail([fault.clone()]);
            let group = ReplaceGroup {
                id: 0,
                removed: planned,
                added: vec![world.file("large", 20).await],
                applied_deletes: Vec::new(),
                deleted_rows: 0,
            };
            let replace = Replace {
                commit_id: CommitId { instance: world.instance, counter: 100 },
                planned_on,
                groups: vec![group],
                summary: Default::default(),
            };
            let outcome = world.handle.replace(replace).await.unwrap();
            assert_eq!(outcome.landed, [0], "{fault:?}");
            assert_eq!(world.live().await.len(), 1, "{fault:?}");
            assert_eq!(world.fake.metadata().snapshots().len(), 3, "{fault:?}");
            assert_eq!(world.cursor(), 20);
        }
    }
}

#[tokio::test]
async fn files_of_an_overtaken_flush_are_removed_only_where_every_answer_was_definite() {
    for (reply, kept) in [(Reply::refusal(429, "TooManyRequests"), false), (Reply::page(502), true)] {
        let one = World::new().await;
        let two = World::of(one.fake.clone()).await;
        let wait = Duration::from_secs(1);
        let limits = CommitLimits { min_wait: wait, max_wait: wait, ..one.handle.limits().clone() };
        let patient = one.handle.clone().with_limits(limits);
        one.fake.fail([Fault::Refused(reply.clone())]);
        let flush = one.flush(0).await;
        let path = flush.files[0].file.file_path().to_owned();
        // The first request of `one` fails; while it waits for its second, `two` writes the same offsets.
        let (first, second) = tokio::join!(patient.append(flush), async {
            while one.server.received_at("POST", TABLE).is_empty() {
                tokio::task::yield_now().await;
            }
            two.append(0).await
        });
        assert!(matches!(first.unwrap(), FlushOutcome::Overtaken { .. }), "{reply:?}");
        assert!(matches!(second.unwrap(), FlushOutcome::Committed(_)), "{reply:?}");
        assert_eq!(one.handle.stores().exists(&path).await.unwrap(), kept, "{reply:?}");
    }
}
