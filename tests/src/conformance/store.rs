//! The kit for stores.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use firn_table::ErrorKind;
use firn_table::storage::{Stores, join};
use futures::{StreamExt, TryStreamExt};
use iceberg::io::FileIO;
use object_store::path::Path;
use object_store::{PutMode, PutOptions};

use super::{all_hold, unique};

/// Keys that a store must carry literally: percent signs, spaces, `=`, unicode and what URLs treat specially.
const KEYS: [&str; 13] = [
    "plain.parquet",
    "day=2026-01-02/id_bucket=3/a.parquet",
    "s=a%2Fb/a.parquet",
    "s=a%20b/100%.parquet",
    "s=a b/c d .parquet",
    "s=Zürich/雪.parquet",
    "s=a+b&c?d/x#y.parquet",
    "s=a,b;c:d@e$f!g'h(i)*.parquet",
    "s={a}[b]~`^|/\"q\".parquet",
    "s=<x>/a.parquet",
    "s=./a.parquet",
    "s=../a.parquet",
    "s=/a.parquet",
];
/// More than one page of an S3 listing.
const MANY: usize = 1_100;
const RACERS: usize = 16;

/// A kind of store, for the kit.
#[derive(Debug, Clone)]
pub struct StoreKind {
    /// For messages.
    pub name: String,
    /// The stores.
    pub stores: Stores,
    /// A folder in one of them, for the kit.
    pub base: String,
}

impl StoreKind {
    /// A new folder for a behaviour.
    fn folder(&self) -> String {
        join(&self.base, &unique("kit"))
    }

    fn io(&self) -> FileIO {
        self.stores.file_io()
    }
}

/// Runs the kit.
pub async fn conforms(kind: &StoreKind) -> Result<()> {
    let outcomes = vec![
        ("keys are carried as they are", keys(kind).await),
        ("a listing has every object, over all pages", many(kind).await),
        ("of racing creations one wins", create_race(kind).await),
        ("an object that is there is not created again", create_once(kind).await),
        ("what is not there is not found", missing(kind).await),
        ("an object is replaced whole", replaced(kind).await),
        ("ranges are exact", ranges(kind).await),
        ("large objects go up in parts", in_parts(kind).await),
        ("an upload that is given up leaves no object", given_up(kind).await),
        ("a folder is deleted, its neighbour is not", prefix(kind).await),
        ("many objects are deleted at once", delete_all(kind).await),
        ("an empty object is an object", empty(kind).await),
    ];
    all_hold(&kind.name, outcomes)
}

async fn keys(kind: &StoreKind) -> Result<()> {
    let (folder, io) = (kind.folder(), kind.io());
    for key in KEYS {
        let location = join(&folder, key);
        let trial = async {
            ensure!(!kind.stores.exists(&location).await?, "it is there before it was written");
            kind.stores.write(&location, Bytes::from(key)).await?;
            ensure!(kind.stores.exists(&location).await?, "it is not there");
            ensure!(kind.stores.read(&location).await? == key, "it is another");
            let input = io.new_input(&location)?;
            ensure!(input.metadata().await?.size == key.len() as u64, "its size is another");
            let tail = input.reader().await?.read(1..key.len() as u64).await?;
            ensure!(tail == key[1..], "its tail is another");
            anyhow::Ok(())
        };
        trial.await.with_context(|| format!("`{key}`"))?;
    }
    let (store, prefix) = kind.stores.resolve(&folder)?;
    let listed: BTreeSet<String> =
        store.list(Some(&prefix)).map_ok(|meta| meta.location.to_string()).try_collect().await?;
    let written: Result<BTreeSet<String>> =
        KEYS.iter().map(|key| Ok(kind.stores.resolve(&join(&folder, key))?.1.to_string())).collect();
    let written = written?;
    let (more, less): (Vec<_>, Vec<_>) =
        (listed.difference(&written).collect(), written.difference(&listed).collect());
    ensure!(listed == written, "listed besides: {more:?}, not listed: {less:?}");
    let failed = kind.stores.delete_all(KEYS.iter().map(|key| join(&folder, key)).collect()).await;
    ensure!(failed.is_empty(), "not deleted: {failed:?}");
    ensure!(store.list(Some(&prefix)).next().await.is_none(), "something is left");
    Ok(())
}

async fn many(kind: &StoreKind) -> Result<()> {
    let folder = kind.folder();
    let (store, prefix) = kind.stores.resolve(&folder)?;
    let name =
        |number: usize| join(&folder, &format!("{}/{}-{number}.parquet", number % 3, "n".repeat(number % 7)));
    let name = &name;
    futures::stream::iter(0..MANY)
        .map(|number| async move { kind.stores.write(&name(number), Bytes::from_static(b"x")).await })
        .buffer_unordered(16)
        .try_collect::<Vec<()>>()
        .await?;
    let listed: Vec<Path> = store.list(Some(&prefix)).map_ok(|meta| meta.location).try_collect().await?;
    let distinct: BTreeSet<&Path> = listed.iter().collect();
    ensure!(
        (listed.len(), distinct.len()) == (MANY, MANY),
        "{} listed, {} of them distinct",
        listed.len(),
        distinct.len()
    );
    let level = store.list_with_delimiter(Some(&prefix)).await?;
    ensure!((level.common_prefixes.len(), level.objects.len()) == (3, 0), "{level:?}");
    kind.io().delete_prefix(&folder).await?;
    ensure!(store.list(Some(&prefix)).next().await.is_none(), "something is left");
    Ok(())
}

fn create() -> PutOptions {
    PutOptions { mode: PutMode::Create, ..PutOptions::default() }
}

async fn create_race(kind: &StoreKind) -> Result<()> {
    for round in 0..5 {
        let location = join(&kind.folder(), "lease");
        let (store, path) = kind.stores.resolve(&location)?;
        let mut racers = tokio::task::JoinSet::new();
        for racer in 0..RACERS {
            let (store, path) = (store.clone(), path.clone());
            racers.spawn(
                async move { (racer, store.put_opts(&path, racer.to_string().into(), create()).await) },
            );
        }
        let mut winners = Vec::new();
        for (racer, outcome) in racers.join_all().await {
            match outcome {
                Ok(_) => winners.push(racer.to_string()),
                Err(object_store::Error::AlreadyExists { .. }) => {}
                Err(error) => return Err(error).context("a loser must be told that the object exists"),
            }
        }
        let content = String::from_utf8(kind.stores.read(&location).await?.to_vec())?;
        ensure!(winners == [content.clone()], "round {round}: {winners:?} won, {content} is there");
    }
    Ok(())
}

async fn create_once(kind: &StoreKind) -> Result<()> {
    let location = join(&kind.folder(), "once");
    let (store, path) = kind.stores.resolve(&location)?;
    store.put_opts(&path, "1".into(), create()).await?;
    let again = store.put_opts(&path, "2".into(), create()).await;
    let again = again.err().map(|error| firn_table::Error::from(error).kind());
    ensure!(again == Some(ErrorKind::AlreadyExists), "{again:?}");
    ensure!(kind.stores.read(&location).await? == Bytes::from_static(b"1"), "it was replaced");
    kind.stores.delete(&location).await?;
    store.put_opts(&path, "3".into(), create()).await.context("after it was deleted")?;
    Ok(())
}

async fn missing(kind: &StoreKind) -> Result<()> {
    let location = join(&kind.folder(), "missing");
    let input = kind.io().new_input(&location)?;
    let of_iceberg = |error: iceberg::Error| firn_table::Error::from(error).kind();
    let kinds = [
        kind.stores.read(&location).await.err().map(|error| error.kind()),
        input.read().await.err().map(of_iceberg),
        input.metadata().await.err().map(of_iceberg),
        input.reader().await?.read(0..10).await.err().map(of_iceberg),
    ];
    ensure!(kinds == [Some(ErrorKind::NotFound); 4], "{kinds:?}");
    ensure!(!input.exists().await?, "it exists");
    kind.stores.delete(&location).await.context("deleting what is not there")?;
    Ok(())
}

async fn replaced(kind: &StoreKind) -> Result<()> {
    let location = join(&kind.folder(), "object");
    for content in ["a long first content", "short", "again a longer content"] {
        kind.stores.write(&location, Bytes::from(content)).await?;
        ensure!(kind.stores.read(&location).await? == content, "`{content}` was not read");
    }
    Ok(())
}

async fn ranges(kind: &StoreKind) -> Result<()> {
    let location = join(&kind.folder(), "object");
    kind.stores.write(&location, Bytes::from_static(b"0123456789")).await?;
    let reader = kind.io().new_input(&location)?.reader().await?;
    for range in [0..10, 0..1, 9..10, 3..7] {
        let expected = &b"0123456789"[usize::try_from(range.start)?..usize::try_from(range.end)?];
        ensure!(reader.read(range.clone()).await? == expected, "{range:?}");
    }
    for beyond in [5..20, 20..30] {
        ensure!(reader.read(beyond.clone()).await.is_err(), "{beyond:?} of ten bytes was read");
    }
    Ok(())
}

async fn in_parts(kind: &StoreKind) -> Result<()> {
    let large: Bytes = (0..23_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let location = join(&kind.folder(), "large parquet.bin");
    let io = kind.io();
    let mut writer = io.new_output(&location)?.writer().await?;
    for chunk in [0..1, 1..4 << 20, 4 << 20..19 << 20, 19 << 20..large.len()] {
        writer.write(large.slice(chunk)).await?;
    }
    writer.close().await?;
    ensure!(io.new_input(&location)?.read().await? == large, "it was not read as it was written");
    kind.stores.write(&location, large.clone()).await.context("in one piece")?;
    ensure!(kind.stores.read(&location).await? == large, "it was not read as it was written in one piece");
    kind.stores.delete(&location).await?;
    Ok(())
}

async fn given_up(kind: &StoreKind) -> Result<()> {
    let location = join(&kind.folder(), "object");
    let io = kind.io();
    let mut writer = io.new_output(&location)?.writer().await?;
    writer.write(Bytes::from(vec![1; 12 << 20])).await?;
    drop(writer);
    ensure!(!io.exists(&location).await?, "a part of it is there as the object");
    Ok(())
}

async fn prefix(kind: &StoreKind) -> Result<()> {
    let (folder, io) = (kind.folder(), kind.io());
    for key in ["tbl/a", "tbl/b/c", "tbl2/a", "tb"] {
        kind.stores.write(&join(&folder, key), Bytes::from(key)).await?;
    }
    io.delete_prefix(join(&folder, "tbl")).await?;
    let mut left = Vec::new();
    for key in ["tbl/a", "tbl/b/c", "tbl2/a", "tb"] {
        if kind.stores.exists(&join(&folder, key)).await? {
            left.push(key);
        }
    }
    ensure!(left == ["tbl2/a", "tb"], "{left:?} are left");
    Ok(())
}

async fn delete_all(kind: &StoreKind) -> Result<()> {
    let folder = kind.folder();
    let mut locations = Vec::new();
    for number in 0..60 {
        let location = join(&folder, &format!("s=a b%20{number}/é+{number}.parquet"));
        kind.stores.write(&location, Bytes::from_static(b"x")).await?;
        locations.push(location);
    }
    locations.push(join(&folder, "missing"));
    let failed = kind.stores.delete_all(locations).await;
    ensure!(failed.is_empty(), "not deleted: {failed:?}");
    let (store, prefix) = kind.stores.resolve(&folder)?;
    ensure!(store.list(Some(&prefix)).next().await.is_none(), "something is left");
    Ok(())
}

async fn empty(kind: &StoreKind) -> Result<()> {
    let location = join(&kind.folder(), "empty");
    kind.stores.write(&location, Bytes::new()).await?;
    ensure!(kind.stores.exists(&location).await?, "it is not there");
    ensure!(kind.stores.read(&location).await?.is_empty(), "it is not empty");
    Ok(())
}
