//! Credentials that come with a table reach the store, and newer ones replace them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use iceberg::TableIdent;
use serde_json::{Value, json};

use super::fake::{metadata, open};
use super::server::{Received, Reply, Server};
use crate::ErrorKind;
use crate::catalog::OpenCatalog;

/// A catalog whose tables have credentials of their own, and the store that wants them, in one server.
#[derive(Debug, Default)]
struct Delegating {
    /// What a load brings beside the metadata, by table.
    beside: BTreeMap<&'static str, Value>,
    /// The answer of the endpoint for credentials; without one it is not advertised.
    credentials: Option<Value>,
}

fn load(table: &str) -> String {
    format!("/v1/namespaces/n/tables/{table}")
}

impl Delegating {
    fn answer(&self, request: &Received) -> Reply {
        let path = request.path.as_str();
        if path == "/v1/config" {
            let endpoint = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials";
            let endpoints: &[&str] = if self.credentials.is_some() { &[endpoint] } else { &[] };
            return Reply::json(200, &json!({"endpoints": endpoints}));
        }
        if path.starts_with("/bucket/") {
            return Reply::Answer {
                status: 200,
                headers: vec![
                    ("etag", "\"e\"".to_owned()),
                    ("last-modified", "Mon, 30 Nov 2026 22:00:00 GMT".to_owned()),
                ],
                body: Bytes::from_static(b"x"),
            };
        }
        if path.ends_with("/credentials") {
            return Reply::json(200, self.credentials.as_ref().unwrap());
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        let Some(beside) = self.beside.get(name) else { return Reply::refusal(404, "NoSuchTableException") };
        let location = format!("s3://bucket/w/{name}");
        let mut answer = json!({
            "metadata-location": format!("{location}/metadata/00000-x.metadata.json"),
            "metadata": metadata(&location),
        });
        answer.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
        Reply::json(200, &answer)
    }
}

struct Case {
    delegating: Arc<Mutex<Delegating>>,
    server: Server,
    opened: OpenCatalog,
}

impl Case {
    async fn new(delegating: Delegating) -> Self {
        let delegating = Arc::new(Mutex::new(delegating));
        let answers = delegating.clone();
        let server = Server::start(move |request| answers.lock().unwrap().answer(request)).await;
        let endpoint = server.uri();
        let properties = [
            ("s3.endpoint", endpoint.as_str()),
            ("s3.access-key-id", "own"),
            ("s3.secret-access-key", "own-secret"),
            ("header.X-Iceberg-Access-Delegation", "vended-credentials"),
        ];
        let opened = open(&server, &properties).await.unwrap();
        Self { delegating, server, opened }
    }

    async fn load(&self, table: &str) {
        self.opened.catalog.load_table(&TableIdent::from_strs(["n", table]).unwrap()).await.unwrap();
    }

    /// The key and token that a request to the store was signed with.
    async fn signed(&self, location: &str) -> (String, Option<String>) {
        self.opened.stores.read(location).await.unwrap();
        let request = self.server.received().pop().unwrap();
        let authorization = request.header("authorization").unwrap();
        let key = authorization.split("Credential=").nth(1).unwrap().split('/').next().unwrap().to_owned();
        (key, request.header("x-amz-security-token").map(str::to_owned))
    }
}

fn keys(id: &str, expires_at_ms: i64) -> Value {
    json!({
        "s3.access-key-id": id,
        "s3.secret-access-key": format!("{id}-secret"),
        "s3.session-token": format!("{id}-token"),
        "s3.session-token-expires-at-ms": expires_at_ms.to_string(),
    })
}

fn in_an_hour() -> i64 {
    chrono::Utc::now().timestamp_millis() + 3_600_000
}

#[tokio::test]
async fn each_tables_files_are_read_with_its_own_credentials() {
    let by_prefix = json!([
        {"prefix": "s3://bucket/w/b", "config": keys("b", in_an_hour())},
        {"prefix": "s3://bucket/w/b/data", "config": keys("b-data", in_an_hour())},
    ]);
    let case = Case::new(Delegating {
        beside: BTreeMap::from([
            ("a", json!({"config": keys("a", in_an_hour())})),
            ("b", json!({"config": {"s3.region": "eu-west-1"}, "storage-credentials": by_prefix})),
            ("c", json!({"config": null, "storage-credentials": null})),
        ]),
        ..Delegating::default()
    })
    .await;
    for table in ["a", "b", "c"] {
        case.load(table).await;
    }
    let token = |key: &str| (key.to_owned(), Some(format!("{key}-token")));
    assert_eq!(case.signed("s3://bucket/w/a/data/f").await, token("a"));
    assert_eq!(case.signed("s3a://bucket/w/a/metadata/m").await, token("a"));
    assert_eq!(case.signed("s3://bucket/w/b/metadata/m").await, token("b"));
    assert_eq!(case.signed("s3://bucket/w/b/data/f").await, token("b-data"));
    assert!(
        case.server.received().pop().unwrap().header("authorization").unwrap().contains("/eu-west-1/s3/")
    );
    assert_eq!(case.signed("s3://bucket/w/c/data/f").await, ("own".to_owned(), None));
    assert_eq!(case.signed("s3://bucket/w/ab/data/f").await, ("own".to_owned(), None));
    assert!(case.server.received_at("GET", &load("a"))[0].header("x-iceberg-access-delegation").is_some());
    let shown = format!("{:?} {:?}", case.opened, case.opened.catalog);
    assert!(!shown.contains("a-secret") && !shown.contains("a-token"), "{shown}");
}

#[tokio::test]
async fn expired_credentials_are_renewed_by_loading_the_table() {
    let beside = BTreeMap::from([("a", json!({"config": keys("old", 1)}))]);
    let case = Case::new(Delegating { beside, ..Delegating::default() }).await;
    case.load("a").await;
    let newer = json!({"config": keys("new", in_an_hour())});
    case.delegating.lock().unwrap().beside.insert("a", newer);
    for _ in 0..3 {
        assert_eq!(case.signed("s3://bucket/w/a/f").await.0, "new");
    }
    assert_eq!(case.server.received_at("GET", &load("a")).len(), 2);
}

#[tokio::test]
async fn expired_credentials_are_renewed_at_the_endpoint_for_it() {
    let old = json!([{"prefix": "s3://bucket/w/a", "config": keys("old", 1)}]);
    let new = json!([{"prefix": "s3://bucket/w/a", "config": keys("new", in_an_hour())}]);
    let case = Case::new(Delegating {
        beside: BTreeMap::from([("a", json!({"storage-credentials": old}))]),
        credentials: Some(json!({"storage-credentials": new})),
    })
    .await;
    case.load("a").await;
    assert_eq!(case.signed("s3://bucket/w/a/f").await.0, "new");
    assert_eq!(case.server.received_at("GET", &load("a")).len(), 1);
    assert_eq!(case.server.received_at("GET", &format!("{}/credentials", load("a"))).len(), 1);
}

#[tokio::test]
async fn credentials_that_cannot_be_renewed_are_told_as_that() {
    let beside = BTreeMap::from([("a", json!({"config": keys("old", 1)}))]);
    let case = Case::new(Delegating { beside, ..Delegating::default() }).await;
    case.load("a").await;
    case.delegating.lock().unwrap().beside.clear();
    let error = case.opened.stores.read("s3://bucket/w/a/f").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let shown = format!("{error:?}");
    assert!(shown.contains("have expired") && !shown.contains("old-secret"), "{shown}");
}
