//! What follows from each outcome of a request.

use std::time::Duration;

use super::catalog::Fate;
use super::world::{Ids, World, committed, fast, overtaken, topic_partition};
use crate::ErrorKind;
use crate::commit::CommitLimits;

/// K1: the reply is lost in every way in which it can be, though the commit landed.
#[tokio::test]
async fn a_commit_whose_reply_is_lost_is_found_and_not_repeated() {
    for fate in [Fate::ReplyLost, Fate::ConflictThoughApplied, Fate::AnsweredWithOldTable] {
        let world = World::new();
        let handle = world.open().await;
        let mut ids = Ids::new();
        committed(handle.append(world.flush(ids.next(), 0, 10).await).await.unwrap());
        world.catalog.script([fate]);
        let done = committed(handle.append(world.flush(ids.next(), 10, 30).await).await.unwrap());
        assert_eq!(done.snapshot_id, world.head(), "{fate:?}");
        assert_eq!((world.rows().await, world.cursor(0)), (30, Some(30)), "{fate:?}");
        assert_eq!(world.catalog.metadata().snapshots().len(), 2, "{fate:?}");
        assert_eq!(world.leftovers().await, Vec::<String>::new(), "{fate:?}");
        committed(handle.append(world.flush(ids.next(), 30, 31).await).await.unwrap());
        assert_eq!(world.rows().await, 31, "{fate:?}");
    }
}

#[tokio::test]
async fn a_request_that_was_lost_is_sent_again_and_its_files_are_kept() {
    let world = World::new();
    let handle = world.open().await;
    world.catalog.script([Fate::Dropped, Fate::Dropped]);
    let done = committed(handle.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap());
    assert_eq!((done.attempts, done.conflicts), (3, 0));
    assert_eq!(world.rows().await, 10);
    world.check().await;
}

/// K2: a request that is forwarded after a restart does not land on what came in between.
#[tokio::test]
async fn a_request_that_lands_after_the_next_process_took_over_changes_nothing() {
    let world = World::new();
    let first = world.open().await.with_limits(CommitLimits { deadline: Some(Duration::ZERO), ..fast() });
    world.catalog.script([Fate::Late]);
    let error = first.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownOutcome);
    let second = world.open().await;
    committed(second.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap());
    assert_eq!(world.catalog.land_late(), 0);
    assert_eq!((world.rows().await, world.cursor(0)), (10, Some(10)));
    world.check().await;
}

/// K22: the old owner's request lands first; the new owner's flush is overtaken.
#[tokio::test]
async fn a_request_that_lands_before_the_new_owner_commits_overtakes_it() {
    let world = World::new();
    let first = world.open().await.with_limits(CommitLimits { deadline: Some(Duration::ZERO), ..fast() });
    world.catalog.script([Fate::Late]);
    first.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap_err();
    let second = world.open().await;
    assert_eq!(world.catalog.land_late(), 1);
    let mut ids = Ids::new();
    let flush = world.flush(ids.next(), 0, 7).await;
    let path = flush.files[0].file.file_path().to_owned();
    let cursors = overtaken(second.append(flush).await.unwrap());
    assert_eq!(cursors[&topic_partition(0)], 10);
    assert!(!world.objects().await.contains(&path), "an unsent flush leaves no file");
    committed(second.append(world.flush(ids.next(), 10, 12).await).await.unwrap());
    assert_eq!((world.rows().await, world.cursor(0)), (12, Some(12)));
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_request_that_lands_while_it_is_sent_again_is_found() {
    let world = World::new();
    let handle = world.open().await;
    world.catalog.script([Fate::Late]);
    let flush = world.flush(Ids::new().next(), 0, 10).await;
    let mut append = Box::pin(handle.append(flush));
    // Until the first request was answered; then it lands before the second one.
    while world.catalog.commits() == 0 {
        futures::future::poll_immediate(&mut append).await.ok_or(()).unwrap_err();
    }
    world.catalog.land_late();
    committed(append.await.unwrap());
    assert_eq!((world.rows().await, world.catalog.metadata().snapshots().len()), (10, 1));
    world.check().await;
}

/// K10: the catalog accepts the connection and never answers.
#[tokio::test]
async fn a_catalog_that_hangs_is_an_unknown_outcome_when_the_deadline_fires() {
    for fate in [Fate::Hangs, Fate::HangsApplied] {
        let world = World::new();
        let limits = CommitLimits { request_timeout: Duration::from_millis(20), ..fast() };
        let handle = world.open().await.with_limits(limits);
        world.catalog.script([fate]);
        let flush = world.flush(Ids::new().next(), 0, 10).await;
        committed(handle.append(flush).await.unwrap());
        assert_eq!((world.rows().await, world.catalog.metadata().snapshots().len()), (10, 1), "{fate:?}");
        world.check().await;
    }
}

#[tokio::test]
async fn a_catalog_that_hangs_for_good_leaves_everything_as_it_is() {
    let world = World::new();
    let limits = CommitLimits {
        request_timeout: Duration::from_millis(10),
        deadline: Some(Duration::from_millis(50)),
        ..fast()
    };
    let handle = world.open().await.with_limits(limits);
    world.catalog.script([Fate::Hangs; 100]);
    let flush = world.flush(Ids::new().next(), 0, 10).await;
    let path = flush.files[0].file.file_path().to_owned();
    let error = handle.append(flush).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownOutcome, "{error}");
    assert!(world.objects().await.contains(&path), "it may have landed");
    let trouble = handle.trouble().unwrap();
    assert!(trouble.failures > 1 && trouble.reason.contains("not answered"), "{trouble:?}");
    // The catalog is well again: so is the table.
    world.catalog.calm();
    let handle = handle.with_limits(fast());
    committed(handle.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap());
    assert_eq!(handle.trouble(), None);
}

#[tokio::test]
async fn a_throttled_commit_waits_as_told_and_lands() {
    let world = World::new();
    let handle = world.open().await;
    world.catalog.script([Fate::Throttled; 5]);
    let done = committed(handle.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap());
    assert_eq!(done.attempts, 6);
    // The request was good for the same base: one manifest list.
    assert_eq!(world.leftovers().await, Vec::<String>::new());
    assert_eq!(world.meter.writes(), 1 + 2);
}

#[tokio::test]
async fn a_rejected_commit_leaves_no_file() {
    let world = World::new();
    let handle = world.open().await;
    world.catalog.script([Fate::Rejected]);
    let error = handle.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert_eq!(world.objects().await.len(), 0);
}

#[tokio::test]
async fn a_rejected_commit_after_an_unknown_one_deletes_nothing() {
    let world = World::new();
    let handle = world.open().await;
    world.catalog.script([Fate::Late, Fate::Rejected]);
    let error = handle.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownOutcome);
    assert_eq!(world.catalog.land_late(), 1);
    assert_eq!(world.rows().await, 10);
    world.check().await;
}

#[tokio::test]
async fn ten_definite_conflicts_in_a_row_leave_no_file() {
    let world = World::new();
    let handle = world.open().await.with_limits(CommitLimits { max_conflicts: 9, ..fast() });
    world.catalog.script([Fate::Conflict; 10]);
    let error = handle.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(world.catalog.commits(), 10);
    assert_eq!(world.objects().await.len(), 0);
}

#[tokio::test]
async fn a_conflict_is_re_based_and_keeps_both_commits() {
    let world = World::new();
    let (ours, theirs) = (world.open().await, world.open().await);
    let (mut a, mut b) = (Ids::new(), Ids::new());
    committed(ours.append(world.flush_of(a.next(), &[(0, 0, 10)]).await).await.unwrap());
    // The other process still knows the empty table.
    let done = committed(theirs.append(world.flush_of(b.next(), &[(1, 0, 5)]).await).await.unwrap());
    assert_eq!((done.attempts, done.conflicts), (2, 1));
    assert_eq!((world.rows().await, world.cursor(0), world.cursor(1)), (15, Some(10), Some(5)));
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_store_that_fails_is_tried_again_before_anything_is_sent() {
    let world = World::new();
    let handle = world.open().await;
    let flush = world.flush(Ids::new().next(), 0, 10).await;
    world.meter.fail_writes(3);
    let done = committed(handle.append(flush).await.unwrap());
    assert_eq!(done.attempts, 1);
    assert_eq!(world.leftovers().await, Vec::<String>::new());
}

/// The caller goes away at every point of the commit; the same flush is then tried again by the same process.
#[tokio::test]
async fn a_caller_that_goes_away_at_any_point_can_come_back() {
    for polls in 1.. {
        let world = World::new();
        let handle = world.open().await;
        let flush = world.flush(Ids::new().next(), 0, 10).await;
        let mut first = Box::pin(handle.append(flush.clone()));
        let mut finished = false;
        for _ in 0..polls {
            if let Some(outcome) = futures::future::poll_immediate(&mut first).await {
                committed(outcome.unwrap());
                finished = true;
                break;
            }
        }
        drop(first);
        committed(handle.append(flush).await.unwrap());
        assert_eq!((world.rows().await, world.cursor(0)), (10, Some(10)), "after {polls} polls");
        assert_eq!(world.catalog.metadata().snapshots().len(), 1, "after {polls} polls");
        world.check().await;
        if finished {
            assert!(polls > 5, "there are several points at which a caller can go away");
            return;
        }
    }
}

/// After an unknown outcome that was given up, a second call that is overtaken deletes nothing either.
#[tokio::test]
async fn an_unknown_outcome_is_remembered_by_later_calls() {
    let world = World::new();
    let handle = world.open().await.with_limits(CommitLimits { deadline: Some(Duration::ZERO), ..fast() });
    world.catalog.script([Fate::Dropped]);
    let flush = world.flush(Ids::new().next(), 0, 10).await;
    let path = flush.files[0].file.file_path().to_owned();
    handle.append(flush.clone()).await.unwrap_err();
    committed(world.open().await.append(world.flush(Ids::new().next(), 0, 3).await).await.unwrap());
    overtaken(handle.with_limits(fast()).append(flush).await.unwrap());
    assert!(world.objects().await.contains(&path));
    world.check().await;
}

/// K15: the table is dropped between flush and commit, or dropped and created again.
#[tokio::test]
async fn a_table_that_was_dropped_or_created_again_stops_the_commit() {
    for (recreate, kind) in [(false, ErrorKind::NotFound), (true, ErrorKind::Ledger)] {
        let world = World::new();
        let handle = world.open().await;
        let flush = world.flush(Ids::new().next(), 0, 10).await;
        if recreate {
            world.catalog.recreate()
        } else {
            world.catalog.drop_it()
        }
        let error = handle.append(flush).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        if recreate {
            assert_eq!(world.catalog.metadata().snapshots().len(), 0);
        }
        assert_eq!(handle.refresh().await.unwrap_err().kind(), kind);
    }
}
