//! Tokens: got, renewed in time and when they are refused, by one request at a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use reqwest::Url;
use serde_json::json;

use super::fake::{Fake, ident, open};
use super::server::{Received, Reply, Server};
use crate::ErrorKind;

const TOKENS: &str = "/v1/oauth/tokens";

/// A catalog that accepts one token, and issues the next one.
#[derive(Debug, Clone)]
struct Guarded {
    fake: Fake,
    /// The number in the token that is accepted.
    good: Arc<AtomicU64>,
    /// What is answered to a token that is not.
    refusal: Reply,
    /// Seconds that an issued token is said to hold.
    life: Arc<Mutex<Option<u64>>>,
}

impl Guarded {
    fn new(refusal: Reply) -> Self {
        Self { fake: Fake::new(), good: Arc::default(), refusal, life: Arc::new(Mutex::new(Some(3600))) }
    }

    async fn serve(&self) -> Server {
        let guarded = self.clone();
        Server::start(move |request| guarded.answer(request)).await
    }

    fn answer(&self, request: &Received) -> Reply {
        if request.path == TOKENS {
            let number = self.good.fetch_add(1, Ordering::SeqCst) + 1;
            let life = *self.life.lock().unwrap();
            let body =
                json!({"access_token": format!("t{number}"), "token_type": "bearer", "expires_in": life});
            return Reply::json(200, &body);
        }
        let good = format!("Bearer t{}", self.good.load(Ordering::SeqCst));
        if request.header("authorization") == Some(&good) {
            self.fake.answer(request)
        } else {
            self.refusal.clone()
        }
    }

    /// The token that was issued last holds no more.
    fn revoke(&self) {
        self.good.fetch_add(1, Ordering::SeqCst);
    }
}

fn form(request: &Received) -> HashMap<String, String> {
    let url = Url::parse(&format!("http://h/?{}", request.text())).unwrap();
    url.query_pairs().into_owned().collect()
}

#[tokio::test]
async fn a_credential_becomes_a_token() {
    let guarded = Guarded::new(Reply::page(401));
    let server = guarded.serve().await;
    let properties =
        [("credential", "me:se:cret"), ("scope", "a b"), ("audience", "aud"), ("resource", "res")];
    let opened = open(&server, &properties).await.unwrap();
    opened.catalog.load_table(&ident()).await.unwrap();
    let asked = server.received_at("POST", TOKENS);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("content-type"), Some("application/x-www-form-urlencoded"));
    let expected = [
        ("grant_type", "client_credentials"),
        ("client_id", "me"),
        ("client_secret", "se:cret"),
        ("scope", "a b"),
        ("audience", "aud"),
        ("resource", "res"),
    ];
    assert_eq!(form(&asked[0]), super::fake::owned(&expected));
}

#[tokio::test]
async fn a_refused_token_is_replaced_once_by_all_who_meet_it() {
    for refusal in [
        Reply::refusal(401, "NotAuthorizedException"),
        Reply::refusal(419, "AuthenticationTimeout"),
        Reply::page(401),
    ] {
        let guarded = Guarded::new(refusal);
        let server = guarded.serve().await;
        let opened = open(&server, &[("credential", "secret")]).await.unwrap();
        guarded.revoke();
        let ident = ident();
        let loads = join_all((0..20).map(|_| opened.catalog.load_table(&ident))).await;
        assert!(loads.iter().all(Result::is_ok), "{loads:?}");
        assert_eq!(server.received_at("POST", TOKENS).len(), 2, "one to begin with and one for all");
    }
}

#[tokio::test]
async fn a_token_without_a_credential_is_exchanged() {
    let guarded = Guarded::new(Reply::refusal(401, "NotAuthorizedException"));
    let server = guarded.serve().await;
    let opened = open(&server, &[("token", "t0")]).await.unwrap();
    assert!(server.received_at("POST", TOKENS).is_empty());
    guarded.revoke();
    opened.catalog.load_table(&ident()).await.unwrap();
    let asked = server.received_at("POST", TOKENS);
    let sent = form(&asked[0]);
    assert_eq!(sent["grant_type"], "urn:ietf:params:oauth:grant-type:token-exchange");
    assert_eq!(sent["subject_token"], "t0");
    assert_eq!(sent["subject_token_type"], "urn:ietf:params:oauth:token-type:access_token");
    assert_eq!(asked[0].header("authorization"), Some("Bearer t0"));

    let fixed = open(&server, &[("token", "t2"), ("token-exchange-enabled", "false")]).await.unwrap();
    guarded.revoke();
    let error = crate::Error::from(fixed.catalog.load_table(&ident()).await.unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(server.received_at("POST", TOKENS).len(), 1);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let guarded = Guarded::new(Reply::refusal(401, "NotAuthorizedException"));
    *guarded.life.lock().unwrap() = Some(0);
    let server = guarded.serve().await;
    let opened = open(&server, &[("credential", "secret")]).await.unwrap();
    *guarded.life.lock().unwrap() = Some(3600);
    for _ in 0..3 {
        opened.catalog.load_table(&ident()).await.unwrap();
    }
    assert_eq!(server.received_at("POST", TOKENS).len(), 2);
    assert!(
        server
            .received()
            .iter()
            .all(|request| request.path == TOKENS || request.header("authorization").is_some())
    );
}

#[tokio::test]
async fn a_token_servers_failure_is_shared_by_those_who_wait() {
    let fake = Fake::new();
    let server = Server::start(move |request| match request.path.as_str() {
        TOKENS => Reply::page(503),
        "/v1/config" => fake.answer(request),
        _ => Reply::refusal(401, "NotAuthorizedException"),
    })
    .await;
    let opened = open(&server, &[("token", "t"), ("credential", "secret")]).await.unwrap();
    let ident = ident();
    let loads = join_all((0..20).map(|_| opened.catalog.load_table(&ident))).await;
    for load in loads {
        assert_eq!(crate::Error::from(load.unwrap_err()).kind(), ErrorKind::Unavailable);
    }
    let asked = server.received_at("POST", TOKENS).len();
    assert!(asked < 20, "{asked} requests for 20 callers");
}

#[tokio::test]
async fn a_refused_credential_is_told_as_what_it_is() {
    let server = Server::start(|request| match request.path.as_str() {
        "/auth" => {
            Reply::json(401, &json!({"error": "invalid_client", "error_description": "no such client"}))
        }
        _ => Reply::json(200, &json!({})),
    })
    .await;
    let error = open(&server, &[("credential", "a:b"), ("oauth2-server-uri", "/auth")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("invalid_client (no such client)"), "{error}");
    assert_eq!(server.received().len(), 1);
}
