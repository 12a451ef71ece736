//! An S3 server that throttles, hangs, cuts answers short, or refuses.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use firn_table::storage::{Stores, join};
use firn_table::{Error, ErrorKind};
use firn_tests::chaos::Chaos;
use firn_tests::{scratch, servers};
use futures::TryStreamExt;
use object_store::{PutMode, PutOptions};

/// Within which the client gives up whatever the server does.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server behind a proxy with rules, and a folder in its bucket.
struct Behind {
    chaos: Chaos,
    stores: Stores,
    folder: String,
}

impl Behind {
    async fn rules(test: &str, rules: &[&str]) -> Result<Self> {
        Self::with(test, rules, &[]).await
    }

    /// The same, with some of the properties replaced.
    async fn with(test: &str, rules: &[&str], properties: &[(&str, &str)]) -> Result<Self> {
        let s3 = servers::s3()?;
        let chaos = Chaos::before(s3.endpoint(), &scratch::folder(test)?, "chaos", rules).await?;
        let properties = [properties, &[("s3.endpoint", chaos.address())]].concat();
        Ok(Self { stores: Stores::new(s3.with(&properties)), folder: s3.folder(test), chaos })
    }

    fn at(&self, key: &str) -> String {
        join(&self.folder, key)
    }

    /// How many requests each rule acted on.
    async fn acted(self) -> Result<Vec<u64>> {
        Ok(self.chaos.stop().await?.iter().map(|counts| counts.acted).collect())
    }
}

fn bytes(length: usize) -> Bytes {
    (0..length).map(|at| u8::try_from(at % 251).unwrap_or_default()).collect()
}

#[tokio::test]
#[ignore = "needs an S3 server: tests/run servers"]
async fn every_kind_of_request_waits_and_tries_again_when_the_server_says_slow_down() -> Result<()> {
    let rules = [
        "PUT /** : slowdown first 2",
        "GET /** : slowdown first 2",
        "HEAD /** : slowdown first 2",
        // Uploads in parts and deletions of many.
        "POST /** : slowdown first 2",
    ];
    let behind = Behind::rules("s3-slow-down", &rules).await?;
    let (small, large) = (behind.at("small"), behind.at("large"));
    behind.stores.write(&small, bytes(100)).await?;
    assert_eq!(behind.stores.read(&small).await?, bytes(100));
    assert!(behind.stores.exists(&small).await?);
    let io = behind.stores.file_io();
    let mut writer = io.new_output(&large)?.writer().await?;
    writer.write(bytes(12 << 20)).await?;
    writer.close().await?;
    let (store, folder) = behind.stores.resolve(&behind.folder)?;
    let listed: Vec<_> = store.list(Some(&folder)).try_collect().await?;
    assert_eq!(listed.len(), 2);
    assert!(behind.stores.delete_all(vec![small, large]).await.is_empty());
    assert_eq!(behind.acted().await?, [2; 4]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an S3 server: tests/run servers"]
async fn a_server_that_never_serves_is_given_up_in_time_and_may_be_tried_again() -> Result<()> {
    let rules = ["PUT /** : slowdown", "GET /** : hang", "HEAD /** : status 500"];
    let behind = Behind::rules("s3-endless", &rules).await?;
    let began = Instant::now();
    let object = behind.at("object");
    let (write, read, exists) = tokio::join!(
        behind.stores.write(&object, bytes(100)),
        behind.stores.read(&object),
        behind.stores.exists(&object),
    );
    let kinds = [write.err(), read.err(), exists.err()].map(|error| error.map(|error| error.kind()));
    assert_eq!(kinds, [Some(ErrorKind::Unavailable); 3]);
    assert!(began.elapsed() < PATIENCE, "it took {:?}", began.elapsed());
    Ok(())
}

#[tokio::test]
#[ignore = "needs an S3 server: tests/run servers"]
async fn an_answer_that_ends_early_is_completed_or_an_error_and_never_short() -> Result<()> {
    let behind = Behind::rules("s3-truncated", &["GET /** : truncate 1000 every 2"]).await?;
    let object = behind.at("object");
    let content = bytes(100_000);
    behind.stores.write(&object, content.clone()).await?;
    let reader = behind.stores.file_io().new_input(&object)?.reader().await?;
    for _ in 0..3 {
        ensure!(behind.stores.read(&object).await? == content, "another content");
        ensure!(reader.read(500..90_000).await? == content.slice(500..90_000), "another range");
    }
    let acted = behind.acted().await?;
    assert!(acted[0] >= 3, "{acted:?}");

    let always = Behind::rules("s3-always-truncated", &["GET /** : truncate 0"]).await?;
    let object = always.at("object");
    always.stores.write(&object, content).await?;
    let read = always.stores.read(&object).await;
    assert_eq!(read.map_err(|error| error.kind()), Err(ErrorKind::Unavailable));
    Ok(())
}

#[tokio::test]
#[ignore = "needs an S3 server: tests/run servers"]
async fn a_creation_whose_answer_is_lost_is_never_reported_as_done() -> Result<()> {
    let behind = Behind::rules("s3-lost-create", &["PUT /** : apply-then 500 once"]).await?;
    let (store, path) = behind.stores.resolve(&behind.at("lease"))?;
    let create = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    let outcome = store.put_opts(&path, "1".into(), create).await;
    let outcome = outcome.map(drop).map_err(|error| Error::from(error).kind());
    assert_eq!(
        outcome,
        Err(ErrorKind::AlreadyExists),
        "the try after the lost answer meets the first one's object"
    );
    assert!(behind.stores.exists(&behind.at("lease")).await?);
    Ok(())
}

#[tokio::test]
#[ignore = "needs an S3 server: tests/run servers"]
async fn a_session_token_travels_and_is_signed() -> Result<()> {
    let rules = [
        "GET /** header x-amz-security-token=the-token header authorization=**x-amz-security-token** : status 418",
    ];
    let with = Behind::with("s3-token", &rules, &[("s3.session-token", "the-token")]).await?;
    assert!(with.stores.read(&with.at("object")).await.is_err());
    assert_eq!(with.acted().await?, [1]);
    let without = Behind::rules("s3-no-token", &rules).await?;
    let missing = without.stores.read(&without.at("object")).await.map_err(|error| error.kind());
    assert_eq!(missing, Err(ErrorKind::NotFound));
    assert_eq!(without.acted().await?, [0]);
    Ok(())
}

#[tokio::test]
#[ignore = "needs an S3 server: tests/run servers"]
async fn an_anonymous_client_signs_nothing() -> Result<()> {
    let rules = ["GET /** header authorization=** : status 418"];
    let behind = Behind::with("s3-anonymous", &rules, &[("s3.allow-anonymous", "true")]).await?;
    let refused = behind.stores.read(&behind.at("object")).await.map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::Configuration));
    assert_eq!(behind.acted().await?, [0]);
    Ok(())
}

#[tokio::test]
#[ignore = "needs an S3 server: tests/run servers"]
async fn refusals_keep_their_kind_and_hide_the_secret() -> Result<()> {
    let s3 = servers::s3()?;
    let secret = s3.properties.get("s3.secret-access-key").context("a secret")?.clone();
    let stores = Stores::new(s3.with(&[("s3.secret-access-key", &format!("{secret}x"))]));
    let object = join(&s3.folder("s3-refused"), "object");
    let io = stores.file_io();
    let mut small = io.new_output(&object)?.writer().await?;
    small.write(bytes(10)).await?;
    let mut large = io.new_output(&object)?.writer().await?;
    let began = large.write(bytes(12 << 20)).await;
    let closed = match began {
        Ok(()) => large.close().await,
        refused => refused,
    };
    let errors = [
        stores.write(&object, bytes(10)).await.err(),
        stores.read(&object).await.err(),
        small.close().await.err().map(Error::from),
        closed.err().map(Error::from),
    ];
    for error in errors {
        let error = error.context("it was not refused")?;
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
        let whole = format!("{:#}", anyhow::Error::from(error));
        assert!(!whole.contains(&secret), "{whole}");
    }
    let nowhere = Stores::new(s3.properties.clone()).read("s3://firn-no-such-bucket/object").await;
    assert_eq!(nowhere.map_err(|error| error.kind()), Err(ErrorKind::NotFound));
    Ok(())
}

#[tokio::test]
#[ignore = "needs an S3 server: tests/run servers"]
async fn spellings_of_one_object_reach_it() -> Result<()> {
    let s3 = servers::s3()?;
    let stores = Stores::new(s3.properties.clone());
    let object = join(&s3.folder("s3-spellings"), "a/b");
    stores.write(&object, bytes(10)).await?;
    for spelling in [
        object.replacen("s3:", "s3a:", 1),
        object.replacen("s3:", "s3n:", 1),
        object.replacen("s3:", "S3:", 1),
        object.replacen("s3:", "s3a:", 1).replacen("/a/b", "//a///b", 1),
    ] {
        assert_eq!(stores.read(&spelling).await?, bytes(10), "{spelling}");
    }
    Ok(())
}
