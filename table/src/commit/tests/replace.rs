//! Rewrites.

use std::collections::BTreeMap;
use std::time::Duration;

use iceberg::TableUpdate;
use iceberg::spec::{ManifestStatus, Operation, SnapshotReference, SnapshotRetention};

use super::catalog::Fate;
use super::world::{Ids, World, committed, fast, writer};
use crate::ErrorKind;
use crate::commit::{CommitLimits, Replace, ReplaceGroup, TableHandle};
use crate::layout::LiveFile;
use crate::ledger::verify;

/// A table of `count` appends of one file with one row each.
async fn table_of(count: i64) -> (World, TableHandle, Ids) {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    for at in 0..count {
        committed(handle.append(world.flush(ids.next(), at, at + 1).await).await.unwrap());
    }
    (world, handle, ids)
}

async fn group(world: &World, id: usize, removed: &[LiveFile]) -> ReplaceGroup {
    let rows = removed.iter().map(|input| input.file.record_count()).sum();
    let name = format!("out-{id}-{}", removed.len());
    ReplaceGroup {
        id,
        removed: removed.to_vec(),
        added: vec![world.file(&name, rows).await],
        applied_deletes: Vec::new(),
        deleted_rows: 0,
    }
}

fn replace(ids: &mut Ids, world: &World, groups: Vec<ReplaceGroup>) -> Replace {
    let summary = BTreeMap::from([("firn.compaction".to_owned(), "test".to_owned())]);
    Replace { commit_id: ids.next(), planned_on: world.head(), groups, summary }
}

/// The live files in order of their rows' offsets.
async fn live(world: &World) -> Vec<LiveFile> {
    let mut live = world.live().await;
    live.sort_by_key(|file| file.sequence_number);
    live
}

#[tokio::test]
async fn a_replace_keeps_rows_sequence_numbers_and_the_ledger() {
    let (world, handle, mut ids) = table_of(6).await;
    let files = live(&world).await;
    let planned_on = world.head();
    let ledger = world.ledger();
    let replace = replace(&mut ids, &world, vec![group(&world, 0, &files[..3]).await]);
    let outcome = handle.replace(replace).await.unwrap();
    assert_eq!((outcome.landed, outcome.dropped), (vec![0], vec![]));
    let metadata = world.catalog.metadata();
    let snapshot = metadata.current_snapshot().unwrap();
    assert_eq!((snapshot.summary().operation.clone(), snapshot.sequence_number()), (Operation::Replace, 7));
    let summary = &snapshot.summary().additional_properties;
    for (name, value) in [
        ("added-data-files", "1"),
        ("deleted-data-files", "3"),
        ("added-records", "3"),
        ("deleted-records", "3"),
        ("total-records", "6"),
        ("total-data-files", "4"),
        ("firn.compaction", "test"),
    ] {
        assert_eq!(summary.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!summary.contains_key("firn.ranges") && !summary.contains_key("firn.writer"));
    assert_eq!((world.rows().await, world.ledger()), (6, ledger));
    let planned = metadata.snapshot_by_id(planned_on).unwrap().sequence_number();
    for (manifest, entry) in world.entries_of(snapshot.snapshot_id()).await {
        let original = files.iter().find(|file| file.file.file_path() == entry.file.file_path());
        match (entry.status, original) {
            (ManifestStatus::Added, None) => {
                assert_eq!((entry.sequence_number, entry.file_sequence_number), (planned, 7));
                assert_eq!(manifest.min_sequence_number, planned);
            }
            (ManifestStatus::Deleted, Some(original)) => {
                assert_eq!(entry.snapshot_id, snapshot.snapshot_id());
                assert_eq!(entry.sequence_number, original.sequence_number);
                assert_eq!(entry.file_sequence_number, original.file_sequence_number);
            }
            (_, Some(original)) => {
                assert_eq!(entry.snapshot_id, original.snapshot_id);
                assert_eq!(entry.sequence_number, original.sequence_number);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(verify(&metadata, "main", &writer()).unwrap().problems, Vec::<String>::new());
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

/// R5: tombstones are not carried into a manifest that is written again, and a dead manifest is dropped.
#[tokio::test]
async fn tombstones_stay_dead_and_dead_manifests_go() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let mut flush = world.flush(ids.next(), 0, 3).await;
    flush.files.clear();
    for name in ["a", "b", "c"] {
        flush.files.push(world.file(name, 1).await);
    }
    committed(handle.append(flush).await.unwrap());
    for expected in [3, 2, 1] {
        let files = live(&world).await;
        let inputs: Vec<LiveFile> =
            files.iter().filter(|file| !file.file.file_path().contains("out")).take(1).cloned().collect();
        let group = ReplaceGroup {
            id: expected,
            removed: inputs,
            added: vec![world.file(&format!("out-{expected}"), 1).await],
            applied_deletes: Vec::new(),
            deleted_rows: 0,
        };
        let replace = replace(&mut ids, &world, vec![group]);
        assert_eq!(handle.replace(replace).await.unwrap().landed, [expected]);
        let entries = world.entries_of(world.head()).await;
        let tombstones = entries.iter().filter(|(_, entry)| !entry.is_live()).count();
        assert_eq!((tombstones, world.rows().await), (1, 3));
    }
    // All files of the first manifest are gone: the next commit does not carry it.
    let before = world.list_of(world.head()).await.len();
    committed(handle.append(world.flush(ids.next(), 3, 4).await).await.unwrap());
    assert_eq!(world.list_of(world.head()).await.len(), before);
    assert!(world.entries_of(world.head()).await.iter().all(|(_, entry)| entry.is_live()));
    assert_eq!(world.rows().await, 4);
    world.check().await;
}

/// R2: the first attempt gets a conflict from an append; both are there, and the retry reads no manifest.
#[tokio::test]
async fn a_replace_that_loses_to_an_append_lands_on_top_of_it() {
    let (world, handle, mut ids) = table_of(4).await;
    let files = live(&world).await;
    let replace = replace(&mut ids, &world, vec![group(&world, 0, &files).await]);
    let other = world.open().await;
    committed(other.append(world.flush(ids.next(), 4, 9).await).await.unwrap());
    let reads = world.meter.reads();
    let outcome = handle.replace(replace).await.unwrap();
    let done = outcome.committed.unwrap();
    assert_eq!((done.attempts, done.conflicts), (2, 1));
    // Four manifests that lose files, and the list that the other process wrote.
    assert_eq!(world.meter.reads() - reads, 5);
    assert_eq!(world.rows().await, 9);
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_group_whose_input_vanished_is_dropped_alone() {
    let (world, handle, mut ids) = table_of(6).await;
    let files = live(&world).await;
    let groups = vec![group(&world, 7, &files[..2]).await, group(&world, 8, &files[2..5]).await];
    let lost = groups[0].added[0].file.file_path().to_owned();
    let replaced = replace(&mut ids, &world, groups);
    let other = world.open().await;
    let theirs =
        ReplaceGroup { added: vec![world.file("theirs", 2).await], ..group(&world, 0, &files[1..3]).await };
    let first = replace(&mut ids, &world, vec![group(&world, 1, &files[..1]).await]);
    other.replace(first).await.unwrap();
    let outcome = handle.replace(replaced).await.unwrap();
    assert_eq!(outcome.landed, [8]);
    assert_eq!(outcome.dropped.len(), 1);
    assert!(
        outcome.dropped[0].0 == 7 && outcome.dropped[0].1.contains("not in the table"),
        "{:?}",
        outcome.dropped
    );
    assert!(!world.objects().await.contains(&lost));
    assert_eq!(world.rows().await, 6);
    // Every group dropped: nothing is committed.
    let outcome = handle.replace(replace(&mut ids, &world, vec![theirs])).await.unwrap();
    assert!(outcome.committed.is_none() && outcome.landed.is_empty() && outcome.dropped.len() == 1);
    let leftovers = world.leftovers().await;
    assert_eq!(leftovers, ["memory:///table/data/out-0-2.parquet"], "only the file that no rewrite held");
}

/// R13: the snapshot that was planned on expires during the rewrite; the table is rolled back below it.
#[tokio::test]
async fn a_replace_lands_by_state_after_expiry_and_rollback() {
    let (world, handle, mut ids) = table_of(4).await;
    let files = live(&world).await;
    let at: Vec<i64> = world.catalog.metadata().history().iter().map(|log| log.snapshot_id).collect();
    let early = replace(&mut ids, &world, vec![group(&world, 0, &files[..2]).await]);
    let late = replace(&mut ids, &world, vec![group(&world, 1, &files[2..]).await]);
    // Back to the second append, and the snapshots after it expire.
    let reference = SnapshotReference::new(at[1], SnapshotRetention::branch(None, None, None));
    world.catalog.update(vec![TableUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference }]);
    world.catalog.update(vec![TableUpdate::RemoveSnapshots { snapshot_ids: at[2..].to_vec() }]);
    assert_eq!(handle.replace(early).await.unwrap().landed, [0]);
    let outcome = handle.replace(late).await.unwrap();
    assert!(outcome.committed.is_none());
    assert_eq!(outcome.dropped.len(), 1);
    assert_eq!(world.rows().await, 2);
}

#[tokio::test]
async fn inputs_are_found_in_a_manifest_that_was_merged_meanwhile() {
    let (world, handle, mut ids) = table_of(99).await;
    let files = live(&world).await;
    let replace = replace(&mut ids, &world, vec![group(&world, 0, &files[..50]).await]);
    committed(handle.append(world.flush(ids.next(), 99, 100).await).await.unwrap());
    committed(handle.append(world.flush(ids.next(), 100, 101).await).await.unwrap());
    assert!(world.list_of(world.head()).await.len() < 5);
    assert_eq!(handle.replace(replace).await.unwrap().landed, [0]);
    assert_eq!(world.rows().await, 101);
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

/// R15: 10 definite conflicts in a row leave no file behind.
#[tokio::test]
async fn a_replace_that_gives_up_leaves_no_file() {
    let (world, handle, mut ids) = table_of(3).await;
    let before = world.objects().await;
    let files = live(&world).await;
    let replace = replace(&mut ids, &world, vec![group(&world, 0, &files).await]);
    world.catalog.script([Fate::Conflict; 10]);
    let handle = handle.with_limits(CommitLimits { max_conflicts: 9, ..fast() });
    assert_eq!(handle.replace(replace).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(world.objects().await, before);
}

#[tokio::test]
async fn a_replace_whose_reply_is_lost_is_found() {
    for fate in [Fate::ReplyLost, Fate::ConflictThoughApplied, Fate::AnsweredWithOldTable] {
        let (world, handle, mut ids) = table_of(3).await;
        let files = live(&world).await;
        let replace = replace(&mut ids, &world, vec![group(&world, 0, &files).await]);
        world.catalog.script([fate]);
        let outcome = handle.replace(replace).await.unwrap();
        assert_eq!((outcome.landed, world.rows().await), (vec![0], 3), "{fate:?}");
        assert_eq!(world.leftovers().await, Vec::<String>::new(), "{fate:?}");
    }
}

/// It landed without an answer, was rolled back, and its snapshot expired with its files: nothing may name them again.
#[tokio::test]
async fn a_replace_whose_files_may_have_expired_meanwhile_is_not_sent_again() {
    let (world, handle, mut ids) = table_of(3).await;
    let (before, files) = (world.head(), live(&world).await);
    let replace = replace(&mut ids, &world, vec![group(&world, 0, &files).await]);
    let impatient = handle.with_limits(CommitLimits { deadline: Some(Duration::ZERO), ..fast() });
    world.catalog.script([Fate::Late]);
    let error = impatient.replace(replace.clone()).await.unwrap_err();
    assert_eq!((error.kind(), world.catalog.land_late()), (ErrorKind::UnknownOutcome, 1));
    let landed = world.head();
    let reference = SnapshotReference::new(before, SnapshotRetention::branch(None, None, None));
    world.catalog.update(vec![TableUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference }]);
    world.catalog.update(vec![TableUpdate::RemoveSnapshots { snapshot_ids: vec![landed] }]);
    let expired = world.leftovers().await;
    assert!(expired.contains(&replace.groups[0].added[0].file.file_path().to_owned()), "{expired:?}");
    assert!(world.stores.delete_all(expired).await.is_empty());
    let error = impatient.replace(replace).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownOutcome, "{error}");
    assert!(error.to_string().contains("expired"), "{error}");
    assert_eq!((world.head(), world.rows().await), (before, 3));
    world.check().await;
}

#[tokio::test]
async fn a_rewrite_that_changes_rows_or_uses_a_path_twice_is_refused() {
    let (world, handle, mut ids) = table_of(3).await;
    let files = live(&world).await;
    let mut fewer = group(&world, 0, &files).await;
    fewer.added[0] = world.file("fewer", 2).await;
    let twice = vec![group(&world, 0, &files[..2]).await, group(&world, 1, &files[1..2]).await];
    let nothing = ReplaceGroup { removed: vec![], added: vec![], ..group(&world, 2, &[]).await };
    for groups in [vec![fewer], twice, vec![nothing]] {
        let error = handle.replace(replace(&mut ids, &world, groups)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
    assert_eq!(world.catalog.metadata().snapshots().len(), 3);
}

/// Bookkeeping of other writers travels from the head that is replaced; ours does not.
#[tokio::test]
async fn other_writers_bookkeeping_is_carried_on() {
    let (world, handle, mut ids) = table_of(2).await;
    let files = live(&world).await;
    let mut first = replace(&mut ids, &world, vec![group(&world, 0, &files[..1]).await]);
    first.summary.extend([
        ("kafka.connect.offsets.control.group".to_owned(), "{\"0\":3}".to_owned()),
        ("flink.max-committed-checkpoint-id".to_owned(), "12".to_owned()),
        ("wap.id".to_owned(), "x".to_owned()),
    ]);
    handle.replace(first).await.unwrap();
    let files = live(&world).await;
    let second = replace(
        &mut ids,
        &world,
        vec![ReplaceGroup {
            id: 1,
            added: vec![world.file("second", 2).await],
            ..group(&world, 5, &files).await
        }],
    );
    handle.replace(second).await.unwrap();
    let metadata = world.catalog.metadata();
    let summary = &metadata.current_snapshot().unwrap().summary().additional_properties;
    assert_eq!(summary["kafka.connect.offsets.control.group"], "{\"0\":3}");
    assert_eq!(summary["flink.max-committed-checkpoint-id"], "12");
    assert!(!summary.contains_key("wap.id"));
}
