//! Commits: what lands, what does not, and that the outcome says so.

use std::collections::{HashMap, HashSet};

use anyhow::{Result, ensure};
use firn_table::ErrorKind;
use firn_table::catalog::CommitOutcome;
use firn_table::storage::join;
use futures::TryStreamExt;
use iceberg::spec::{MAIN_BRANCH, Operation, Snapshot, SnapshotReference, SnapshotRetention, Summary};
use iceberg::table::Table;
use iceberg::{TableRequirement, TableUpdate};

use super::super::Outcome;
use super::{CatalogKind, committed, definite, same_uuid, set};

const RACERS: usize = 8;

pub(super) async fn all(kind: &CatalogKind) -> Vec<Outcome> {
    vec![
        ("a commit is what is loaded next, elsewhere too", seen_elsewhere(kind).await),
        ("a commit on a stale base lands where its requirements hold", stale_base(kind).await),
        ("a requirement that does not hold is a conflict", requirement(kind).await),
        ("of racing snapshots on one base one lands", race(kind).await),
        ("no concurrent commit is lost", nothing_lost(kind).await),
        ("a property of 100 KB is kept", long_property(kind).await),
        ("properties are removed", removed_property(kind).await),
        ("a removal of a snapshot that a tag holds meanwhile is a conflict", held_snapshot(kind).await),
        ("a hopeless update is not applied", hopeless(kind).await),
        ("a table that was dropped takes no commit", dropped(kind).await),
        ("a table that was created again takes no commit of the old one", created_again(kind).await),
        ("old metadata files are deleted where the table says so", old_metadata(kind).await),
    ]
}

async fn seen_elsewhere(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let table = bench.table("t").await?;
    let elsewhere = kind.open().await?;
    elsewhere.catalog.load_table(&bench.ident("t")).await?;
    let next = committed(bench.commit(&table, &same_uuid(&table), &set("a", "1")).await?)?;
    ensure!(next.metadata().properties().get("a").is_some_and(|value| value == "1"), "{:?}", next.metadata());
    let loaded = elsewhere.catalog.load_table(&bench.ident("t")).await?;
    ensure!(
        loaded.metadata() == next.metadata(),
        "loaded {:?}\ncommitted {:?}",
        loaded.metadata(),
        next.metadata()
    );
    ensure!(loaded.metadata_location() == next.metadata_location(), "{:?}", loaded.metadata_location());
    Ok(())
}

async fn stale_base(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let base = bench.table("t").await?;
    committed(bench.commit(&base, &same_uuid(&base), &set("a", "1")).await?)?;
    let second = committed(bench.commit(&base, &same_uuid(&base), &set("b", "2")).await?)?;
    let properties = second.metadata().properties();
    ensure!(properties.contains_key("a") && properties.contains_key("b"), "{properties:?}");
    Ok(())
}

async fn requirement(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let base = bench.table("t").await?;
    let first = committed(bench.commit(&base, &same_uuid(&base), &snapshot(&base)).await?)?;
    let outcome = bench.commit(&base, &no_snapshot_yet(&base), &snapshot(&base)).await?;
    ensure!(matches!(outcome, CommitOutcome::Conflict), "{outcome:?}");
    let head = bench.load("t").await?;
    ensure!(head.metadata() == first.metadata(), "the head moved: {:?}", head.metadata());
    Ok(())
}

/// A snapshot as the next head of `main`. Its manifest list is not there: no catalog reads it.
fn snapshot(base: &Table) -> Vec<TableUpdate> {
    let metadata = base.metadata();
    let id = i64::from(rand::random::<u32>()) + 1;
    let snapshot = Snapshot::builder()
        .with_snapshot_id(id)
        .with_parent_snapshot_id(metadata.current_snapshot_id())
        .with_sequence_number(metadata.last_sequence_number() + 1)
        .with_timestamp_ms(metadata.last_updated_ms() + 1)
        .with_schema_id(metadata.current_schema_id())
        .with_manifest_list(join(metadata.location(), &format!("metadata/snap-{id}.avro")))
        .with_summary(Summary { operation: Operation::Append, additional_properties: HashMap::new() })
        .build();
    let reference = SnapshotReference::new(id, SnapshotRetention::branch(None, None, None));
    vec![
        TableUpdate::AddSnapshot { snapshot },
        TableUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.to_owned(), reference },
    ]
}

fn no_snapshot_yet(base: &Table) -> Vec<TableRequirement> {
    let mut requirements = same_uuid(base);
    requirements.push(TableRequirement::RefSnapshotIdMatch {
        r#ref: MAIN_BRANCH.to_owned(),
        snapshot_id: base.metadata().current_snapshot_id(),
    });
    requirements
}

async fn race(kind: &CatalogKind) -> Result<()> {
    const ROUNDS: usize = 3;
    let bench = kind.bench().await?;
    bench.table("t").await?;
    for round in 0..ROUNDS {
        let base = bench.load("t").await?;
        let mut racers = tokio::task::JoinSet::new();
        for _ in 0..RACERS {
            let (opened, base) = (kind.open().await?, base.clone());
            racers.spawn(
                async move { definite(&opened, &base, &no_snapshot_yet(&base), &snapshot(&base)).await },
            );
        }
        let mut winners = Vec::new();
        for outcome in racers.join_all().await {
            match outcome? {
                CommitOutcome::Committed(table) => winners.push(table.metadata().current_snapshot_id()),
                CommitOutcome::Conflict => {}
                other => anyhow::bail!("round {round}: {other:?}"),
            }
        }
        let head = bench.load("t").await?;
        ensure!(winners == [head.metadata().current_snapshot_id()], "round {round}: {winners:?} won");
        ensure!(
            head.metadata().snapshots().len() == round + 1,
            "{} snapshots",
            head.metadata().snapshots().len()
        );
    }
    Ok(())
}

async fn nothing_lost(kind: &CatalogKind) -> Result<()> {
    const EACH: usize = 4;
    let bench = kind.bench().await?;
    let table = bench.table("t").await?;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let (opened, ident, requirements) = (kind.open().await?, bench.ident("t"), same_uuid(&table));
        writers.spawn(async move {
            for round in 0..EACH {
                let updates = set(&format!("kit.{writer}.{round}"), "x");
                loop {
                    let base = opened.catalog.load_table(&ident).await?;
                    match definite(&opened, &base, &requirements, &updates).await? {
                        CommitOutcome::Committed(_) => break,
                        CommitOutcome::Conflict => {}
                        other => anyhow::bail!("{other:?}"),
                    }
                }
            }
            anyhow::Ok(())
        });
    }
    for done in writers.join_all().await {
        done?;
    }
    let head = bench.load("t").await?;
    let kept = head.metadata().properties().keys().filter(|key| key.starts_with("kit.")).count();
    ensure!(kept == 4 * EACH, "{kept} of {} properties", 4 * EACH);
    Ok(())
}

async fn long_property(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let table = bench.table("t").await?;
    let ledger: String =
        (0..100 * 1024).map(|at| char::from(b' ' + u8::try_from(at % 90).unwrap_or(0))).collect();
    committed(bench.commit(&table, &same_uuid(&table), &set("firn.cursor.kit", &ledger)).await?)?;
    let loaded = kind.open().await?.catalog.load_table(&bench.ident("t")).await?;
    let kept = loaded.metadata().properties().get("firn.cursor.kit").map_or(0, String::len);
    ensure!(loaded.metadata().properties().get("firn.cursor.kit") == Some(&ledger), "{kept} bytes are left");
    Ok(())
}

async fn removed_property(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let table = bench.table_with("t", &[("a", "1"), ("b", "2")]).await?;
    let removal = [TableUpdate::RemoveProperties { removals: vec!["a".to_owned()] }];
    committed(bench.commit(&table, &same_uuid(&table), &removal).await?)?;
    let properties = bench.load("t").await?.metadata().properties().clone();
    ensure!(!properties.contains_key("a") && properties.contains_key("b"), "{properties:?}");
    Ok(())
}

async fn held_snapshot(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let empty = bench.table("t").await?;
    let one = committed(bench.commit(&empty, &same_uuid(&empty), &snapshot(&empty)).await?)?;
    let two = committed(bench.commit(&one, &same_uuid(&one), &snapshot(&one)).await?)?;
    let first = one.metadata().current_snapshot_id().unwrap_or_default();
    let reference = SnapshotReference::new(first, SnapshotRetention::Tag { max_ref_age_ms: None });
    let tag = [TableUpdate::SetSnapshotRef { ref_name: "release".to_owned(), reference }];
    committed(bench.commit(&two, &same_uuid(&two), &tag).await?)?;
    let removal = [TableUpdate::RemoveSnapshots { snapshot_ids: vec![first] }];
    let outcome = bench.commit(&two, &same_uuid(&two), &removal).await?;
    ensure!(matches!(outcome, CommitOutcome::Conflict), "{outcome:?}");
    ensure!(bench.load("t").await?.metadata().snapshot_by_id(first).is_some(), "it is gone");
    Ok(())
}

/// Whether a server says so in a way that can be relied on differs: then the outcome is unknown, and nothing landed.
async fn hopeless(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let table = bench.table("t").await?;
    let hopeless = [TableUpdate::SetCurrentSchema { schema_id: 99 }];
    let outcome = bench.commit(&table, &same_uuid(&table), &hopeless).await?;
    ensure!(matches!(outcome, CommitOutcome::Rejected(_) | CommitOutcome::Unknown(_)), "{outcome:?}");
    ensure!(bench.load("t").await?.metadata() == table.metadata(), "it changed the table");
    Ok(())
}

async fn dropped(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let table = bench.table("t").await?;
    bench.opened.catalog.drop_table(&bench.ident("t")).await?;
    let outcome = bench.commit(&table, &same_uuid(&table), &set("a", "1")).await?;
    let CommitOutcome::Rejected(error) = &outcome else { anyhow::bail!("{outcome:?}") };
    ensure!(error.kind() == ErrorKind::NotFound, "{error:?}");
    Ok(())
}

async fn created_again(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let old = bench.table("t").await?;
    bench.opened.catalog.drop_table(&bench.ident("t")).await?;
    let new = bench.table("t").await?;
    let outcome = bench.commit(&old, &same_uuid(&old), &set("a", "1")).await?;
    ensure!(matches!(outcome, CommitOutcome::Conflict | CommitOutcome::Rejected(_)), "{outcome:?}");
    ensure!(bench.load("t").await?.metadata() == new.metadata(), "it changed the new table");
    Ok(())
}

async fn old_metadata(kind: &CatalogKind) -> Result<()> {
    for (enabled, expected) in [("true", 4), ("false", 8)] {
        let bench = kind.bench().await?;
        let properties = [
            ("write.metadata.previous-versions-max", "3"),
            ("write.metadata.delete-after-commit.enabled", enabled),
        ];
        let mut table = bench.table_with("t", &properties).await?;
        for round in 0..7 {
            table = committed(
                bench.commit(&table, &same_uuid(&table), &set("round", &round.to_string())).await?,
            )?;
        }
        let (store, folder) = bench.opened.stores.resolve(&join(table.metadata().location(), "metadata"))?;
        let files: HashSet<String> =
            store.list(Some(&folder)).map_ok(|meta| meta.location.to_string()).try_collect().await?;
        // Hadoop's local files have a companion with their checksum.
        let files = files.iter().filter(|file| file.ends_with(".metadata.json")).count();
        ensure!(
            files == expected,
            "{files} metadata files where deletion is `{enabled}`, expected {expected}"
        );
    }
    Ok(())
}
