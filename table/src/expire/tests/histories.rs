//! Random histories: what a live snapshot reaches exists, and nothing else is left.

use iceberg::spec::SnapshotRetention;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::lake::{Change, Lake};
use crate::expire::{ExpireOptions, decide_expiry};

/// How many histories a run looks at.
const HISTORIES: u64 = 16;
/// Snapshots and expiries of each.
const STEPS: usize = 60;

async fn check(lake: &Lake, context: &str) {
    let (reached, stored) = (lake.reached().await, lake.stored().await);
    let missing: Vec<_> = reached.difference(&stored).collect();
    assert!(missing.is_empty(), "{context}: live snapshots miss {missing:?}");
    let left: Vec<_> = stored.difference(&reached).collect();
    assert!(left.is_empty(), "{context}: unreachable and left behind: {left:?}");
}

/// A commit that adds, removes, rewrites or merges.
async fn random_change(lake: &Lake, branch: &str, random: &mut StdRng) -> Change {
    let mut change = Change { add: random.random_range(0..3), ..Change::default() };
    let Some(head) = lake.head(branch) else { return Change { add: 2, ..change } };
    let live = lake.live(head).await;
    if random.random_bool(0.4) {
        let removed = random.random_range(0..=live.len().min(4));
        change.remove = live.choose_multiple(random, removed).cloned().collect();
    }
    if random.random_bool(0.3) {
        change.merge = (0..20).filter(|_| random.random_bool(0.6)).collect();
    }
    change
}

fn random_options(lake: &Lake, random: &mut StdRng) -> ExpireOptions {
    let ids: Vec<i64> = lake.metadata.snapshots().map(|snapshot| snapshot.snapshot_id()).collect();
    let heads: Vec<i64> = lake.refs().iter().filter_map(|name| lake.head(name)).collect();
    match random.random_range(0..3) {
        0 => {
            let count = random.random_range(1..4);
            let named = ids.choose_multiple(random, count).copied();
            ExpireOptions {
                snapshot_ids: named.filter(|id| !heads.contains(id)).collect(),
                max_snapshots: Some(3),
                older_than_ms: Some(0),
                ..ExpireOptions::default()
            }
        }
        1 => ExpireOptions {
            older_than_ms: Some(lake.now_ms() - random.random_range(0..6_000)),
            max_snapshots: Some(random.random_range(1..4)),
            ..ExpireOptions::default()
        },
        _ => ExpireOptions {
            older_than_ms: Some(lake.now_ms() - random.random_range(0..10_000)),
            retain_last: Some(random.random_range(1..6)),
            ..ExpireOptions::default()
        },
    }
}

async fn step(lake: &mut Lake, random: &mut StdRng) {
    let branches = ["main", "main", "main", "side"];
    let branch = branches.choose(random).copied().unwrap_or("main");
    let ids: Vec<i64> = lake.metadata.snapshots().map(|snapshot| snapshot.snapshot_id()).collect();
    let some = ids.choose(random).copied();
    match (random.random_range(0..100), some) {
        (0..60, _) => {
            let branch = if lake.head(branch).is_some() { branch } else { "main" };
            let change = random_change(lake, branch, random).await;
            lake.commit(branch, change).await;
        }
        (60..66, Some(id)) => {
            let name = format!("tag{}", random.random_range(0..3));
            let max_ref_age_ms = random.random_bool(0.5).then(|| random.random_range(500..5_000));
            lake.set_ref(&name, id, SnapshotRetention::Tag { max_ref_age_ms });
        }
        (66..71, Some(id)) => {
            let keep = random.random_bool(0.5).then(|| random.random_range(1..4));
            lake.set_ref("side", id, SnapshotRetention::branch(keep, None, Some(15_000)));
        }
        (71..74, Some(id)) => lake.set_ref("main", id, SnapshotRetention::branch(None, None, None)),
        (74..77, Some(id)) => {
            lake.set_statistics(id).await;
        }
        (77..80, _) => {
            let names = lake.refs();
            if let Some(name) = names.choose(random).filter(|name| *name != "main") {
                lake.update([iceberg::TableUpdate::RemoveSnapshotRef { ref_name: name.clone() }]);
            }
        }
        (_, Some(_)) => {
            let options = random_options(lake, random);
            if let Some(expiry) = decide_expiry(&lake.metadata, &options, lake.now_ms()).unwrap() {
                lake.expire(&expiry).await;
            }
        }
        (_, None) => {}
    }
}

#[tokio::test]
async fn live_snapshots_keep_their_files_and_nothing_else_is_left() {
    for seed in 0..HISTORIES {
        let mut random = StdRng::seed_from_u64(seed);
        let mut lake = Lake::new(&[]);
        for number in 0..STEPS {
            step(&mut lake, &mut random).await;
            if number % 4 == 3 {
                check(&lake, &format!("seed {seed}, step {number}")).await;
            }
        }
        check(&lake, &format!("seed {seed}, at the end")).await;
    }
}

/// Case E1: append A, delete A, append B, expire the middle snapshot by id, read the first.
#[tokio::test]
async fn a_file_that_an_older_snapshot_holds_stays() {
    let mut lake = Lake::new(&[]);
    let first = lake.commit("main", Change { add: 1, ..Change::default() }).await;
    let a = lake.live(first).await;
    let middle = lake.commit("main", Change { remove: a.clone(), ..Change::default() }).await;
    lake.commit("main", Change { add: 1, ..Change::default() }).await;
    let options = ExpireOptions { snapshot_ids: vec![middle], ..ExpireOptions::default() };
    let expiry = decide_expiry(&lake.metadata, &options, lake.now_ms()).unwrap().unwrap();
    let gone = lake.expire(&expiry).await;
    assert!(gone.data_files.is_empty(), "{gone:?}");
    assert!(lake.stores.exists(&lake.live(first).await[0]).await.unwrap());
    check(&lake, "after expiring the middle").await;
}

/// A table that only appends pays for expiry with two manifest lists.
#[tokio::test]
async fn an_append_only_history_loses_lists_alone() {
    let mut lake = Lake::new(&[]);
    for _ in 0..5 {
        lake.commit("main", Change { add: 1, ..Change::default() }).await;
    }
    let options = ExpireOptions { older_than_ms: Some(lake.now_ms()), ..ExpireOptions::default() };
    let expiry = decide_expiry(&lake.metadata, &options, lake.now_ms()).unwrap().unwrap();
    let gone = lake.expire(&expiry).await;
    assert_eq!((gone.data_files.len(), gone.manifests.len(), gone.manifest_lists.len()), (0, 0, 4));
    check(&lake, "after expiring all but the head").await;
}

#[tokio::test]
async fn statistics_go_with_their_snapshot() {
    let mut lake = Lake::new(&[]);
    let first = lake.commit("main", Change { add: 1, ..Change::default() }).await;
    let second = lake.commit("main", Change { add: 1, ..Change::default() }).await;
    let gone_path = lake.set_statistics(first).await;
    let kept_path = lake.set_statistics(second).await;
    let options = ExpireOptions { snapshot_ids: vec![first], ..ExpireOptions::default() };
    let expiry = decide_expiry(&lake.metadata, &options, lake.now_ms()).unwrap().unwrap();
    let gone = lake.expire(&expiry).await;
    assert_eq!(gone.statistics_files, [gone_path]);
    assert!(lake.metadata.statistics_for_snapshot(first).is_none());
    assert!(lake.stores.exists(&kept_path).await.unwrap());
}
