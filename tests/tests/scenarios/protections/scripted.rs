//! Protections that matter in a situation that seeds seldom meet: a script makes it.

use firn_table::protections::Protection;
use firn_tests::foreign::{EqualityDelete, Victims};
use firn_tests::sim::life::Destiny;
use firn_tests::sim::network::Kind;
use firn_tests::sim::records::Role;
use firn_tests::sim::stage::Stage;

use super::found::is_noticed_in;

/// The first request of a rewrite is applied after its compactor heard that the connection broke. The next one is
/// refused for certain, and then the catalog cannot be asked any more until the compactor gives up.
async fn late_then_refused(stage: Stage) {
    stage.files(5).await;
    let network = stage.world.network();
    network.order((Role::Compactor, Kind::Commit), "", "applied-late");
    network.order((Role::Compactor, Kind::Commit), "", "throttled");
    let process = stage.process(Role::Compactor, "compactor", Destiny::default());
    let rewriting = tokio::spawn({
        let stage = stage.clone();
        async move { stage.compact(process, &stage.compaction()).await }
    });
    let came = |stage: &Stage| stage.world.network().outstanding_orders() == 0 || rewriting.is_finished();
    stage.until("both requests met their faults, or the first was seen", came).await;
    network.set_chance("hangs", 1.0);
    // It gives up, or it saw that the first request landed: both are right.
    let _ = rewriting.await.unwrap();
    network.calm();
}

/// Without it, a refusal makes the compactor forget that an earlier request may still land, and it deletes the files.
#[test]
fn an_unknown_outcome_that_a_later_refusal_hides_is_noticed() {
    is_noticed_in(late_then_refused, Protection::StickyUnknown, ("C5", 12));
}

/// Rows are deleted by equality while a rewrite of their files is under way.
async fn deleted_by_equality_meanwhile(stage: Stage) {
    stage.files(5).await;
    stage.world.network().order((Role::Compactor, Kind::Put), "compact-", "slow-put");
    let process = stage.process(Role::Compactor, "compactor", Destiny::default());
    let rewriting = tokio::spawn({
        let stage = stage.clone();
        async move { stage.compact(process, &stage.compaction()).await }
    });
    stage.until("the output is on its way", |stage| stage.world.network().outstanding_orders() == 0).await;
    let victims = Victims::Random { files: 3, rows: 2 };
    stage.engine().must(&EqualityDelete { victims }).await.unwrap();
    let report = rewriting.await.unwrap().unwrap().unwrap();
    assert_eq!(report.groups_landed, 1, "{report:?}");
}

/// Without it, the outputs are newer than the delete, which no longer applies to them: the rows come back.
#[test]
fn outputs_that_are_newer_than_a_delete_of_their_rows_are_noticed() {
    is_noticed_in(deleted_by_equality_meanwhile, Protection::StartingSequenceNumber, ("C1", 6));
}
