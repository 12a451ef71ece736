//! A conformance kit that every kind of store passes, and the arithmetic of locations.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use iceberg::io::FileIO;
use object_store::ObjectStore;

use super::*;
use crate::{Error, ErrorKind};

/// Keys that a store must carry literally: percent signs, spaces, `=`, unicode and what URLs treat specially.
const KEYS: [&str; 12] = [
    "plain.parquet",
    "day=2026-01-02/id_bucket=3/a.parquet",
    "s=a%2Fb/a.parquet",
    "s=a%20b/100%.parquet",
    "s=a b/c d .parquet",
    "s=/a.parquet",
    "s=./a.parquet",
    "s=../a.parquet",
    "s=Zürich/雪.parquet",
    "s=a+b&c?d/x#y.parquet",
    "s={a}[b]~`^|/\"q\".parquet",
    "s=back\\slash/a.parquet",
];

async fn conforms(stores: &Stores, base: &str) {
    let io = stores.file_io();
    for key in KEYS {
        let location = join(base, key);
        assert!(!stores.exists(&location).await.unwrap(), "{location} before");
        stores.write(&location, Bytes::from(key)).await.unwrap();
        assert!(stores.exists(&location).await.unwrap(), "{location}");
        assert_eq!(stores.read(&location).await.unwrap(), Bytes::from(key), "{location}");

        let input = io.new_input(&location).unwrap();
        assert_eq!(input.metadata().await.unwrap().size, key.len() as u64, "{location}");
        let tail = input.reader().await.unwrap().read(1..key.len() as u64).await.unwrap();
        assert_eq!(tail, Bytes::from(&key[1..]), "{location}");
    }
    listed_as_written(stores, base).await;
    let (store, _) = stores.resolve(base).unwrap();
    assert!(store.to_string().len() > 1);

    let missing = stores.read(&join(base, "missing")).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let missing = Error::from(io.new_input(join(base, "missing")).unwrap().read().await.unwrap_err());
    assert_eq!(missing.kind(), ErrorKind::NotFound);

    let all = KEYS.iter().map(|key| join(base, key)).chain([join(base, "missing")]).collect();
    assert!(stores.delete_all(all).await.is_empty());
    for key in KEYS {
        assert!(!stores.exists(&join(base, key)).await.unwrap(), "{key} after");
    }
    multipart_and_prefix(&io, base).await;
}

async fn listed_as_written(stores: &Stores, base: &str) {
    let (store, prefix) = stores.resolve(base).unwrap();
    let listed: Vec<_> = store.list(Some(&prefix)).collect().await;
    let mut listed: Vec<String> = listed.into_iter().map(|meta| meta.unwrap().location.to_string()).collect();
    let mut written: Vec<String> =
        KEYS.iter().map(|key| stores.resolve(&join(base, key)).unwrap().1.to_string()).collect();
    listed.sort();
    written.sort();
    assert_eq!(listed, written);
}

async fn multipart_and_prefix(io: &FileIO, base: &str) {
    let large = Bytes::from(vec![7_u8; 11 << 20]);
    let location = join(base, "tbl/large");
    let mut writer = io.new_output(&location).unwrap().writer().await.unwrap();
    writer.write(large.slice(..4 << 20)).await.unwrap();
    writer.write(large.slice(4 << 20..)).await.unwrap();
    writer.close().await.unwrap();
    assert!(io.new_input(&location).unwrap().read().await.unwrap() == large);

    let sibling = join(base, "tbl2/kept");
    io.new_output(&sibling).unwrap().write(Bytes::from_static(b"x")).await.unwrap();
    io.delete_prefix(join(base, "tbl")).await.unwrap();
    assert!(!io.exists(&location).await.unwrap());
    assert!(io.exists(&sibling).await.unwrap());
    io.delete(&sibling).await.unwrap();
    io.delete(&sibling).await.unwrap();
}

#[tokio::test]
async fn a_directory_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("with space %41 é");
    std::fs::create_dir(&root).unwrap();
    let root = root.to_str().unwrap();
    for base in [root.to_owned(), format!("file:{root}"), format!("file://{root}")] {
        conforms(&Stores::new(HashMap::new()), &base).await;
    }
}

#[tokio::test]
async fn memory_conforms() {
    let stores = Stores::new(HashMap::new());
    conforms(&stores, "memory://warehouse/a").await;
    conforms(&stores, "memory:/a").await;
}

#[tokio::test]
async fn keys_reach_the_file_system_literally() {
    let folder = tempfile::tempdir().unwrap();
    let stores = Stores::new(HashMap::new());
    for key in KEYS {
        let path = folder.path().join(key);
        stores.write(&format!("file://{}", path.display()), Bytes::from_static(b"x")).await.unwrap();
        assert!(path.is_file(), "{}", path.display());
    }
}

#[tokio::test]
async fn spellings_of_one_path_reach_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a").join("b");
    let stores = Stores::new(HashMap::new());
    stores.write(path.to_str().unwrap(), Bytes::from_static(b"x")).await.unwrap();
    let path = path.to_str().unwrap();
    let doubled = path.replace("/a/", "//a///");
    for location in [
        format!("file:{path}"),
        format!("file://{path}"),
        format!("file://localhost{path}"),
        format!("FILE:{path}"),
        doubled,
    ] {
        assert_eq!(stores.read(&location).await.unwrap(), Bytes::from_static(b"x"), "{location}");
        assert_eq!(normalize(&location), format!("file://{path}"), "{location}");
    }
}

#[test]
fn normalised_locations_are_equal_only_where_the_objects_are() {
    for same in ["s3://b/a/c", "s3a://b/a/c", "s3n://b//a///c", "S3://b/a/c/"] {
        assert_eq!(normalize(same), "s3://b/a/c");
    }
    assert_ne!(normalize("s3://b/s=a%2Fb"), normalize("s3://b/s=a/b"));
    assert_ne!(normalize("s3://b/a"), normalize("s3://c/a"));
    assert_ne!(normalize("/tbl"), normalize("/tbl2"));
    assert_ne!(normalize("memory://b/a"), normalize("s3://b/a"));
    assert_eq!(normalize("gs://b//a"), "gs://b/a");
}

#[test]
fn join_puts_one_slash() {
    for (base, child) in [("s3://b/a", "c"), ("s3://b/a/", "c"), ("s3://b/a", "/c"), ("s3://b/a//", "//c")] {
        assert_eq!(join(base, child), "s3://b/a/c");
    }
}

#[test]
fn malformed_locations_are_refused() {
    let stores = Stores::new(HashMap::new());
    for (location, kind) in [
        ("relative/path", ErrorKind::Configuration),
        ("", ErrorKind::Configuration),
        ("file:relative", ErrorKind::Configuration),
        ("file://host/path", ErrorKind::Configuration),
        ("s3:///key", ErrorKind::Configuration),
        ("gs://bucket/key", ErrorKind::Unsupported),
        ("s3://bucket/a//b", ErrorKind::Unsupported),
        ("/a/../b", ErrorKind::Unsupported),
    ] {
        let refused = Location::parse(location).and_then(|parsed| parsed.path()).err();
        let refused = refused.or_else(|| stores.resolve(location).err()).map(|error| error.kind());
        assert_eq!(refused, Some(kind), "{location}");
    }
    assert_eq!(Location::parse("s3a://bucket/a//b").unwrap().path().unwrap().as_ref(), "a/b");
}

#[test]
fn s3_properties_choose_endpoint_and_addressing() {
    let open = |properties: &[(&str, &str)], bucket: &str| {
        let all = [("s3.access-key-id", "id"), ("s3.secret-access-key", "secret")];
        let properties =
            all.iter().chain(properties).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Stores::new(properties.collect()).resolve(&format!("s3://{bucket}/key")).map(|(store, path)| {
            assert_eq!(path.as_ref(), "key");
            format!("{store:?}")
        })
    };
    let amazon = open(&[("client.region", "eu-west-1"), ("s3.region", "ignored")], "b").unwrap();
    assert!(amazon.contains("https://b.s3.eu-west-1.amazonaws.com"), "{amazon}");
    let dotted = open(&[("s3.region", "eu-west-1")], "b.c").unwrap();
    assert!(dotted.contains("https://s3.eu-west-1.amazonaws.com/b.c"), "{dotted}");
    let own = open(&[("s3.endpoint", "http://127.0.0.1:9000/")], "b").unwrap();
    assert!(own.contains("http://127.0.0.1:9000/b"), "{own}");
    let hosted =
        open(&[("s3.endpoint", "https://example.org"), ("s3.path-style-access", "false")], "b").unwrap();
    assert!(hosted.contains("https://b.example.org"), "{hosted}");
    for (refused, kind) in [
        ([("s3.endpoint", "localhost")], ErrorKind::Configuration),
        ([("s3.sse.type", "custom")], ErrorKind::Configuration),
        ([("s3.remote-signing-enabled", "true")], ErrorKind::Unsupported),
    ] {
        assert_eq!(open(&refused, "b").unwrap_err().kind(), kind, "{refused:?}");
    }
}

#[tokio::test]
async fn a_store_is_opened_and_wrapped_once() {
    let wrapped = Arc::new(AtomicUsize::new(0));
    let count = wrapped.clone();
    let plain = Stores::new(HashMap::new());
    plain.write("memory://a/x", Bytes::from_static(b"x")).await.unwrap();
    let stores = plain.with_wrapper(Arc::new(move |store| {
        count.fetch_add(1, Ordering::Relaxed);
        store
    }));
    let clone = stores.clone();
    for _ in 0..3 {
        assert_eq!(clone.read("memory://a/x").await.unwrap(), Bytes::from_static(b"x"));
        assert!(stores.file_io().exists("memory://a/x").await.unwrap());
    }
    assert_eq!(wrapped.load(Ordering::Relaxed), 1);
    assert!(!stores.exists("memory://b/x").await.unwrap());
    assert_eq!(wrapped.load(Ordering::Relaxed), 2);
}

#[test]
fn stores_travel_as_their_properties() {
    let stores = Stores::new(HashMap::from([("s3.region".to_owned(), "eu-west-1".to_owned())]));
    let text = serde_json::to_string(&stores).unwrap();
    let back: Stores = serde_json::from_str(&text).unwrap();
    assert_eq!(back.properties(), stores.properties());
}
