//! Dead letters: once, whole, and exact through crashes between the two commits and decoders that disagree.

use firn_table::commit::{Guarantee, SourceIdentity};
use firn_table::ledger::{CommitId, OffsetRange};

use super::*;
use crate::config::DeadLetters;
use crate::dead_letters::{DeadLetter, DeadLetterTable, Letters, Stored, default_name, read_letters, replay};
use crate::decode::{ColumnOptions, DecodeOptions, NumberText};

fn keeping() -> WriterConfig {
    let dead_letters = DeadLetters { max_share: 1.0, ..DeadLetters::default() };
    WriterConfig { on_bad_message: OnBadMessage::DeadLetter, dead_letters, ..until_end() }
}

/// A decoder that takes numbers from text, or not.
fn judging(numbers: NumberText) -> DecodeOptions {
    DecodeOptions {
        defaults: ColumnOptions { numbers, ..ColumnOptions::default() },
        ..DecodeOptions::default()
    }
}

impl World {
    async fn letter_table(&self) -> Option<TableHandle> {
        let OpenCatalog { catalog, stores } = self.catalog.clone();
        TableHandle::open(catalog, stores, default_name(&self.ident, "main"), "main").await.ok()
    }

    async fn letters(&self) -> Vec<Stored> {
        let Some(handle) = self.letter_table().await else { return Vec::new() };
        let mut letters = read_letters(handle.stores(), &handle.table(), 0).await.unwrap();
        letters.sort_by_key(|stored| (stored.letter.partition.clone(), stored.letter.offset));
        letters
    }

    async fn letter_offsets(&self) -> Vec<i64> {
        self.letters().await.iter().map(|stored| stored.letter.offset).collect()
    }

    /// Each of `count` messages of partition 0 is a row or a letter, once.
    async fn assert_each_once(&self, count: i64) {
        let mut all = [self.ids().await, self.letter_offsets().await].concat();
        all.sort_unstable();
        let expected: Vec<i64> = (0..count).collect();
        assert_eq!(all, expected);
    }

    /// Letters as a process leaves them that ends before it commits the rows of `[0, next)`.
    async fn leave_letters(&self, offsets: &[i64], next: i64) {
        let config = DeadLetters::default();
        let table = DeadLetterTable::open(&self.handle().await, &config, Cpu::Threads).await.unwrap();
        let instance = Uuid::now_v7();
        let (from, source) = (BTreeMap::from([(tp(0), 0)]), SourceIdentity::default());
        let id = |counter| CommitId { instance, counter };
        let (claims, _) = table.claim(id(1), &name(), &from, &source).await.unwrap();
        let letter = |offset: &i64| DeadLetter {
            partition: tp(0),
            offset: *offset,
            timestamp_ms: None,
            key: None,
            value: Some(b"?".to_vec()),
            headers: Vec::new(),
            schema_id: None,
            code: "wrong-type".to_owned(),
            path: String::new(),
            expected: String::new(),
            found: String::new(),
            reason: String::new(),
        };
        let ranges =
            vec![OffsetRange { partition: tp(0), start: 0, next, rows: next as u64, rejected: 0, holes: 0 }];
        let letters = Letters {
            commit_id: id(2),
            writer: name(),
            letters: offsets.iter().map(letter).collect(),
            ranges,
            source,
            guarantee: Guarantee::ExactlyOnce,
            claims,
            now_ms: 0,
        };
        table.append(letters).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_poison_message_among_ten_thousand_is_one_letter_and_the_others_are_rows() {
    let world = World::new(1).await;
    world.produce(0, 5_000);
    let poison = br#"{"id":4.5,"name":"poison"}"#.to_vec();
    let key = Some(b"k".to_vec());
    world
        .log
        .append(&tp(0), MemoryRecord { key: key.clone(), value: Some(poison.clone()), timestamp_ms: 1_234 });
    world.produce(0, 4_999);
    let report = world.start(keeping()).await.ended().await.unwrap();
    assert_eq!((report.rows, report.rejected, report.dead_letters), (9_999, 1, 1));
    world.assert_each_once(10_000).await;
    let letters = world.letters().await;
    let Stored { letter, writer, table, .. } = &letters[0];
    assert_eq!((letter.offset, letter.timestamp_ms), (5_000, Some(1_234)));
    assert_eq!((&letter.key, &letter.value), (&key, &Some(poison)));
    assert_eq!((letter.code.as_str(), letter.path.as_str()), ("not-an-integer", "id"));
    assert_eq!((letter.expected.as_str(), letter.found.as_str()), ("long", "4.5"));
    assert_eq!((writer.as_str(), table.as_str()), ("w", "n.t@main"));
    let cursor = &world.ledger().await.unwrap().cursors[&tp(0)];
    assert_eq!((cursor.next, cursor.rows, cursor.rejected), (10_000, 9_999, 1));

    let again = world.start(keeping()).await.ended().await.unwrap();
    assert_eq!((again.rows, again.dead_letters), (0, 0));
    world.assert_each_once(10_000).await;
}

/// What stands in the letters is dead, also where it decodes now; what does not is judged afresh, also where the
/// letters' cursor has passed it.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_between_the_commits_letters_stay_dead_and_the_others_are_judged_afresh() {
    let world = World::new(1).await;
    world.produce(0, 3);
    world.produce_text(0, r#"{"id":"poison"}"#);
    world.produce(0, 96);
    world.leave_letters(&[7, 50], 100).await;
    let report = world.start(keeping()).await.ended().await.unwrap();
    assert_eq!((report.rows, report.rejected, report.dead_letters), (97, 3, 1));
    assert_eq!(world.letter_offsets().await, [3, 7, 50]);
    world.assert_each_once(100).await;
    let handle = world.letter_table().await.unwrap();
    let Standing::Current(ledger) = handle.standing(&name()).await.unwrap() else { panic!("no ledger") };
    let cursor = &ledger.cursors[&tp(0)];
    assert_eq!((cursor.start, cursor.next, cursor.rows, cursor.holes), (0, 100, 3, 97));
    let verified = firn_table::ledger::verify(handle.table().metadata(), "main", &name()).unwrap();
    assert_eq!(verified.problems, Vec::<String>::new());
}

/// Writers that are killed as soon as letters of theirs have landed, with decoders that disagree in turn.
#[tokio::test(flavor = "multi_thread")]
async fn killed_writers_that_judge_differently_leave_each_message_once() {
    const LIVES: usize = 12;
    let world = World::new(1).await;
    let mut produced = 0;
    for life in 0..LIVES {
        for _ in 0..200 {
            let id = world.log.high(&tp(0));
            let text = if id % 7 == 0 { format!(r#"{{"id":"{id}"}}"#) } else { format!(r#"{{"id":{id}}}"#) };
            world.produce_text(0, &text);
            produced += 1;
        }
        let before = world.letters().await.len();
        let numbers = if life % 3 == 1 { NumberText::Parse } else { NumberText::Reject };
        let flush = FlushLimits { age: Duration::from_millis(5), rows: 40, ..FlushLimits::default() };
        let config = WriterConfig { decode: judging(numbers), flush, ..keeping() };
        let running = world.start(config).await;
        let more_letters = async {
            while world.letters().await.len() == before && !running.task.is_finished() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, more_letters).await.expect("letters land, or the writer ends");
        running.task.abort();
        let _killed = running.task.await;
    }
    world.start(keeping()).await.ended().await.unwrap();
    world.assert_each_once(produced).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_deployments_under_one_name_leave_each_message_once() {
    let world = World::new(1).await;
    let rivals = |numbers| WriterConfig {
        max_overtaken: 1_000,
        decode: judging(numbers),
        end: End::Never,
        ..keeping()
    };
    let a = world.start_in("a", rivals(NumberText::Parse)).await;
    let b = world.start_in("b", rivals(NumberText::Reject)).await;
    let mut produced = 0;
    for _ in 0..10 {
        for _ in 0..50 {
            let id = world.log.high(&tp(0));
            let text = if id % 5 == 0 { format!(r#"{{"id":"{id}"}}"#) } else { format!(r#"{{"id":{id}}}"#) };
            world.produce_text(0, &text);
            produced += 1;
        }
        let passed = async {
            while world.ledger().await.and_then(|l| Some(l.cursors.get(&tp(0))?.next)) != Some(produced) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, passed).await.expect("one of them goes on");
    }
    a.stop().await.unwrap();
    b.stop().await.unwrap();
    world.assert_each_once(produced).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_letters_stop_the_writer_and_what_was_read_is_kept() {
    let world = World::new(1).await;
    world.produce(0, 100);
    (0..11).for_each(|_| world.produce_text(0, "no json"));
    let dead_letters = DeadLetters { max_share: 0.01, window: 1_000, ..DeadLetters::default() };
    let config = WriterConfig { dead_letters, ..keeping() };
    let error = world.start(config).await.ended().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.to_string().contains("11 of the last 111 messages"), "{error}");
    world.assert_each_once(111).await;
    assert_eq!(world.ledger().await.unwrap().cursors[&tp(0)].next, 111);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_letters_belongs_to_one_table() {
    let world = World::new(1).await;
    world.start(keeping()).await.ended().await.unwrap();
    let other = TableIdent::from_strs(["n", "other"]).unwrap();
    let new = NewTable { schema: schema(), partition: None, location: None, properties: Default::default() };
    create_table(&world.catalog, &other, new).await.unwrap();
    let OpenCatalog { catalog, stores } = world.catalog.clone();
    let handle = TableHandle::open(catalog, stores, other, "main").await.unwrap();
    let shared = DeadLetters { table: Some(default_name(&world.ident, "main")), ..DeadLetters::default() };
    let error = DeadLetterTable::open(&handle, &shared, Cpu::Threads).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("`n.t@main`"), "{error}");
}

/// A letter that decodes by now becomes a row once, however often it is replayed; what is still bad stays dead.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_appends_what_decodes_by_now_once() {
    let world = World::new(1).await;
    for id in 0..20 {
        let text = match id % 4 {
            1 => format!(r#"{{"id":"{id}","day":{}}}"#, id % 3),
            3 => "no json".to_owned(),
            _ => format!(r#"{{"id":{id}}}"#),
        };
        world.produce_text(0, &text);
    }
    world.start(keeping()).await.ended().await.unwrap();
    assert_eq!((world.ids().await.len(), world.letters().await.len()), (10, 10));
    let (rows, letters) = (world.handle().await, world.letter_table().await.unwrap());
    let options = judging(NumberText::Parse);
    let report = replay(&rows, &letters, &name(), &options).await.unwrap();
    assert_eq!((report.replayed, report.still_dead, report.replayed_before, report.pending), (5, 5, 0, 0));
    let again = replay(&world.handle().await, &letters, &name(), &options).await.unwrap();
    assert_eq!((again.replayed, again.still_dead, again.replayed_before), (0, 5, 5));
    let expected: Vec<i64> = (0..20).filter(|id| id % 4 != 3).collect();
    assert_eq!(world.ids().await, expected);
    assert_eq!(world.letters().await.len(), 10, "letters stay");
    world.assert_no_orphans().await;
    // The writer goes on from its own cursor.
    world.produce(0, 5);
    world.start(keeping()).await.ended().await.unwrap();
    assert_eq!(world.ids().await.len(), 20);
}

/// Of many replays at a time one lands, and a replay that knew nothing of it doubles nothing.
#[tokio::test(flavor = "multi_thread")]
async fn replays_at_the_same_time_do_not_double() {
    let world = World::new(1).await;
    (0..50).for_each(|id| world.produce_text(0, &format!(r#"{{"id":"{id}"}}"#)));
    world.start(keeping()).await.ended().await.unwrap();
    let letters = world.letter_table().await.unwrap();
    let (options, writer) = (judging(NumberText::Parse), name());
    let handles = [world.handle().await, world.handle().await, world.handle().await];
    let all = handles.iter().map(|rows| replay(rows, &letters, &writer, &options));
    let outcomes = futures::future::join_all(all).await;
    let replayed: u64 = outcomes.iter().flatten().map(|report| report.replayed).sum();
    assert_eq!(replayed, 50, "{outcomes:?}");
    assert!(outcomes.iter().filter_map(|o| o.as_ref().err()).all(|e| e.kind() == ErrorKind::Conflict));
    assert_eq!(world.ids().await, (0..50).collect::<Vec<i64>>());
    world.assert_no_orphans().await;
}

/// What the cursor has not passed is its writer's to judge.
#[tokio::test(flavor = "multi_thread")]
async fn letters_at_or_after_the_cursor_are_not_replayed() {
    let world = World::new(1).await;
    world.produce_text(0, r#"{"id":"0"}"#);
    world.start(keeping()).await.ended().await.unwrap();
    world.leave_letters(&[5], 6).await;
    let (rows, letters) = (world.handle().await, world.letter_table().await.unwrap());
    let report = replay(&rows, &letters, &name(), &judging(NumberText::Parse)).await.unwrap();
    assert_eq!((report.replayed, report.pending), (1, 1));
    assert_eq!(world.ids().await, [0]);
}
