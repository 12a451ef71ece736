//! What became of a commit, for every answer and failure.

use std::collections::HashMap;
use std::time::Duration;

use iceberg::spec::{
    MAIN_BRANCH, Operation, Snapshot, SnapshotReference, SnapshotRetention, Summary, TableMetadata,
};
use iceberg::table::Table;
use iceberg::{TableRequirement, TableUpdate};
use serde_json::json;

use super::fake::{Fake, Fault, TABLE, ident, open};
use super::server::{Reply, Server};
use crate::ErrorKind;
use crate::catalog::{CommitOutcome, OpenCatalog};

struct Case {
    fake: Fake,
    server: Server,
    opened: OpenCatalog,
    base: Table,
}

impl Case {
    async fn new() -> Self {
        Self::with(Fake::new(), &[]).await
    }

    async fn with(fake: Fake, properties: &[(&str, &str)]) -> Self {
        let server = fake.serve().await;
        let opened = open(&server, properties).await.unwrap();
        let base = opened.catalog.load_table(&ident()).await.unwrap();
        Self { fake, server, opened, base }
    }

    /// Commits snapshot 1 on the base.
    async fn commit(&self) -> CommitOutcome {
        let (requirements, updates) = append(self.base.metadata(), 1, MAIN_BRANCH);
        self.opened.catalog.commit(&self.base, requirements, updates).await
    }
}

/// What an append of a snapshot sends.
fn append(base: &TableMetadata, id: i64, branch: &str) -> (Vec<TableRequirement>, Vec<TableUpdate>) {
    let head = base.snapshot_for_ref(branch).map(|head| head.snapshot_id());
    let snapshot = Snapshot::builder()
        .with_snapshot_id(id)
        .with_parent_snapshot_id(head)
        .with_sequence_number(base.last_sequence_number() + 1)
        .with_timestamp_ms(base.last_updated_ms() + 1)
        .with_manifest_list(format!("memory://rest/list-{id}.avro"))
        .with_summary(Summary { operation: Operation::Append, additional_properties: HashMap::new() })
        .build();
    let reference =
        SnapshotReference { snapshot_id: id, retention: SnapshotRetention::branch(None, None, None) };
    let requirements = vec![
        TableRequirement::UuidMatch { uuid: base.uuid() },
        TableRequirement::RefSnapshotIdMatch { r#ref: branch.to_owned(), snapshot_id: head },
    ];
    let updates = vec![
        TableUpdate::AddSnapshot { snapshot },
        TableUpdate::SetSnapshotRef { ref_name: branch.to_owned(), reference },
    ];
    (requirements, updates)
}

fn appended(metadata: TableMetadata, id: i64, branch: &str) -> TableMetadata {
    let (_, updates) = append(&metadata, id, branch);
    let mut builder = metadata.into_builder(Some("memory://rest/before.metadata.json".to_owned()));
    for update in updates {
        builder = update.apply(builder).unwrap();
    }
    builder.build().unwrap().metadata
}

fn name(outcome: &CommitOutcome) -> &'static str {
    match outcome {
        CommitOutcome::Committed(_) => "committed",
        CommitOutcome::Conflict => "conflict",
        CommitOutcome::NotApplied { .. } => "not applied",
        CommitOutcome::Rejected(_) => "rejected",
        CommitOutcome::Unknown(_) => "unknown",
    }
}

#[tokio::test]
async fn a_commit_lands_and_its_answer_is_the_table() {
    let case = Case::new().await;
    match case.commit().await {
        CommitOutcome::Committed(table) => assert_eq!(table.metadata(), &case.fake.metadata()),
        other => panic!("{other:?}"),
    }
    let sent = &case.server.received_at("POST", TABLE)[0];
    let body: serde_json::Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(body["identifier"], json!({"namespace": ["n"], "name": "t"}));
    assert_eq!(body["requirements"][1]["type"], "assert-ref-snapshot-id");
    assert_eq!(body["updates"][0]["action"], "add-snapshot");
}

#[tokio::test]
async fn an_answer_that_proves_nothing_is_unknown() {
    let cut = |status| Reply::Cut { status, body: vec![b' '; 100].into() };
    for reply in [
        Reply::page(200),
        Reply::json(200, &json!({"metadata-location": "x"})),
        Reply::Answer { status: 204, headers: Vec::new(), body: bytes::Bytes::new() },
        Reply::page(302).with("location", "/elsewhere"),
        Reply::page(400),
        Reply::page(401),
        Reply::page(403),
        Reply::page(404),
        Reply::page(409),
        Reply::page(413),
        Reply::page(429),
        Reply::page(502),
        Reply::json(403, &json!({"error": "forbidden"})),
        Reply::json(404, &json!({"message": "no route"})),
        Reply::refusal(400, "BadRequestException"),
        Reply::refusal(409, "CommitFailedException"),
        Reply::refusal(404, "NotFoundException"),
        Reply::refusal(408, "RequestTimeout"),
        Reply::refusal(422, "UnprocessableEntityException"),
        Reply::refusal(500, "CommitStateUnknownException"),
        Reply::refusal(502, "BadGateway"),
        Reply::refusal(503, "SlowDownException"),
        Reply::refusal(504, "GatewayTimeout"),
        cut(200),
        cut(403),
        Reply::Close,
    ] {
        let case = Case::new().await;
        case.fake.fail([Fault::Refused(reply.clone())]);
        let outcome = case.commit().await;
        assert_eq!(name(&outcome), "unknown", "{reply:?}: {outcome:?}");
        assert_eq!(case.server.received_at("POST", TABLE).len(), 1, "{reply:?}: it is not sent again");
    }
}

#[tokio::test]
async fn a_commit_that_is_never_answered_is_unknown_when_time_is_up() {
    for reply in [Reply::Hang, Reply::Drip] {
        let case = Case::with(Fake::new(), &[("rest.client.socket-timeout-ms", "200")]).await;
        case.fake.fail([Fault::Refused(reply.clone())]);
        assert_eq!(name(&case.commit().await), "unknown", "{reply:?}");
    }
}

#[tokio::test]
async fn a_commit_that_landed_is_found_whatever_was_answered() {
    for reply in [
        Reply::page(400),
        Reply::page(409),
        Reply::refusal(400, "ValidationException"),
        Reply::refusal(409, "CommitFailedException"),
        Reply::refusal(409, "AlreadyExistsException"),
    ] {
        let case = Case::new().await;
        case.fake.fail([Fault::Applied(reply.clone())]);
        match case.commit().await {
            CommitOutcome::Committed(table) => {
                assert_eq!(table.metadata(), &case.fake.metadata(), "{reply:?}")
            }
            other => panic!("{reply:?}: {other:?}"),
        }
    }
    for reply in [Reply::page(500), Reply::page(502), Reply::refusal(504, "GatewayTimeout"), Reply::Close] {
        let case = Case::new().await;
        case.fake.fail([Fault::Applied(reply.clone())]);
        assert_eq!(name(&case.commit().await), "unknown", "{reply:?}: the caller looks");
    }
}

#[tokio::test]
async fn a_head_that_moved_is_a_conflict() {
    let case = Case::new().await;
    case.fake.change(|metadata| Some(appended(metadata, 7, MAIN_BRANCH)));
    assert_eq!(name(&case.commit().await), "conflict");
    for reply in [Reply::page(400), Reply::page(409), Reply::refusal(400, "BadRequestException")] {
        case.fake.fail([Fault::Refused(reply.clone())]);
        assert_eq!(name(&case.commit().await), "conflict", "{reply:?}");
    }
}

#[tokio::test]
async fn a_stale_sequence_number_is_a_conflict_in_the_catalogs_words_only() {
    let case = Case::new().await;
    case.fake.change(|metadata| Some(appended(metadata, 7, "other")));
    for (reply, expected) in [
        (Reply::refusal(400, "ValidationException"), "conflict"),
        (Reply::refusal(409, "CommitFailedException"), "conflict"),
        (Reply::page(400), "unknown"),
    ] {
        case.fake.fail([Fault::Refused(reply.clone())]);
        assert_eq!(name(&case.commit().await), expected, "{reply:?}");
    }
}

#[tokio::test]
async fn properties_that_were_changed_meanwhile_are_a_conflict() {
    let case = Case::new().await;
    let set = TableUpdate::SetProperties { updates: HashMap::from([("a".to_owned(), "1".to_owned())]) };
    let commit = |fault: Fault| {
        case.fake.fail([fault]);
        case.opened.catalog.commit(&case.base, Vec::new(), vec![set.clone()])
    };
    let refusal = || Fault::Refused(Reply::refusal(409, "CommitFailedException"));
    assert_eq!(name(&commit(refusal()).await), "unknown");
    case.fake.change(|metadata| Some(appended(metadata, 7, MAIN_BRANCH)));
    assert_eq!(name(&commit(refusal()).await), "conflict");
}

#[tokio::test]
async fn throttling_tells_how_long_to_wait() {
    let date =
        (chrono::Utc::now() + chrono::Duration::seconds(100)).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    for (header, least, most) in [(Some("7".to_owned()), 7, 7), (Some(date), 95, 100), (None, 0, 0)] {
        let case = Case::new().await;
        let refusal = Reply::refusal(429, "TooManyRequestsException");
        let refusal = match &header {
            Some(header) => refusal.with("retry-after", header.clone()),
            None => refusal,
        };
        case.fake.fail([Fault::Refused(refusal)]);
        match case.commit().await {
            CommitOutcome::NotApplied { retry_after, .. } => {
                let wait = retry_after.unwrap_or_default();
                assert_eq!(retry_after.is_some(), header.is_some());
                assert!(wait >= Duration::from_secs(least) && wait <= Duration::from_secs(most), "{wait:?}");
            }
            other => panic!("{header:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_proxy_that_asks_to_wait_is_not_asked_before() {
    for status in [429, 503] {
        let case = Case::new().await;
        case.fake.fail([Fault::Refused(Reply::page(status).with("retry-after", "60"))]);
        assert_eq!(name(&case.commit().await), "unknown", "{status}");
        match case.commit().await {
            CommitOutcome::NotApplied { retry_after: Some(left), .. } => {
                assert!(left > Duration::from_secs(50))
            }
            other => panic!("{status}: {other:?}"),
        }
        assert_eq!(case.server.received_at("POST", TABLE).len(), 1, "{status}");
    }
}

#[tokio::test]
async fn what_the_catalog_refuses_for_good_is_rejected() {
    for (reply, kind) in [
        (Reply::refusal(403, "ForbiddenException"), ErrorKind::Configuration),
        (Reply::refusal(404, "NoSuchTableException"), ErrorKind::NotFound),
        (Reply::refusal(404, "NoSuchNamespaceException"), ErrorKind::NotFound),
        (Reply::refusal(405, "UnsupportedOperationException"), ErrorKind::Unsupported),
        (Reply::refusal(406, "UnsupportedOperationException"), ErrorKind::Unsupported),
        (Reply::refusal(413, "PayloadTooLarge"), ErrorKind::Configuration),
    ] {
        let case = Case::new().await;
        case.fake.fail([Fault::Refused(reply.clone())]);
        match case.commit().await {
            CommitOutcome::Rejected(error) => assert_eq!(error.kind(), kind, "{reply:?}"),
            other => panic!("{reply:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_catalog_that_is_not_reached_applied_nothing() {
    let case = Case::new().await;
    let (requirements, updates) = append(case.base.metadata(), 1, MAIN_BRANCH);
    let Case { server, opened, base, fake } = case;
    drop(server);
    // The server's end takes its connections with it: those in the pool are closed.
    tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            match opened.catalog.commit(&base, requirements.clone(), updates.clone()).await {
                CommitOutcome::NotApplied { retry_after: None, cause } => {
                    assert_eq!(cause.kind(), ErrorKind::Unavailable);
                    break;
                }
                CommitOutcome::Unknown(_) => tokio::task::yield_now().await,
                other => panic!("{other:?}"),
            }
        }
    })
    .await
    .unwrap();
    assert!(fake.metadata().current_snapshot().is_none());
}

#[tokio::test]
async fn a_token_that_is_refused_twice_was_not_used() {
    let fake = Fake::new();
    let answers = fake.clone();
    let server = Server::start(move |request| match request.path.as_str() {
        "/v1/oauth/tokens" => Reply::json(200, &json!({"access_token": "new", "expires_in": 100})),
        _ if request.method == "POST" => Reply::refusal(401, "NotAuthorizedException"),
        _ => answers.answer(request),
    })
    .await;
    let opened = open(&server, &[("credential", "secret")]).await.unwrap();
    let base = opened.catalog.load_table(&ident()).await.unwrap();
    let case = Case { fake, server, opened, base };
    assert_eq!(name(&case.commit().await), "not applied");
    assert_eq!(case.server.received_at("POST", TABLE).len(), 2);
}

#[tokio::test]
async fn a_refusal_after_a_proxys_401_proves_nothing() {
    let fake = Fake::new();
    let server = fake.serve().await;
    let opened = open(&server, &[("token", "t"), ("oauth2-server-uri", "/v1/config")]).await.unwrap();
    let base = opened.catalog.load_table(&ident()).await.unwrap();
    let case = Case { fake, server, opened, base };
    // The token is not exchanged there, and so the 401 itself is the answer.
    case.fake.fail([Fault::Refused(Reply::page(401))]);
    assert_eq!(name(&case.commit().await), "unknown");
}

#[tokio::test]
async fn a_key_is_sent_only_where_it_is_known_and_stays_with_the_request() {
    let case = Case::new().await;
    case.commit().await;
    assert_eq!(case.server.received_at("POST", TABLE)[0].header("idempotency-key"), None);

    let fake = Fake::new();
    fake.set_config(json!({"idempotency-key-lifetime": "PT30M"}));
    let case = Case::with(fake, &[]).await;
    let refused = |reply: Reply| Fault::Refused(reply);
    case.fake.fail([
        refused(Reply::page(502)),
        refused(Reply::Close),
        refused(Reply::refusal(400, "BadRequest")),
    ]);
    for _ in 0..3 {
        assert_eq!(name(&case.commit().await), "unknown");
    }
    assert_eq!(name(&case.commit().await), "committed");
    let (requirements, updates) = append(&case.fake.metadata(), 2, MAIN_BRANCH);
    case.opened.catalog.commit(&case.base, requirements, updates).await;

    let sent = case.server.received_at("POST", TABLE);
    let keys: Vec<&str> = sent.iter().map(|request| request.header("idempotency-key").unwrap()).collect();
    assert!(keys.iter().all(|key| uuid::Uuid::parse_str(key).unwrap().get_version_num() == 7), "{keys:?}");
    assert_eq!((keys[0], keys[0]), (keys[1], keys[2]), "the same request, sent again");
    assert!(sent[..3].iter().all(|request| request.body == sent[0].body));
    // The third had an answer for good, which the key would only bring again.
    assert_ne!(keys[2], keys[3]);
    assert_ne!(keys[3], keys[4]);
}
