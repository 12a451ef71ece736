//! Locations and their arithmetic, and how stores are opened. What every store must do is a kit of the scenarios.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::*;
use crate::ErrorKind;

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
