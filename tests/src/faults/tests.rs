//! Each fault does what its name says.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use firn_table::catalog::{
    CatalogOptions, CommitCatalog as _, CommitOutcome, IfMissing, NewTable, OpenCatalog, create_table,
    open_catalog, parse_table_ident,
};
use firn_table::storage::Stores;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
use iceberg::table::Table;
use iceberg::{Catalog, TableRequirement, TableUpdate};

use super::*;

struct Fixture {
    _folder: tempfile::TempDir,
    open: OpenCatalog,
    table: Table,
}

impl Fixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = CatalogOptions {
            uri: format!("sqlite:{}", folder.path().join("catalog.db").display()),
            warehouse: Some(folder.path().join("data").display().to_string()),
            if_missing: IfMissing::Create,
            ..CatalogOptions::default()
        };
        let open = open_catalog(&options, None).await.unwrap();
        let column = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into();
        let schema = Schema::builder().with_fields([column]).build().unwrap();
        let new = NewTable::new(parse_table_ident("db.t").unwrap(), schema);
        let table = create_table(open.catalog.as_ref(), new).await.unwrap();
        Self { _folder: folder, open, table }
    }

    fn faulty(&self, faults: impl IntoIterator<Item = Option<CommitFault>>) -> FaultyCatalog {
        FaultyCatalog::new(self.open.catalog.clone(), Schedule::script(faults))
    }

    async fn commit(&self, catalog: &FaultyCatalog, key: &str) -> CommitOutcome {
        let uuid = TableRequirement::UuidMatch { uuid: self.table.metadata().uuid() };
        let set = HashMap::from([(key.to_owned(), "1".to_owned()), (format!("x.{key}"), "1".to_owned())]);
        catalog.commit(&self.table, vec![uuid], vec![TableUpdate::SetProperties { updates: set }]).await
    }

    async fn landed(&self, key: &str) -> bool {
        let table = self.open.catalog.load_table(self.table.identifier()).await.unwrap();
        table.metadata().properties().contains_key(key)
    }
}

#[tokio::test]
async fn commits_land_or_not_as_the_fault_says() {
    let fixture = Fixture::new().await;
    let throttled = CommitFault::Throttled { retry_after: Some(Duration::from_secs(3)) };
    for (fault, outcome, landed) in [
        (None, "Committed", true),
        (Some(CommitFault::ReplyLost), "Unknown", true),
        (Some(CommitFault::AppliedThenConflict), "Conflict", true),
        (Some(throttled), "NotApplied", false),
        (Some(CommitFault::ServerError), "Unknown", false),
    ] {
        let name = format!("{fault:?}");
        let schedule = Schedule::script([fault.clone()]);
        let catalog = FaultyCatalog::new(fixture.open.catalog.clone(), schedule.clone());
        let got = format!("{:?}", fixture.commit(&catalog, &name).await);
        assert!(got.starts_with(outcome), "{name}: {got}");
        assert_eq!(fixture.landed(&name).await, landed, "{name}");
        assert_eq!(schedule.injected(), Vec::from_iter(fault));
    }
}

#[tokio::test]
async fn a_late_commit_arrives_after_its_number_of_requests() {
    let fixture = Fixture::new().await;
    let catalog = fixture.faulty([Some(CommitFault::AppliedLate { after: 1 })]);
    assert!(matches!(fixture.commit(&catalog, "late").await, CommitOutcome::Unknown(_)));
    catalog.load_table(fixture.table.identifier()).await.unwrap();
    assert!(!fixture.landed("late").await);
    catalog.load_table(fixture.table.identifier()).await.unwrap();
    assert!(fixture.landed("late").await);

    let catalog = fixture.faulty([Some(CommitFault::AppliedLate { after: 100 })]);
    assert!(matches!(fixture.commit(&catalog, "released").await, CommitOutcome::Unknown(_)));
    let outcomes = catalog.release_late().await;
    assert!(matches!(outcomes.as_slice(), [CommitOutcome::Committed(_)]), "{outcomes:?}");
    assert!(fixture.landed("released").await);
    assert_eq!(catalog.commit_requests(), 1);
}

#[tokio::test]
async fn hangs_have_no_end_of_their_own() {
    let fixture = Fixture::new().await;
    for (fault, landed) in [(CommitFault::Hangs, false), (CommitFault::AppliedThenHangs, true)] {
        let key = format!("{fault:?}");
        let catalog = fixture.faulty([Some(fault)]);
        let answer = tokio::time::timeout(Duration::from_millis(300), fixture.commit(&catalog, &key)).await;
        assert!(answer.is_err());
        assert_eq!(fixture.landed(&key).await, landed, "{key}");
    }
}

#[tokio::test]
async fn properties_and_tables_vanish() {
    let fixture = Fixture::new().await;
    let drops = CommitFault::DropsProperties { prefix: "x.".to_owned() };
    let catalog = fixture.faulty([Some(drops), Some(CommitFault::TableDropped)]);
    assert!(matches!(fixture.commit(&catalog, "a").await, CommitOutcome::Committed(_)));
    assert!(fixture.landed("a").await);
    assert!(!fixture.landed("x.a").await);
    assert!(matches!(fixture.commit(&catalog, "b").await, CommitOutcome::Rejected(_)));
}

#[tokio::test]
async fn loads_fail_as_scripted() {
    let fixture = Fixture::new().await;
    let loads = Schedule::script([Some(LoadFault::ServerError), None]);
    let catalog = fixture.faulty([]).with_load_faults(loads);
    assert!(catalog.load_table(fixture.table.identifier()).await.is_err());
    assert!(catalog.load_table(fixture.table.identifier()).await.is_ok());
}

#[tokio::test]
async fn puts_fail_as_scripted() {
    let faults = [StoreFault::Fails, StoreFault::ReplyLost, StoreFault::HalfWay];
    let schedule = Schedule::script(faults.map(Some));
    let plain = Stores::new(HashMap::new());
    let stores = plain.clone().with_wrapper(store_wrapper(Operation::Put, ".parquet", schedule.clone()));
    stores.write("memory://w/a.avro", Bytes::from_static(b"avro")).await.unwrap();
    for (name, left) in [("a", None), ("b", Some(&b"whole"[..])), ("c", Some(b"wh"))] {
        let location = format!("memory://w/{name}.parquet");
        assert!(stores.write(&location, Bytes::from_static(b"whole")).await.is_err(), "{name}");
        let found = plain.read(&location).await.ok();
        assert_eq!(found, left.map(Bytes::from_static), "{name}");
    }
    stores.write("memory://w/d.parquet", Bytes::from_static(b"whole")).await.unwrap();
    assert_eq!(schedule.injected().len(), 3);
}

#[tokio::test]
async fn deletes_fail_as_scripted() {
    let schedule = Schedule::script([Some(StoreFault::Fails)]);
    let plain = Stores::new(HashMap::new());
    let stores = plain.clone().with_wrapper(store_wrapper(Operation::Delete, "", schedule));
    stores.write("memory://w/a", Bytes::new()).await.unwrap();
    assert!(stores.delete("memory://w/a").await.is_err());
    assert!(plain.exists("memory://w/a").await.unwrap());
    stores.delete("memory://w/a").await.unwrap();
    assert!(!plain.exists("memory://w/a").await.unwrap());
}

#[tokio::test]
async fn an_upload_in_parts_fails_half_way_and_leaves_nothing() {
    let schedule = Schedule::script([Some(StoreFault::HalfWay)]);
    let stores = Stores::new(HashMap::new()).with_wrapper(store_wrapper(Operation::Multipart, "", schedule));
    let io = stores.file_io();
    for expected in [false, true] {
        let mut writer = io.new_output("memory://w/large").unwrap().writer().await.unwrap();
        let mut written = Ok(());
        for _ in 0..3 {
            written = written.and(writer.write(Bytes::from(vec![0; 6 << 20])).await);
        }
        let closed = written.and(writer.close().await);
        assert_eq!(closed.is_ok(), expected);
        assert_eq!(stores.exists("memory://w/large").await.unwrap(), expected);
    }
}

#[test]
fn a_seed_draws_the_same_faults_again() {
    let draw = |seed| {
        let schedule =
            Schedule::seeded(seed, [(CommitFault::ReplyLost, 0.3), (CommitFault::ServerError, 0.2)]);
        (0..200).map(|_| schedule.next()).collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    let lost = draw(7).iter().filter(|fault| **fault == Some(CommitFault::ReplyLost)).count();
    assert!((30..=90).contains(&lost), "{lost}");
}

#[test]
fn a_storm_ends_and_quiet_ends_everything() {
    let schedule = Schedule::seeded(1, [(CommitFault::ServerError, 1.0)]);
    schedule.then(CommitFault::ReplyLost);
    schedule.storm(&CommitFault::Hangs, 2);
    let drawn: Vec<_> = (0..4).map(|_| schedule.next().unwrap()).collect();
    let expected = [CommitFault::ReplyLost, CommitFault::Hangs, CommitFault::Hangs, CommitFault::ServerError];
    assert_eq!(drawn, expected);
    schedule.quiet();
    assert_eq!(schedule.next(), None);
}
