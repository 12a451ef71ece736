//! Namespaces.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use firn_table::ErrorKind;
use iceberg::NamespaceIdent;

use super::super::{Outcome, unique};
use super::{CatalogKind, kind_of};

pub(super) async fn all(kind: &CatalogKind) -> Vec<Outcome> {
    vec![
        ("namespaces nest and are listed by level", nested(kind).await),
        ("a namespace keeps its properties", properties(kind).await),
        ("a namespace that is not empty is not dropped", not_empty(kind).await),
        ("a namespace that is not there is not found", unknown(kind).await),
        ("of racing creations of a namespace one succeeds", race(kind).await),
    ]
}

async fn nested(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let catalog = &bench.opened.catalog;
    let top = bench.namespace.to_string();
    let ident = |levels: &[&str]| NamespaceIdent::from_strs([&[top.as_str()], levels].concat());
    for levels in [&["b"][..], &["b", "c"], &["bb"]] {
        catalog.create_namespace(&ident(levels)?, HashMap::new()).await?;
    }
    let mut below = catalog.list_namespaces(Some(&bench.namespace)).await?;
    below.sort_by_key(ToString::to_string);
    ensure!(below == [ident(&["b"])?, ident(&["bb"])?], "{below:?}");
    let deepest = catalog.list_namespaces(Some(&ident(&["b"])?)).await?;
    ensure!(deepest == [ident(&["b", "c"])?], "{deepest:?}");
    ensure!(catalog.list_namespaces(Some(&ident(&["bb"])?)).await?.is_empty(), "`bb` has children");
    let roots = catalog.list_namespaces(None).await?;
    ensure!(roots.contains(&bench.namespace), "{roots:?}");
    ensure!(roots.iter().all(|root| root.len() == 1), "{roots:?}");
    Ok(())
}

async fn properties(kind: &CatalogKind) -> Result<()> {
    let opened = kind.open().await?;
    let ident = NamespaceIdent::new(unique("kit"));
    let of = |owner: &str| HashMap::from([("owner".to_owned(), owner.to_owned())]);
    opened.catalog.create_namespace(&ident, of("ann ' \" é")).await?;
    let owner = async || {
        let found = opened.catalog.get_namespace(&ident).await?;
        anyhow::Ok(found.properties().get("owner").cloned())
    };
    ensure!(owner().await?.as_deref() == Some("ann ' \" é"), "{:?}", owner().await?);
    opened.catalog.update_namespace(&ident, of("bob")).await?;
    ensure!(owner().await?.as_deref() == Some("bob"), "{:?}", owner().await?);
    let again = opened.catalog.create_namespace(&ident, HashMap::new()).await;
    ensure!(kind_of(again) == Some(ErrorKind::AlreadyExists), "it was created twice");
    Ok(())
}

async fn not_empty(kind: &CatalogKind) -> Result<()> {
    let bench = kind.bench().await?;
    let catalog = &bench.opened.catalog;
    bench.table("t").await?;
    ensure!(catalog.drop_namespace(&bench.namespace).await.is_err(), "it was dropped with its table");
    ensure!(catalog.namespace_exists(&bench.namespace).await?, "it is gone");
    catalog.drop_table(&bench.ident("t")).await?;
    catalog.drop_namespace(&bench.namespace).await?;
    ensure!(!catalog.namespace_exists(&bench.namespace).await?, "it is still there");
    Ok(())
}

async fn unknown(kind: &CatalogKind) -> Result<()> {
    let opened = kind.open().await?;
    let ident = NamespaceIdent::new(unique("missing"));
    ensure!(!opened.catalog.namespace_exists(&ident).await?, "it exists");
    let found = [
        kind_of(opened.catalog.get_namespace(&ident).await),
        kind_of(opened.catalog.list_tables(&ident).await),
        kind_of(opened.catalog.drop_namespace(&ident).await),
    ];
    ensure!(found == [Some(ErrorKind::NotFound); 3], "{found:?}");
    Ok(())
}

async fn race(kind: &CatalogKind) -> Result<()> {
    let ident = NamespaceIdent::new(unique("kit"));
    let mut racers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (opened, ident) = (kind.open().await?, ident.clone());
        racers.spawn(async move { kind_of(opened.catalog.create_namespace(&ident, HashMap::new()).await) });
    }
    let outcomes = racers.join_all().await;
    let losers = outcomes.iter().flatten().count();
    // Two that came at the very same time may both be told that it is there now.
    ensure!(losers < outcomes.len(), "nobody created it: {outcomes:?}");
    ensure!(outcomes.iter().flatten().all(|kind| *kind == ErrorKind::AlreadyExists), "{outcomes:?}");
    ensure!(kind.open().await?.catalog.namespace_exists(&ident).await?, "it is not there");
    Ok(())
}
