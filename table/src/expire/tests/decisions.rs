//! Which snapshots and refs may go.

use iceberg::spec::SnapshotRetention;

use super::lake::{Change, Lake, STEP_MS};
use crate::ErrorKind;
use crate::expire::{ExpireOptions, decide_expiry};

/// A table with snapshots 1 to `count` on `main`.
async fn lake(count: usize, properties: &[(&str, &str)]) -> Lake {
    let mut lake = Lake::new(properties);
    for _ in 0..count {
        lake.commit("main", Change { add: 1, ..Change::default() }).await;
    }
    lake
}

fn gone(lake: &Lake, options: &ExpireOptions) -> Vec<i64> {
    let now_ms = lake.now_ms();
    decide_expiry(&lake.metadata, options, now_ms)
        .unwrap()
        .map_or_else(Vec::new, |expiry| expiry.snapshot_ids)
}

fn older_than(lake: &Lake, snapshot: i64) -> ExpireOptions {
    ExpireOptions { older_than_ms: Some(lake.time_ms(snapshot)), ..ExpireOptions::default() }
}

fn tag(max_ref_age_ms: Option<i64>) -> SnapshotRetention {
    SnapshotRetention::Tag { max_ref_age_ms }
}

#[tokio::test]
async fn snapshots_go_by_age_and_the_head_never() {
    let lake = lake(6, &[]).await;
    assert_eq!(gone(&lake, &ExpireOptions::default()), [0; 0]);
    assert_eq!(gone(&lake, &older_than(&lake, 4)), [1, 2, 3]);
    assert_eq!(gone(&lake, &older_than(&lake, 100)), [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_number_of_snapshots_stays_whatever_their_age() {
    let lake = lake(6, &[("history.expire.min-snapshots-to-keep", "3")]).await;
    assert_eq!(gone(&lake, &older_than(&lake, 100)), [1, 2, 3]);
    let retain_last = |count| ExpireOptions { retain_last: Some(count), ..older_than(&lake, 100) };
    assert_eq!(gone(&lake, &retain_last(5)), [1]);
    assert_eq!(gone(&lake, &retain_last(0)), [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn the_tables_own_age_limit_is_the_default() {
    let lake = lake(6, &[("history.expire.max-snapshot-age-ms", &(2 * STEP_MS).to_string())]).await;
    assert_eq!(gone(&lake, &ExpireOptions::default()), [1, 2, 3]);
}

#[tokio::test]
async fn a_call_removes_no_more_than_it_may_and_the_oldest_first() {
    let lake = lake(6, &[]).await;
    let bounded = ExpireOptions { max_snapshots: Some(2), ..older_than(&lake, 100) };
    assert_eq!(gone(&lake, &bounded), [1, 2]);
}

#[tokio::test]
async fn tags_and_branches_hold_what_they_name() {
    let mut lake = lake(6, &[]).await;
    lake.set_ref("release", 2, tag(None));
    lake.set_ref("audit", 4, SnapshotRetention::branch(Some(2), None, None));
    assert_eq!(gone(&lake, &older_than(&lake, 100)), [1, 5]);
    lake.set_ref("audit", 4, SnapshotRetention::branch(None, Some(STEP_MS * 7 / 2), None));
    assert_eq!(gone(&lake, &older_than(&lake, 100)), [1, 5], "a branch's own age limit wins");
}

#[tokio::test]
async fn a_ref_goes_by_its_own_age_limit_and_main_never() {
    let mut lake = lake(6, &[("history.expire.max-ref-age-ms", &(4 * STEP_MS).to_string())]).await;
    lake.set_ref("old", 1, tag(None));
    lake.set_ref("young", 2, tag(None));
    lake.set_ref("forever", 1, tag(Some(i64::MAX)));
    lake.set_ref("brief", 5, tag(Some(10)));
    let expiry = decide_expiry(&lake.metadata, &older_than(&lake, 100), lake.now_ms()).unwrap().unwrap();
    assert_eq!(expiry.refs, ["brief", "old"]);
    assert_eq!(expiry.snapshot_ids, [3, 4, 5]);

    let later = lake.now_ms() + 1_000_000;
    let expiry = decide_expiry(&lake.metadata, &older_than(&lake, 100), later).unwrap().unwrap();
    assert_eq!(expiry.refs, ["brief", "old", "young"]);
    lake.expire(&expiry).await;
    assert_eq!(lake.refs(), ["forever", "main"]);
    assert_eq!(lake.head("main"), Some(6));
}

#[tokio::test]
async fn named_snapshots_go_alone_and_heads_are_refused() {
    let mut lake = lake(6, &[]).await;
    lake.set_ref("release", 2, tag(Some(1)));
    let named = |ids: &[i64]| ExpireOptions { snapshot_ids: ids.to_vec(), ..ExpireOptions::default() };
    assert_eq!(gone(&lake, &named(&[4, 3])), [3, 4]);
    assert_eq!(gone(&lake, &named(&[77])), [0; 0]);
    for head in [2, 6] {
        let error = decide_expiry(&lake.metadata, &named(&[3, head]), lake.now_ms()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
    }
    let in_use = ExpireOptions { in_use: vec![3], ..named(&[3]) };
    assert_eq!(decide_expiry(&lake.metadata, &in_use, 0).unwrap_err().kind(), ErrorKind::Held);
}

#[tokio::test]
async fn a_snapshot_in_use_stays() {
    let lake = lake(6, &[]).await;
    let options = ExpireOptions { in_use: vec![2], ..older_than(&lake, 100) };
    assert_eq!(gone(&lake, &options), [1, 3, 4, 5]);
}

#[tokio::test]
async fn what_was_rolled_back_goes_by_age_unless_a_ledger_names_it() {
    let mut lake = lake(6, &[]).await;
    lake.set_ref("main", 3, SnapshotRetention::branch(None, None, None));
    assert_eq!(gone(&lake, &older_than(&lake, 6)), [1, 2, 4, 5]);

    let ledger = crate::ledger::Ledger {
        commit_id: crate::ledger::CommitId { instance: uuid::Uuid::now_v7(), counter: 1 },
        snapshot_id: 5,
        sequence_number: 5,
        guarantee: crate::ledger::Guarantee::ExactlyOnce,
        cluster_id: None,
        topic_ids: std::collections::BTreeMap::new(),
        cursors: std::collections::BTreeMap::new(),
    };
    let property = ("firn.cursor.w".to_owned(), ledger.to_text());
    lake.update([iceberg::TableUpdate::SetProperties { updates: [property].into() }]);
    assert_eq!(gone(&lake, &older_than(&lake, 100)), [1, 2, 4, 6]);
}

#[tokio::test]
async fn a_table_that_forbids_it_is_left_alone() {
    for (name, value) in [("gc.enabled", "false"), ("history.expire.max-snapshot-age-ms", "5 days")] {
        let lake = lake(3, &[(name, value)]).await;
        let error = decide_expiry(&lake.metadata, &older_than(&lake, 100), lake.now_ms()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{name}");
    }
}
