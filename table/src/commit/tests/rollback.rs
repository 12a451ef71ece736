//! The table is rolled back, replaced, or loses the ledger.

use iceberg::TableUpdate;
use iceberg::spec::{SnapshotReference, SnapshotRetention};

use super::catalog::Fate;
use super::world::{Ids, World, committed, topic_partition, writer};
use crate::ErrorKind;
use crate::commit::CursorChange;
use crate::ledger::{Cursor, Standing, property_name, verify};

fn reset_main(snapshot_id: i64) -> Vec<TableUpdate> {
    let reference = SnapshotReference::new(snapshot_id, SnapshotRetention::branch(None, None, None));
    vec![TableUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference }]
}

/// K17, while the writer runs: the cursor says 30, the rows from 10 on are gone.
#[tokio::test]
async fn a_rollback_while_the_writer_runs_stops_it_and_names_the_offsets() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let first = committed(handle.append(world.flush(ids.next(), 0, 10).await).await.unwrap());
    committed(handle.append(world.flush(ids.next(), 10, 30).await).await.unwrap());
    world.catalog.before_next(reset_main(first.snapshot_id));
    let error = handle.append(world.flush(ids.next(), 30, 40).await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ledger);
    assert!(error.to_string().contains("10 to 29"), "{error}");
    assert_eq!(world.rows().await, 10);
}

/// K17, while it is down; then both ways out.
#[tokio::test]
async fn after_a_rollback_cursors_are_taken_back_exactly_and_the_rows_come_once() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let first =
        committed(handle.append(world.flush_of(ids.next(), &[(0, 0, 10), (1, 5, 6)]).await).await.unwrap());
    committed(handle.append(world.flush_of(ids.next(), &[(0, 10, 30), (2, 0, 3)]).await).await.unwrap());
    world.catalog.update(reset_main(first.snapshot_id));
    let Standing::RolledBack { ledger, ancestry: Some(ancestry), .. } =
        handle.standing(&writer()).await.unwrap()
    else {
        panic!("it was rolled back")
    };
    assert_eq!(ledger.cursors[&topic_partition(0)].next, 30);
    assert_eq!(ancestry.cursors[&topic_partition(0)].next, 10);
    assert_eq!(ancestry.cursors[&topic_partition(1)].next, 6);
    assert!(!ancestry.cursors.contains_key(&topic_partition(2)));
    assert_eq!(ancestry.commit_id, first_commit(&world, first.snapshot_id));

    let change = CursorChange {
        commit_id: ids.next(),
        writer: writer(),
        cursors: ancestry.cursors,
        source: None,
        replace_all: true,
    };
    handle.set_cursors(change).await.unwrap();
    committed(handle.append(world.flush_of(ids.next(), &[(0, 10, 30), (2, 0, 3)]).await).await.unwrap());
    assert_eq!(world.rows().await, 34);
    let verification = verify(&world.catalog.metadata(), "main", &writer()).unwrap();
    assert_eq!((verification.problems, verification.rows, verification.offsets), (Vec::new(), 34, 34));
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

fn first_commit(world: &World, snapshot_id: i64) -> crate::ledger::CommitId {
    let metadata = world.catalog.metadata();
    crate::ledger::commit_record(metadata.snapshot_by_id(snapshot_id).unwrap()).unwrap().commit_id
}

/// A commit that landed, unknown to its process, and was rolled back since, is not taken for one that is there.
#[tokio::test]
async fn a_commit_that_was_rolled_back_is_not_found_and_not_added_again() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let first = committed(handle.append(world.flush(ids.next(), 0, 10).await).await.unwrap());
    let flush = world.flush(ids.next(), 10, 20).await;
    committed(handle.append(flush.clone()).await.unwrap());
    world.catalog.update(reset_main(first.snapshot_id));
    assert_eq!(world.open().await.append(flush.clone()).await.unwrap_err().kind(), ErrorKind::Ledger);
    let handle = world.open().await;
    let cursors = [(topic_partition(0), Cursor { next: 10, rows: 10, ..Cursor::starting_at(0) })].into();
    let change =
        CursorChange { commit_id: ids.next(), writer: writer(), cursors, source: None, replace_all: true };
    handle.set_cursors(change).await.unwrap();
    let error = handle.append(flush.clone()).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Ledger && error.to_string().contains("rolled back"), "{error}");
    assert_eq!((world.rows().await, world.cursor(0)), (10, Some(10)));
    // The snapshot that was taken out is still in the table, and so are its files.
    world.check().await;
}

/// A decision that was made on cursors which have moved since changes nothing.
#[tokio::test]
async fn cursors_that_moved_since_they_were_looked_at_are_not_set() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    committed(handle.append(world.flush_of(ids.next(), &[(0, 0, 10), (1, 0, 5)]).await).await.unwrap());
    let looking = world.open().await;
    committed(handle.append(world.flush(ids.next(), 10, 20).await).await.unwrap());
    let mut change = CursorChange {
        commit_id: ids.next(),
        writer: writer(),
        cursors: [(topic_partition(0), Cursor::starting_at(3))].into(),
        source: None,
        replace_all: false,
    };
    let error = looking.set_cursors(change.clone()).await.unwrap_err();
    assert_eq!((error.kind(), world.cursor(0)), (ErrorKind::Conflict, Some(20)));
    // What others do to other partitions does not matter.
    change.cursors = [(topic_partition(1), Cursor::starting_at(3))].into();
    looking.set_cursors(change).await.unwrap();
    assert_eq!((world.cursor(0), world.cursor(1)), (Some(20), Some(3)));
}

/// A ledger that cannot be read stops the writer; setting all cursors is the way out.
#[tokio::test]
async fn a_ledger_that_cannot_be_read_is_replaced_by_a_persons_decision() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    committed(handle.append(world.flush(ids.next(), 0, 10).await).await.unwrap());
    let damaged = [(property_name("main", &writer()), "{}".to_owned())].into();
    world.catalog.update(vec![TableUpdate::SetProperties { updates: damaged }]);
    let handle = world.open().await;
    let flush = world.flush(ids.next(), 10, 12).await;
    assert_eq!(handle.append(flush).await.unwrap_err().kind(), ErrorKind::Ledger);
    let mut change = CursorChange {
        commit_id: ids.next(),
        writer: writer(),
        cursors: [(topic_partition(0), Cursor::starting_at(10))].into(),
        source: None,
        replace_all: false,
    };
    assert_eq!(handle.set_cursors(change.clone()).await.unwrap_err().kind(), ErrorKind::Ledger);
    change.replace_all = true;
    handle.set_cursors(change).await.unwrap();
    committed(handle.append(world.flush(ids.next(), 10, 12).await).await.unwrap());
    assert_eq!(world.rows().await, 12);
}

/// A rollback whose lost snapshot was expired afterwards shows in the sequence numbers.
#[tokio::test]
async fn a_rollback_is_seen_although_the_lost_snapshot_expired() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let first = committed(handle.append(world.flush(ids.next(), 0, 10).await).await.unwrap());
    let second = committed(handle.append(world.flush(ids.next(), 10, 30).await).await.unwrap());
    world.catalog.update(reset_main(first.snapshot_id));
    world.catalog.update(vec![TableUpdate::RemoveSnapshots { snapshot_ids: vec![second.snapshot_id] }]);
    assert!(matches!(handle.standing(&writer()).await.unwrap(), Standing::RolledBack { .. }));
}

/// What expired commits covered is not taken for what was never there: it would be read again and doubled.
#[tokio::test]
async fn partitions_of_expired_commits_are_unknown_after_a_rollback() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let other = committed(handle.append(world.flush_of(ids.next(), &[(1, 0, 5)]).await).await.unwrap());
    let kept = committed(handle.append(world.flush_of(ids.next(), &[(0, 0, 10)]).await).await.unwrap());
    let lost = committed(handle.append(world.flush_of(ids.next(), &[(0, 10, 30)]).await).await.unwrap());
    world.catalog.update(reset_main(kept.snapshot_id));
    let removed = vec![lost.snapshot_id, other.snapshot_id];
    world.catalog.update(vec![TableUpdate::RemoveSnapshots { snapshot_ids: removed }]);
    let standing = handle.standing(&writer()).await.unwrap();
    let Standing::RolledBack { ancestry: Some(ancestry), unknown, .. } = standing else {
        panic!("it was rolled back: {standing:?}")
    };
    assert_eq!(ancestry.cursors[&topic_partition(0)].next, 10);
    assert_eq!(unknown, [topic_partition(1)]);
}

/// K18: CREATE OR REPLACE keeps uuid and properties, and begins a new history.
#[tokio::test]
async fn a_replaced_table_stops_the_writer() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    committed(handle.append(world.flush(ids.next(), 0, 10).await).await.unwrap());
    world.catalog.update(vec![TableUpdate::RemoveSnapshotRef { ref_name: "main".to_owned() }]);
    let Standing::RolledBack { ancestry: None, unknown, .. } = handle.standing(&writer()).await.unwrap()
    else {
        panic!("nothing of it is left")
    };
    assert_eq!(unknown, []);
    let error = handle.append(world.flush(ids.next(), 10, 20).await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ledger);
}

/// K4: all snapshots of the writer have expired and another engine has appended since.
#[tokio::test]
async fn a_writer_goes_on_at_its_cursor_after_all_its_snapshots_expired() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let ours = committed(handle.append(world.flush(ids.next(), 0, 10).await).await.unwrap());
    let mut theirs = world.flush(Ids::new().next(), 0, 4).await;
    theirs.writer = crate::ledger::WriterName::new("other").unwrap();
    committed(handle.append(theirs).await.unwrap());
    world.catalog.update(vec![TableUpdate::RemoveSnapshots { snapshot_ids: vec![ours.snapshot_id] }]);
    let restarted = world.open().await;
    let Standing::Current(ledger) = restarted.standing(&writer()).await.unwrap() else {
        panic!("its parent only expired")
    };
    assert_eq!(ledger.cursors[&topic_partition(0)].next, 10);
    committed(restarted.append(world.flush(Ids::new().next(), 10, 12).await).await.unwrap());
    assert_eq!(world.cursor(0), Some(12));
}

/// K3: between a commit with a lost reply and the check, others commit, and the snapshot expires.
#[tokio::test]
async fn a_commit_is_recognised_by_the_ledger_after_its_snapshot_expired() {
    let world = World::new();
    let handle = world.open().await;
    let flush = world.flush(Ids::new().next(), 0, 10).await;
    let done = committed(handle.append(flush.clone()).await.unwrap());
    let mut theirs = world.flush(Ids::new().next(), 0, 4).await;
    theirs.writer = crate::ledger::WriterName::new("other").unwrap();
    committed(world.open().await.append(theirs).await.unwrap());
    world.catalog.update(vec![TableUpdate::RemoveSnapshots { snapshot_ids: vec![done.snapshot_id] }]);
    // The same flush again, by a process that does not know what became of it.
    let again = committed(world.open().await.append(flush).await.unwrap());
    assert_eq!(again.snapshot_id, done.snapshot_id);
    assert_eq!(world.rows().await, 14);
    world.check().await;
}

/// K19: the cursor property is unset.
#[tokio::test]
async fn a_writer_whose_property_was_removed_stops() {
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let done = committed(handle.append(world.flush(ids.next(), 0, 10).await).await.unwrap());
    let removals = vec![property_name("main", &writer())];
    world.catalog.before_next(vec![TableUpdate::RemoveProperties { removals }]);
    // The cached base still has the property: the head has not moved, and the property comes back with the commit.
    committed(handle.append(world.flush(ids.next(), 10, 20).await).await.unwrap());
    world
        .catalog
        .update(vec![TableUpdate::RemoveProperties { removals: vec![property_name("main", &writer())] }]);
    let restarted = world.open().await;
    assert!(matches!(restarted.standing(&writer()).await.unwrap(), Standing::Missing { .. }));
    let error = restarted.append(world.flush(Ids::new().next(), 0, 20).await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ledger);
    assert_eq!(world.rows().await, 20);
    assert_ne!(done.snapshot_id, world.head());
}

/// K19: the catalog drops properties, and says so or not.
#[tokio::test]
async fn a_catalog_that_drops_properties_is_refused() {
    for fate in [Fate::PropertiesDropped, Fate::PropertiesDroppedInSilence] {
        let world = World::new();
        let handle = world.open().await;
        world.catalog.script([fate]);
        let error = handle.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ledger, "{fate:?}");
        assert!(error.to_string().contains("keeps table properties"), "{error}");
        // It landed: nothing of it is deleted, and a restart stops before a row is doubled.
        assert_eq!(world.rows().await, 10);
        world.check().await;
        let again = world.open().await.append(world.flush(Ids::new().next(), 0, 10).await).await;
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Ledger, "{fate:?}");
        assert_eq!(world.rows().await, 10);
    }
}

/// K20: a branch with later commits of the writer is fast-forwarded into main.
#[tokio::test]
async fn a_branch_that_was_fast_forwarded_into_main_is_not_written_twice() {
    let world = World::new();
    let main = world.open().await;
    let mut ids = Ids::new();
    let first = committed(main.append(world.flush(ids.next(), 0, 10).await).await.unwrap());
    let reference = SnapshotReference::new(first.snapshot_id, SnapshotRetention::branch(None, None, None));
    world.catalog.update(vec![TableUpdate::SetSnapshotRef { ref_name: "dev".to_owned(), reference }]);
    let dev = world.open_on("dev").await;
    // The branch holds rows of the writer and has no cursor: a person decides where it begins.
    let cursors = world.ledger().unwrap().cursors;
    assert_eq!(
        dev.append(world.flush(ids.next(), 10, 20).await).await.unwrap_err().kind(),
        ErrorKind::Ledger
    );
    let change =
        CursorChange { commit_id: ids.next(), writer: writer(), cursors, source: None, replace_all: false };
    dev.set_cursors(change).await.unwrap();
    let later = committed(dev.append(world.flush(ids.next(), 10, 20).await).await.unwrap());
    assert_eq!(world.cursor(0), Some(10));
    world.catalog.update(reset_main(later.snapshot_id));
    let error = main.append(world.flush(ids.next(), 10, 20).await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ledger);
    assert_eq!(world.rows().await, 20);
}
