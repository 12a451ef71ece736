//! One handle, one fault at a time; then two processes.

use std::sync::Arc;
use std::time::Duration;

use firn_table::ErrorKind;
use firn_table::catalog::{CommitCatalog, CommitOutcome};
use firn_table::commit::CommitLimits;
use firn_table::expire::{ExpireOptions, ExpireReport};
use firn_tests::faults::{CommitFault, FaultyCatalog, LoadFault, Schedule};
use iceberg::spec::{SnapshotReference, SnapshotRetention};
use iceberg::{TableRequirement, TableUpdate};

use super::fixture::Fixture;

fn plain(catalog: Arc<dyn CommitCatalog>) -> Arc<dyn CommitCatalog> {
    catalog
}

fn named(ids: &[i64]) -> ExpireOptions {
    ExpireOptions { snapshot_ids: ids.to_vec(), ..ExpireOptions::default() }
}

/// Everything but the head, whatever its age.
fn all() -> ExpireOptions {
    ExpireOptions { older_than_ms: Some(i64::MAX), retain_last: Some(1), ..ExpireOptions::default() }
}

async fn tag(fixture: &Fixture, name: &str, snapshot_id: i64) {
    let table = fixture.handle.refresh().await.unwrap();
    let retention = SnapshotRetention::Tag { max_ref_age_ms: None };
    let update = TableUpdate::SetSnapshotRef {
        ref_name: name.to_owned(),
        reference: SnapshotReference::new(snapshot_id, retention),
    };
    let uuid = TableRequirement::UuidMatch { uuid: table.metadata().uuid() };
    let outcome = fixture.open.catalog.commit(&table, vec![uuid], vec![update]).await;
    assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
}

#[tokio::test]
async fn the_middle_of_a_history_goes_and_its_ends_stay_readable() {
    let mut fixture = Fixture::new(plain).await;
    let (first, a) = fixture.append().await;
    let middle = fixture.rewrite().await;
    fixture.append().await;
    let report = fixture.handle.expire(&named(&[middle])).await.unwrap();
    assert_eq!(report.snapshot_ids, [middle]);
    assert!(report.data_files.is_empty(), "{report:?}");
    assert!(fixture.exists(&a).await);
    assert!(fixture.unreachable().await.is_empty());

    let report = fixture.handle.expire(&named(&[first])).await.unwrap();
    assert_eq!(report.data_files, std::slice::from_ref(&a));
    assert!(!fixture.exists(&a).await);
    assert!(fixture.unreachable().await.is_empty());
}

#[tokio::test]
async fn a_dry_run_tells_what_a_run_then_does() {
    let mut fixture = Fixture::new(plain).await;
    for _ in 0..3 {
        fixture.append().await;
        fixture.rewrite().await;
    }
    let dry = fixture.handle.expire(&ExpireOptions { dry_run: true, ..all() }).await.unwrap();
    assert_eq!(dry.snapshot_ids.len(), 5);
    assert_eq!(dry.data_files.len(), 6);
    assert!(fixture.unreachable().await.is_empty());
    let real = fixture.handle.expire(&all()).await.unwrap();
    assert_eq!(real, dry);
    assert!(fixture.unreachable().await.is_empty());
    assert_eq!(fixture.handle.expire(&all()).await.unwrap(), ExpireReport::default());
}

#[tokio::test]
async fn a_tag_is_held_also_when_it_was_made_meanwhile() {
    let mut fixture = Fixture::new(plain).await;
    let (first, a) = fixture.append().await;
    fixture.rewrite().await;
    let stale = fixture.handle.table();
    tag(&fixture, "release", first).await;

    let uuid = TableRequirement::UuidMatch { uuid: stale.metadata().uuid() };
    let remove = TableUpdate::RemoveSnapshots { snapshot_ids: vec![first] };
    let outcome = fixture.open.catalog.commit(&stale, vec![uuid], vec![remove]).await;
    assert!(matches!(outcome, CommitOutcome::Conflict), "{outcome:?}");
    let report = fixture.handle.expire(&all()).await.unwrap();
    assert!(report.snapshot_ids.is_empty(), "{report:?}");
    assert!(fixture.exists(&a).await);
}

#[tokio::test]
async fn an_expiry_whose_reply_is_lost_or_late_deletes_what_is_unreachable() {
    for fault in [
        CommitFault::ReplyLost,
        CommitFault::ServerError,
        CommitFault::AppliedThenConflict,
        CommitFault::AppliedLate { after: 0 },
        CommitFault::Throttled { retry_after: Some(Duration::from_millis(1)) },
    ] {
        let schedule = Schedule::none();
        let faults = schedule.clone();
        let wrap = |catalog| -> Arc<dyn CommitCatalog> { Arc::new(FaultyCatalog::new(catalog, faults)) };
        let mut fixture = Fixture::new(wrap).await;
        let (_, a) = fixture.append().await;
        fixture.rewrite().await;
        schedule.then(fault.clone());
        let report = fixture.handle.expire(&all()).await.unwrap();
        assert_eq!(schedule.injected(), std::slice::from_ref(&fault));
        assert_eq!(report.data_files, [a], "{fault:?}");
        assert!(fixture.unreachable().await.is_empty(), "{fault:?}");
    }
}

#[tokio::test]
async fn nothing_is_deleted_while_the_outcome_is_unknown() {
    let (commits, loads) = (Schedule::none(), Schedule::none());
    let faults = (commits.clone(), loads.clone());
    let wrap = move |catalog| -> Arc<dyn CommitCatalog> {
        Arc::new(FaultyCatalog::new(catalog, faults.0).with_load_faults(faults.1))
    };
    let mut fixture = Fixture::new(wrap).await;
    let (_, a) = fixture.append().await;
    fixture.rewrite().await;
    let limits = CommitLimits {
        min_wait: Duration::from_millis(1),
        max_wait: Duration::from_millis(5),
        deadline: Some(Duration::from_millis(300)),
        ..fixture.handle.limits().clone()
    };
    commits.storm(&CommitFault::ReplyLost, 1);
    loads.storm(&LoadFault::ServerError, 10_000);
    let error = fixture.handle.clone().with_limits(limits).expire(&all()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownOutcome, "{error}");
    assert!(fixture.exists(&a).await);
    loads.quiet();
    fixture.unreachable().await;
}

#[tokio::test]
async fn expiry_and_appends_of_two_processes_get_in_each_others_way_without_harm() {
    let mut fixture = Fixture::new(plain).await;
    for _ in 0..5 {
        fixture.append().await;
    }
    let other = firn_table::commit::TableHandle::open(
        fixture.open.catalog.clone(),
        fixture.open.stores.clone(),
        fixture.handle.table().identifier().clone(),
        "main",
    )
    .await
    .unwrap();
    let expiring = tokio::spawn(async move {
        let mut removed = 0;
        for _ in 0..20 {
            let options = ExpireOptions { max_snapshots: Some(2), retain_last: Some(2), ..all() };
            removed += other.expire(&options).await.unwrap().snapshot_ids.len();
        }
        removed
    });
    for _ in 0..20 {
        fixture.append().await;
    }
    let removed = expiring.await.unwrap();
    fixture.handle.refresh().await.unwrap();
    let left = fixture.handle.expire(&all()).await.unwrap().snapshot_ids.len();
    assert_eq!(removed + left, 24);
    assert!(fixture.unreachable().await.is_empty());
}

#[tokio::test]
async fn a_snapshot_that_is_not_there_or_is_a_head_is_refused() {
    let mut fixture = Fixture::new(plain).await;
    let (head, _) = fixture.append().await;
    let unknown = fixture.handle.expire(&named(&[77])).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    let refused = fixture.handle.expire(&named(&[head])).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Configuration);
}
