//! Configuration, headers, deadlines, and what no message shows.

use std::time::{Duration, Instant};

use iceberg::TableIdent;
use serde_json::json;

use super::fake::{Fake, ident, open, owned};
use super::server::{Reply, Server};
use crate::ErrorKind;
use crate::catalog::{CatalogOptions, open_catalog};

#[tokio::test]
async fn the_servers_configuration_is_laid_around_the_clients() {
    let server = Server::start(|request| match request.path.as_str() {
        "/api/v1/config" => Reply::json(
            200,
            &json!({
                "defaults": {"s3.region": "default", "s3.endpoint": "http://default", "rest-page-size": "3"},
                "overrides": {"prefix": "cat/alog", "s3.endpoint": "http://override", "namespace-separator": "%2E"},
            }),
        ),
        _ => Reply::json(200, &json!({"identifiers": []})),
    })
    .await;
    let options = CatalogOptions {
        uri: format!("{}/api/", server.uri()),
        warehouse: Some("ware house/1".to_owned()),
        properties: owned(&[("s3.region", "client"), ("s3.endpoint", "http://client"), ("token", "t0")]),
        ..CatalogOptions::default()
    };
    let opened = open_catalog(&options, None).await.unwrap();
    let properties = opened.stores.properties();
    assert_eq!(properties["s3.region"], "client");
    assert_eq!(properties["s3.endpoint"], "http://override");
    assert!(!properties.contains_key("token"), "the stores do not need it");
    let config = &server.received()[0];
    assert_eq!(config.query, "warehouse=ware+house%2F1");
    assert_eq!(config.header("user-agent"), Some(concat!("firn/", env!("CARGO_PKG_VERSION"))));

    let namespace = TableIdent::from_strs(["a", "b", "t"]).unwrap().namespace;
    assert!(opened.catalog.list_tables(&namespace).await.unwrap().is_empty());
    let listed = server.received().pop().unwrap();
    assert_eq!(listed.path, "/api/v1/cat/alog/namespaces/a%2Eb/tables");
    assert_eq!(listed.query, "pageToken=&pageSize=3");
    assert_eq!(listed.header("authorization"), Some("Bearer t0"));
}

#[tokio::test]
async fn custom_headers_go_with_every_request() {
    let fake = Fake::new();
    let server = fake.serve().await;
    let headers = [("header.X-Iceberg-Access-Delegation", "vended-credentials"), ("header.x-api-key", "k 1")];
    let opened = open(&server, &headers).await.unwrap();
    opened.catalog.load_table(&ident()).await.unwrap();
    let received = server.received();
    assert_eq!(received.len(), 2);
    for request in received {
        assert_eq!(request.header("x-iceberg-access-delegation"), Some("vended-credentials"));
        assert_eq!(request.header("x-api-key"), Some("k 1"));
        assert_eq!(request.header("authorization"), None);
    }
}

#[tokio::test]
async fn what_is_no_catalog_is_told_when_it_is_opened() {
    for (reply, kind) in [
        (Reply::page(404), ErrorKind::Configuration),
        (Reply::page(200), ErrorKind::Configuration),
        (Reply::refusal(400, "NoSuchWarehouseException"), ErrorKind::Configuration),
        (Reply::refusal(401, "NotAuthorizedException"), ErrorKind::Configuration),
        (Reply::page(500), ErrorKind::Unavailable),
        (Reply::page(301).with("location", "http://elsewhere.invalid/"), ErrorKind::Configuration),
    ] {
        let answer = reply.clone();
        let server = Server::start(move |_| answer.clone()).await;
        let error = open(&server, &[]).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{reply:?}: {error}");
        assert_eq!(server.received().len(), 1, "{reply:?}: nothing is followed or repeated");
    }
    let gone = Server::start(|_| Reply::Hang).await.uri();
    let options = CatalogOptions { uri: gone, ..CatalogOptions::default() };
    let error = open_catalog(&options, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    for (name, value) in [
        ("uri", "http://user:hunter2@host"),
        ("uri", "http://host?x=1"),
        ("rest.sigv4-enabled", "true"),
        ("header.bad name", "x"),
        ("rest.client.socket-timeout-ms", "soon"),
    ] {
        let properties = owned(&[("uri", "http://host"), (name, value)]);
        let error = super::super::RestSession::open(&properties).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Configuration | ErrorKind::Unsupported), "{name}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn a_read_waits_as_asked_and_is_tried_again() {
    let fake = Fake::new();
    let answers = fake.clone();
    let refusals = std::sync::Mutex::new(vec![
        Reply::refusal(429, "TooManyRequests").with("retry-after", "0"),
        Reply::page(503),
    ]);
    let server = Server::start(move |request| match refusals.lock().unwrap().pop() {
        Some(reply) if request.path == super::fake::TABLE => reply,
        _ => answers.answer(request),
    });
    // The first request takes one refusal away from the list: the configuration.
    let server = server.await;
    let opened = open(&server, &[]).await.unwrap();
    opened.catalog.load_table(&ident()).await.unwrap();
    assert_eq!(server.received_at("GET", super::fake::TABLE).len(), 2);
}

#[tokio::test]
async fn every_wait_has_an_end() {
    for (reply, words) in [(Reply::Hang, "no answer within 200 ms"), (Reply::Drip, "no answer within 200 ms")]
    {
        let fake = Fake::new();
        let server = Server::start(move |request| match request.path.as_str() {
            super::fake::TABLE => reply.clone(),
            _ => fake.answer(request),
        })
        .await;
        let opened = open(&server, &[("rest.client.socket-timeout-ms", "200")]).await.unwrap();
        let began = Instant::now();
        let error = crate::Error::from(opened.catalog.load_table(&ident()).await.unwrap_err());
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains(words), "{error}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_is_none() {
    let fake = Fake::new();
    let body = serde_json::to_vec(&json!({"metadata": fake.metadata()})).unwrap();
    let server = Server::start(move |request| match request.path.as_str() {
        super::fake::TABLE => Reply::Cut { status: 200, body: body.clone().into() },
        _ => fake.answer(request),
    })
    .await;
    let opened = open(&server, &[]).await.unwrap();
    let error = crate::Error::from(opened.catalog.load_table(&ident()).await.unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn no_error_and_no_debug_output_shows_a_secret() {
    let secrets = ["tok-secret", "cred-secret", "head-secret"];
    // A server that repeats in its refusal whatever it was sent.
    let server = Server::start(|request| {
        let sent = format!("{:?} {}", request.headers, request.text());
        match request.path.as_str() {
            "/v1/config" => Reply::json(200, &json!({})),
            "/v1/oauth/tokens" => {
                Reply::json(400, &json!({"error": "invalid_client", "error_description": sent}))
            }
            _ => Reply::json(
                401,
                &json!({"error": {"message": sent, "type": "NotAuthorizedException", "code": 401}}),
            ),
        }
    })
    .await;
    let both = [("token", "tok-secret"), ("credential", "id:cred-secret"), ("header.x-key", "head-secret")];
    let opened = open(&server, &both).await.unwrap();
    let error = opened.catalog.load_table(&ident()).await.unwrap_err();
    let properties = owned(&[("uri", &server.uri()), ("credential", "id:cred-secret")]);
    let refused = super::super::RestSession::open(&properties).await.unwrap_err();
    let options = CatalogOptions { properties: owned(&both), ..CatalogOptions::default() };
    let shown = format!("{error:?} {error} {refused:?} {refused} {opened:?} {options:?}");
    for secret in secrets {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(refused.to_string().contains("invalid_client"), "{refused}");
    assert!(error.to_string().contains("NotAuthorizedException"), "{error}");
    assert_eq!(refused.kind(), ErrorKind::Configuration);
}
