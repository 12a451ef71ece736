#![allow(clippy::panic, reason = "tests state what cannot be")]

use std::collections::{BTreeMap, HashMap, HashSet};

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

fn at(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition { topic: topic.to_owned(), partition }
}

fn id(counter: u64) -> CommitId {
    CommitId { instance: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001), counter }
}

fn ledger(cursors: BTreeMap<TopicPartition, Cursor>) -> Ledger {
    Ledger {
        commit_id: id(7),
        snapshot_id: 42,
        sequence_number: 9,
        guarantee: Guarantee::ExactlyOnce,
        cluster_id: Some("kafka-1".to_owned()),
        topic_ids: BTreeMap::from([("events".to_owned(), "abc".to_owned())]),
        cursors,
    }
}

#[test]
fn writer_names_are_letters_digits_dashes_and_underscores() {
    for name in ["w", "a-B_9", &"x".repeat(64)] {
        assert_eq!(WriterName::new(name).unwrap().as_str(), name);
    }
    for name in ["", "a.b", "a b", "ä", "a/b", &"x".repeat(65)] {
        assert_eq!(WriterName::new(name).unwrap_err().kind(), ErrorKind::Configuration, "{name}");
        assert!(serde_json::from_value::<WriterName>(serde_json::json!(name)).is_err(), "{name}");
    }
}

#[test]
fn commit_ids_are_read_back_as_they_are_written() {
    let text = id(18).to_string();
    assert_eq!(text, "01900000-0000-7000-8000-000000000001-18");
    assert_eq!(text.parse::<CommitId>().unwrap(), id(18));
    for text in
        ["", "18", "01900000-0000-7000-8000-000000000001", "x-1", "01900000-0000-7000-8000-000000000001--1"]
    {
        assert_eq!(text.parse::<CommitId>().unwrap_err().kind(), ErrorKind::Ledger, "{text}");
    }
}

#[test]
fn snapshot_ids_are_positive_different_and_the_same_for_one_commit() {
    let ids: HashSet<i64> = (0..10_000).map(|counter| id(counter).snapshot_id()).collect();
    assert_eq!(ids.len(), 10_000);
    assert!(ids.iter().all(|id| *id > 0));
    assert_eq!(id(3).snapshot_id(), id(3).snapshot_id());
    let mean = ids.iter().map(|id| *id as f64).sum::<f64>() / ids.len() as f64;
    assert!((mean / i64::MAX as f64 - 0.5).abs() < 0.02, "they fill the range: {mean}");
}

#[test]
fn a_ledger_is_compact_stable_text() {
    let cursors = BTreeMap::from([
        (at("events", 0), Cursor { start: 0, next: 10, rows: 10, rejected: 0, holes: 0, gaps: 0 }),
        (at("events", 11), Cursor { start: 5, next: 20, rows: 9, rejected: 1, holes: 2, gaps: 3 }),
        (at("audit", 0), Cursor::starting_at(3)),
    ]);
    let ledger = ledger(cursors);
    let text = concat!(
        r#"{"version":1,"commit":"01900000-0000-7000-8000-000000000001-7","snapshot":42,"sequence":9,"#,
        r#""cluster":"kafka-1","topics":{"audit":{"partitions":{"0":[3,3]}},"#,
        r#""events":{"id":"abc","partitions":{"0":[0,10],"11":[5,20,9,1,2,3]}}}}"#
    );
    assert_eq!(ledger.to_text(), text);
    assert_eq!(Ledger::parse(text).unwrap(), ledger);
}

#[test]
fn thousands_of_partitions_take_tens_of_kilobytes() {
    let cursor = |p: i64| Cursor {
        start: 1_000_000_000,
        next: 1_000_000_000 + p,
        rows: p.unsigned_abs(),
        rejected: 0,
        holes: 0,
        gaps: 0,
    };
    let cursors = (0..5_000).map(|p| (at("events", p), cursor(i64::from(p)))).collect();
    let text = ledger(cursors).to_text();
    assert!(text.len() < 160_000, "{}", text.len());
    assert_eq!(Ledger::parse(&text).unwrap().cursors.len(), 5_000);
}

#[test]
fn what_is_not_a_ledger_is_an_error_of_the_ledger() {
    for text in [
        "",
        "{}",
        "[]",
        r#"{"version":2,"commit":"x","snapshot":1,"sequence":1}"#,
        r#"{"version":1,"commit":"x","snapshot":1,"sequence":1}"#,
        r#"{"version":1,"commit":"01900000-0000-7000-8000-000000000001-7","snapshot":1,"sequence":1,"topics":{"t":{"partitions":{"0":[5,1]}}}}"#,
        r#"{"version":1,"commit":"01900000-0000-7000-8000-000000000001-7","snapshot":1,"sequence":1,"topics":{"t":{"partitions":{"0":[5,9,-1,0,0,0]}}}}"#,
    ] {
        let properties = HashMap::from([("firn.cursor.w".to_owned(), text.to_owned())]);
        let error = Ledger::read(&properties, "main", &WriterName::new("w").unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ledger, "{text}");
        assert!(error.to_string().contains("firn.cursor.w"), "{error}");
    }
}

#[test]
fn ledgers_of_all_branches_and_writers_are_listed() {
    let text = ledger(BTreeMap::new()).to_text();
    let names = ["firn.cursor.w", "firn.cursor.dev.w", "firn.cursor.a.b.v"];
    let mut properties: HashMap<String, String> =
        names.iter().map(|name| ((*name).to_owned(), text.clone())).collect();
    properties.insert("write.format.default".to_owned(), "parquet".to_owned());
    let all = Ledger::read_all(&properties).unwrap();
    let found: Vec<(&str, &str)> =
        all.iter().map(|(branch, writer, _)| (branch.as_str(), writer.as_str())).collect();
    assert_eq!(found, [("a.b", "v"), ("dev", "w"), ("main", "w")]);
    for (branch, writer, _) in &all {
        assert!(names.contains(&property_name(branch, writer).as_str()));
    }
}

fn record(ranges: Option<Vec<OffsetRange>>) -> CommitRecord {
    CommitRecord { writer: WriterName::new("w").unwrap(), commit_id: id(1), ranges, sets_cursors: false }
}

fn read_back(record: &CommitRecord) -> CommitRecord {
    CommitRecord::read(&record.entries().into_iter().collect()).unwrap()
}

#[test]
fn a_commit_lists_its_ranges_up_to_64_partitions() {
    let range =
        |p| OffsetRange { partition: at("events", p), start: 10, next: 20, rows: 10, rejected: 0, holes: 0 };
    let listed = record(Some((0..64).map(range).collect()));
    assert_eq!(read_back(&listed), listed);
    let too_many = record(Some((0..65).map(range).collect()));
    assert_eq!(read_back(&too_many), record(None));
    let mixed = record(Some(vec![
        OffsetRange { partition: at("a.b-c", 3), start: 1, next: 9, rows: 5, rejected: 2, holes: 1 },
        OffsetRange { partition: at("z", 0), start: 0, next: 0, rows: 0, rejected: 0, holes: 0 },
    ]));
    assert_eq!(mixed.entries()["firn.ranges"], "a.b-c 3:1+8/2/1;z 0:0+0");
    assert_eq!(read_back(&mixed), mixed);
}

#[test]
fn a_foreign_summary_is_not_a_commit_of_a_writer() {
    let foreign = HashMap::from([("engine-name".to_owned(), "spark".to_owned())]);
    assert_eq!(CommitRecord::read(&foreign), None);
    let mut damaged: HashMap<String, String> = record(None).entries().into_iter().collect();
    damaged.insert("firn.ranges".to_owned(), "what?".to_owned());
    assert_eq!(CommitRecord::read(&damaged).unwrap().ranges, None);
}

fn any_cursor() -> impl Strategy<Value = Cursor> {
    (0..1_i64 << 40, 0..1000_u64, 0..5_u64, 0..5_u64, 0..5_u64, any::<bool>()).prop_map(
        |(start, rows, rejected, holes, gaps, plain)| {
            let (rejected, holes, gaps) = if plain { (0, 0, 0) } else { (rejected, holes, gaps) };
            let next = start + i64::try_from(rows + rejected + holes + gaps).unwrap();
            Cursor { start, next, rows, rejected, holes, gaps }
        },
    )
}

proptest! {
    #[test]
    fn any_ledger_is_read_back(
        cursors in proptest::collection::btree_map(("[a-zA-Z0-9._-]{1,12}", 0..2000_i32), any_cursor(), 0..20),
        snapshot_id in any::<i64>(),
        counter in any::<u64>(),
        cluster_id in proptest::option::of(".{0,10}"),
        at_least_once in any::<bool>(),
    ) {
        let cursors = cursors.into_iter().map(|((topic, partition), cursor)| (at(&topic, partition), cursor));
        let ledger = Ledger {
            snapshot_id,
            commit_id: id(counter),
            cluster_id,
            guarantee: if at_least_once { Guarantee::AtLeastOnce } else { Guarantee::ExactlyOnce },
            ..ledger(cursors.collect())
        };
        prop_assert_eq!(Ledger::parse(&ledger.to_text()).unwrap(), ledger);
    }

    #[test]
    fn any_sequence_of_flushes_keeps_the_arithmetic(
        steps in proptest::collection::vec((0..3_i32, 0..20_u64, 0..3_u64, 0..3_u64), 1..40),
    ) {
        let writer = WriterName::new("w").unwrap();
        let source = SourceIdentity::default();
        let mut base: Option<Ledger> = None;
        for (counter, (partition, rows, rejected, holes)) in steps.into_iter().enumerate() {
            let partition = at("events", partition);
            let start = base.as_ref().and_then(|l| l.cursors.get(&partition)).map_or(100, |c| c.next);
            let next = start + i64::try_from(rows + rejected + holes).unwrap();
            let ranges = [OffsetRange { partition: partition.clone(), start, next, rows, rejected, holes }];
            let advance = Advance {
                writer: &writer,
                commit_id: id(counter as u64),
                snapshot_id: 1,
                sequence_number: 1,
                ranges: &ranges,
                source: &source,
                guarantee: Guarantee::ExactlyOnce,
                start_counts: true,
            };
            let Fenced::Pass(ledger) = fence(base.as_ref(), &advance).unwrap() else { panic!("it fits") };
            prop_assert!(ledger.cursors.values().all(|cursor| cursor.accounted() == cursor.covered()));
            prop_assert_eq!(ledger.cursors[&partition].next, next);
            if next > start {
                // The same flush again is overtaken.
                let again = fence(Some(&ledger), &advance).unwrap();
                let overtaken = matches!(again, Fenced::Overtaken { .. });
                prop_assert!(overtaken);
            }
            base = Some(ledger);
        }
    }
}
