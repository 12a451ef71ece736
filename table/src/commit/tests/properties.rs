//! Commits that add no snapshot.

use std::collections::BTreeMap;

use iceberg::TableUpdate;

use super::catalog::Fate;
use super::world::{Ids, World, committed};
use crate::ErrorKind;

fn one(name: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

#[tokio::test]
async fn properties_are_set_and_removed_once_whatever_the_outcome() {
    for fate in [Fate::Answered, Fate::ReplyLost, Fate::Dropped, Fate::ConflictThoughApplied, Fate::Throttled]
    {
        let world = World::new();
        let handle = world.open().await;
        world
            .catalog
            .update(vec![TableUpdate::SetProperties { updates: [("b".to_owned(), "1".to_owned())].into() }]);
        handle.refresh().await.unwrap();
        world.catalog.script([fate]);
        let table = handle.set_properties(one("a", "1"), vec!["b".to_owned()]).await.unwrap();
        for metadata in [table.metadata(), world.catalog.metadata().as_ref()] {
            assert_eq!(metadata.properties().get("a").map(String::as_str), Some("1"), "{fate:?}");
            assert_eq!(metadata.properties().get("b"), None, "{fate:?}");
        }
        committed(handle.append(world.flush(Ids::new().next(), 0, 10).await).await.unwrap());
    }
}

#[tokio::test]
async fn nothing_is_sent_where_the_table_has_the_properties_already() {
    let world = World::new();
    let handle = world.open().await;
    handle.set_properties(one("a", "1"), vec![]).await.unwrap();
    handle.set_properties(one("a", "1"), vec!["b".to_owned()]).await.unwrap();
    assert_eq!(world.catalog.commits(), 1);
}

#[tokio::test]
async fn a_ledger_is_not_set_as_a_property() {
    let world = World::new();
    let handle = world.open().await;
    let error = handle.set_properties(one("firn.cursor.w", "{}"), vec![]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
}
