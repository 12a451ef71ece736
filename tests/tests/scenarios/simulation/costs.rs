//! What a commit costs, at the beginning and after very many.

use std::collections::HashMap;

use firn_tests::checks::SnapshotContents;
use firn_tests::sim::actors::WriterPlan;
use firn_tests::sim::meter::Traffic;
use firn_tests::sim::network::Kind;
use firn_tests::sim::records::Role;
use firn_tests::sim::stage::{self, Stage};

/// Appends of one file each.
const APPENDS: i64 = 2_000;
/// Appends after which costs are taken for the first time: the writer has expired nothing yet.
const EARLY: i64 = 10;
/// Appends over which costs are taken together: several expiries and merges of manifests.
const WINDOW: i64 = 200;
/// Kinds of requests that a writer sends.
const KINDS: [Kind; 4] = [Kind::Load, Kind::Get, Kind::Put, Kind::Delete];

fn traffic(stage: &Stage) -> [Traffic; 4] {
    KINDS.map(|kind| stage.world.network().meter().so_far(Role::Writer, kind))
}

/// Appends one file after the other; returns what the writer sent meanwhile.
async fn append(stage: &Stage, from: i64, to: i64) -> [Traffic; 4] {
    let before = traffic(stage);
    for next in from + 1..=to {
        stage.produce(0, 1);
        stage.committed(0, next).await;
    }
    let mut sent = traffic(stage);
    for (sent, before) in sent.iter_mut().zip(before) {
        sent.requests -= before.requests;
        sent.bytes -= before.bytes;
    }
    sent
}

async fn manifests(stage: &Stage) -> usize {
    let table = stage.table();
    let head = table.metadata().current_snapshot().unwrap();
    SnapshotContents::load(&table, head, &mut HashMap::new()).await.unwrap().manifests.len()
}

#[test]
fn the_two_thousandth_append_costs_about_what_the_tenth_did() {
    stage::play(|stage| async move {
        let plan = WriterPlan { keep_snapshots: Some(50), ..stage.plan() };
        let writer = stage.writer("writer", plan);
        append(&stage, 0, EARLY).await;
        let early = append(&stage, EARLY, EARLY + WINDOW).await;
        append(&stage, EARLY + WINDOW, APPENDS - WINDOW).await;
        let late = append(&stage, APPENDS - WINDOW, APPENDS).await;
        for (kind, (early, late)) in KINDS.iter().zip(early.iter().zip(&late)) {
            println!("{kind:?}: {early:?} in {WINDOW} appends after {EARLY}, {late:?} up to {APPENDS}");
            assert!(late.requests <= early.requests * 3 / 2, "{kind:?}: {early:?}, later {late:?}");
            assert!(late.bytes <= early.bytes * 2, "{kind:?}: {early:?}, later {late:?}");
        }
        let manifests = manifests(&stage).await;
        println!("{manifests} manifests");
        assert!(manifests <= 40, "{manifests} manifests");
        writer.stop().await.unwrap();
    });
}
