//! Tables: created, listed, renamed, dropped.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result, ensure};
use firn_table::ErrorKind;
use firn_table::catalog::{PartitionColumn, create_table};
use iceberg::spec::Transform;
use iceberg::{NamespaceIdent, TableIdent};

use super::super::{Outcome, unique};
use super::{CatalogKind, kind_of, same_uuid, set};

/// Names of tables and namespaces that a URL, a path or SQL might trip over.
const ODD_NAMES: [&str; 12] =
    ["a b", "é雪", "50%", "a%2Fb", "a+b", "a?b#c", "it's", "q\"q", "a;b", "a&b=c", "UPPER", "with.dot"];

pub(super) async fn all(kind: &CatalogKind) -> Vec<Outcome> {
    vec![
        ("a created table has the catalog's ids and its properties", created(kind).await),
        ("of racing creations of a table one succeeds", race(kind).await),
        ("tables are listed, and those of other namespaces are not", listed(kind).await),
        ("tables are renamed, also into another namespace", renamed(kind).await),
        ("a dropped table leaves its files, a purged one does not", dropped(kind).await),
        ("a table's metadata file is registered", registered(kind).await),
        ("a table that is not there is not found", unknown(kind).await),
        ("odd names are names", odd_names(kind).await),
    ]
}

async fn created(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let mut new = super::Bench::new_table(bench.ident("t"));
    new.partition = vec![
        PartitionColumn { source: "id".to_owned(), transform: Transform::Bucket(4), name: None },
        PartitionColumn { source: "day".to_owned(), transform: Transform::Identity, name: None },
    ];
    new.properties.insert("owner".to_owned(), "ann ' \" é".to_owned());
    let table = create_table(bench.opened.catalog.as_ref(), new.clone()).await?;
    let metadata = table.metadata();
    ensure!(metadata.properties().get("owner").is_some_and(|owner| owner == "ann ' \" é"), "{metadata:?}");
    ensure!(metadata.properties()["history.expire.max-snapshot-age-ms"] == "3600000", "{metadata:?}");
    let schema = metadata.current_schema();
    let sources = metadata.default_partition_spec().fields().iter().map(|field| field.source_id);
    let ids = ["id", "day"].map(|column| schema.field_id_by_name(column).unwrap_or_default());
    ensure!(sources.eq(ids), "{metadata:?}");
    let loaded = kind.open().await?.catalog.load_table(&bench.ident("t")).await?;
    ensure!(loaded.metadata() == metadata, "loaded {:?}\ncreated {metadata:?}", loaded.metadata());
    ensure!(bench.opened.catalog.table_exists(&bench.ident("t")).await?, "it does not exist");
    let again = create_table(bench.opened.catalog.as_ref(), new).await.err().map(|error| error.kind());
    ensure!(again == Some(ErrorKind::AlreadyExists), "created twice: {again:?}");
    Ok(())
}

async fn race(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let mut racers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (opened, new) = (kind.open().await?, super::Bench::new_table(bench.ident("t")));
        racers.spawn(async move { create_table(opened.catalog.as_ref(), new).await });
    }
    let outcomes = racers.join_all().await;
    let lost: Vec<ErrorKind> = outcomes.iter().filter_map(|one| Some(one.as_ref().err()?.kind())).collect();
    ensure!(lost.len() == outcomes.len() - 1, "{} of {} lost", lost.len(), outcomes.len());
    ensure!(lost.iter().all(|kind| *kind == ErrorKind::AlreadyExists), "{lost:?}");
    let winner = outcomes.into_iter().find_map(Result::ok).context("a winner")?;
    ensure!(bench.load("t").await?.metadata().uuid() == winner.metadata().uuid(), "another one is there");
    Ok(())
}

async fn listed(kind: &CatalogKind) -> Result<()> {
    let (bench, other) = (kind.bench().await?, kind.bench().await?);
    for name in ["b", "a"] {
        bench.table(name).await?;
    }
    other.table("c").await?;
    let listed: BTreeSet<String> = bench
        .opened
        .catalog
        .list_tables(&bench.namespace)
        .await?
        .into_iter()
        .map(|ident| ident.name().to_owned())
        .collect();
    ensure!(listed.iter().eq(["a", "b"]), "{listed:?}");
    Ok(())
}

async fn renamed(kind: &CatalogKind) -> Result<()> {
    let (bench, other) = (kind.bench().await?, kind.bench().await?);
    let catalog = &bench.opened.catalog;
    let table = bench.table("t").await?;
    bench.table("taken").await?;
    let to = TableIdent::new(other.namespace.clone(), "moved".to_owned());
    catalog.rename_table(&bench.ident("t"), &to).await?;
    ensure!(!catalog.table_exists(&bench.ident("t")).await?, "the old name is still there");
    let moved = catalog.load_table(&to).await?;
    ensure!(moved.metadata() == table.metadata(), "{:?}", moved.metadata());
    let taken = kind_of(catalog.rename_table(&to, &bench.ident("taken")).await);
    ensure!(taken == Some(ErrorKind::AlreadyExists), "{taken:?}");
    let missing = kind_of(catalog.rename_table(&bench.ident("t"), &bench.ident("u")).await);
    ensure!(missing == Some(ErrorKind::NotFound), "{missing:?}");
    let nowhere = TableIdent::new(NamespaceIdent::new(unique("missing")), "t".to_owned());
    let nowhere = kind_of(catalog.rename_table(&to, &nowhere).await);
    ensure!(nowhere == Some(ErrorKind::NotFound), "{nowhere:?}");
    // It can be committed to under its new name.
    super::committed(bench.commit(&moved, &same_uuid(&moved), &set("a", "1")).await?)?;
    Ok(())
}

async fn dropped(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let catalog = &bench.opened.catalog;
    let mut files = Vec::new();
    for name in ["dropped", "purged"] {
        files.push(bench.table(name).await?.metadata_location().context("a location")?.to_owned());
    }
    catalog.drop_table(&bench.ident("dropped")).await?;
    catalog.purge_table(&bench.ident("purged")).await?;
    ensure!(bench.opened.stores.exists(&files[0]).await?, "the metadata file went with the table");
    ensure!(!bench.opened.stores.exists(&files[1]).await?, "the metadata file is still there");
    for name in ["dropped", "purged"] {
        ensure!(!catalog.table_exists(&bench.ident(name)).await?, "`{name}` is still there");
        let again = kind_of(catalog.drop_table(&bench.ident(name)).await);
        ensure!(again == Some(ErrorKind::NotFound), "{again:?}");
    }
    Ok(())
}

async fn registered(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let catalog = &bench.opened.catalog;
    let table = bench.table("t").await?;
    let location = table.metadata_location().context("a location")?.to_owned();
    catalog.drop_table(&bench.ident("t")).await?;
    let again = catalog.register_table(&bench.ident("again"), location.clone()).await?;
    ensure!(again.metadata() == table.metadata(), "{:?}", again.metadata());
    let taken = kind_of(catalog.register_table(&bench.ident("again"), location).await);
    ensure!(taken == Some(ErrorKind::AlreadyExists), "{taken:?}");
    Ok(())
}

async fn unknown(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let catalog = &bench.opened.catalog;
    let nowhere = TableIdent::new(NamespaceIdent::new(unique("missing")), "t".to_owned());
    for ident in [bench.ident("t"), nowhere.clone()] {
        ensure!(!catalog.table_exists(&ident).await?, "`{ident}` exists");
        let loaded = kind_of(catalog.load_table(&ident).await);
        ensure!(loaded == Some(ErrorKind::NotFound), "`{ident}`: {loaded:?}");
    }
    let creation = iceberg::TableCreation::builder().name("t".to_owned()).schema(super::schema()).build();
    let created = kind_of(catalog.create_table(nowhere.namespace(), creation).await);
    // The reference server makes it there.
    ensure!(matches!(created, None | Some(ErrorKind::NotFound)), "created in no namespace: {created:?}");
    Ok(())
}

async fn odd_names(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let catalog = &bench.opened.catalog;
    for name in ODD_NAMES {
        let level = name.replace('.', "_");
        let namespace = NamespaceIdent::from_strs([bench.namespace.to_string(), level])?;
        let ident = TableIdent::new(namespace.clone(), name.to_owned());
        let trial = async {
            catalog.create_namespace(&namespace, HashMap::new()).await?;
            let table = create_table(catalog.as_ref(), super::Bench::new_table(ident.clone())).await?;
            super::committed(bench.commit(&table, &same_uuid(&table), &set("a", name)).await?)?;
            let loaded = kind.open().await?.catalog.load_table(&ident).await?;
            ensure!(loaded.metadata().properties().get("a").is_some_and(|value| value == name), "lost");
            let listed = catalog.list_tables(&namespace).await?;
            ensure!(listed == [ident.clone()], "listed as {listed:?}");
            let to = TableIdent::new(namespace.clone(), format!("{name} 2"));
            catalog.rename_table(&ident, &to).await?;
            catalog.drop_table(&to).await?;
            catalog.drop_namespace(&namespace).await?;
            anyhow::Ok(())
        };
        trial.await.with_context(|| format!("`{name}`"))?;
    }
    Ok(())
}
