//! Each fault.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::servers::{Origin, Standing};

async fn standing(rules: &[&str]) -> (Origin, Standing) {
    let origin = Origin::start().await;
    let standing = Standing::before(origin.address, rules).await;
    (origin, standing)
}

#[tokio::test]
async fn status_answers_here_and_forwards_nothing() {
    let rule = "POST /v1/** : status 429 body '{\"a\": 1}' retry-after 30s once";
    let (origin, standing) = standing(&[rule]).await;
    let heard = standing.send("POST", "/v1/x", "body").await.unwrap();
    assert_eq!((heard.status, heard.text().as_str()), (429, "{\"a\": 1}"));
    assert_eq!((heard.header("retry-after"), heard.header("content-type")), ("30", "application/json"));
    assert!(origin.got().is_empty());
    // Once.
    assert_eq!(standing.send("POST", "/v1/x", "body").await.unwrap().status, 201);
    let log = standing.log();
    assert_eq!(log.len(), 1);
    assert_eq!(
        (&log[0]["rule"], &log[0]["method"], &log[0]["target"]),
        (&json!(1), &json!("POST"), &json!("/v1/x"))
    );
    assert_eq!(log[0]["did"], "status 429 body '{\"a\": 1}' retry-after 30s");
}

#[tokio::test]
async fn a_large_request_that_is_refused_hears_the_answer() {
    let (origin, standing) = standing(&["PUT /** : slowdown"]).await;
    let heard = standing.send("PUT", "/b/k", &"x".repeat(8 << 20)).await.unwrap();
    assert_eq!((heard.status, heard.header("content-type")), (503, "application/xml"));
    assert!(heard.text().contains("<Code>SlowDown</Code>"), "{}", heard.text());
    assert!(origin.got().is_empty());
}

#[tokio::test]
async fn apply_then_forwards_and_says_something_else() {
    let rules = [
        "POST /500 : apply-then 500",
        "POST /409 : apply-then 409 iceberg CommitFailedException",
        "POST /reset : apply-then reset",
    ];
    let (origin, standing) = standing(&rules).await;
    let heard = standing.send("POST", "/500", "a").await.unwrap();
    assert_eq!((heard.status, heard.header("content-type")), (500, "text/plain"));
    let heard = standing.send("POST", "/409", "b").await.unwrap();
    let error: serde_json::Value = serde_json::from_slice(&heard.body).unwrap();
    assert_eq!(heard.status, 409);
    assert_eq!(
        (&error["error"]["type"], &error["error"]["code"]),
        (&json!("CommitFailedException"), &json!(409))
    );
    standing.send("POST", "/reset", "c").await.unwrap_err();
    let bodies: Vec<_> = origin.got().into_iter().map(|got| got.body.unwrap()).collect();
    assert_eq!(bodies, ["a", "b", "c"]);
    let statuses: Vec<_> = standing.log().iter().map(|line| line["upstream_status"].clone()).collect();
    assert_eq!(statuses, [json!(201), json!(202), json!(203)]);
}

#[tokio::test]
async fn reset_forwards_nothing() {
    let (origin, standing) = standing(&["GET /** : reset first 2"]).await;
    standing.send("GET", "/x", "").await.unwrap_err();
    standing.send("GET", "/x", "").await.unwrap_err();
    assert!(origin.got().is_empty());
    assert_eq!(standing.send("GET", "/x", "").await.unwrap().status, 201);
}

#[tokio::test]
async fn a_delayed_request_is_forwarded_after_its_time() {
    let (_origin, standing) = standing(&["POST /** : delay 200ms"]).await;
    let began = Instant::now();
    let heard = standing.send("POST", "/x", "body").await.unwrap();
    assert_eq!((heard.status, heard.text().as_str()), (201, "body"));
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn a_delayed_request_is_forwarded_although_its_client_is_gone() {
    let (origin, standing) = standing(&["POST /** : delay 300ms"]).await;
    let mut client = TcpStream::connect(standing.address).await.unwrap();
    client.write_all(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(client);
    assert!(origin.got().is_empty());
    origin.wait_for(1).await;
    assert_eq!(origin.got()[0].body.as_deref(), Some(&b"body"[..]));
}

#[tokio::test]
async fn late_answers_at_once_and_forwards_later() {
    let (origin, standing) = standing(&["POST /** : late 200ms once"]).await;
    let began = Instant::now();
    assert_eq!(standing.send("POST", "/x", "late").await.unwrap().status, 504);
    assert!(began.elapsed() < Duration::from_millis(200));
    assert_eq!(standing.send("POST", "/x", "next").await.unwrap().status, 201);
    origin.wait_for(2).await;
    let bodies: Vec<_> = origin.got().into_iter().map(|got| got.body.unwrap()).collect();
    assert_eq!(bodies, ["next", "late"]);
}

#[tokio::test]
async fn hang_takes_the_request_and_never_answers() {
    let (origin, standing) = standing(&["POST /** : hang"]).await;
    let sending = standing.send("POST", "/x", "body");
    assert!(tokio::time::timeout(Duration::from_millis(300), sending).await.is_err());
    assert!(origin.got().is_empty());
    assert_eq!(standing.log()[0]["did"], "hang");
}

#[tokio::test]
async fn truncate_ends_the_reply_within_its_declared_length() {
    let (_origin, standing) = standing(&["GET /** : truncate 100", "PUT /** : truncate 100"]).await;
    let heard = standing.send("GET", "/x", "").await.unwrap();
    assert_eq!((heard.declared_length(), heard.body.len(), heard.whole), (Some(1_000), 100, false));
    // What is shorter is not cut.
    let heard = standing.send("PUT", "/x", "body").await.unwrap();
    assert!(heard.whole && heard.text() == "body");
}

#[tokio::test]
async fn truncate_request_ends_it_on_both_sides() {
    let (origin, standing) = standing(&["PUT /** : truncate-request 100"]).await;
    standing.send("PUT", "/x", &"x".repeat(1_000)).await.unwrap_err();
    origin.wait_for(1).await;
    assert!(origin.got()[0].body.is_none());
    assert_eq!(standing.send("PUT", "/x", "short").await.unwrap().status, 202);
}

#[tokio::test]
async fn slow_passes_both_bodies_at_its_rate() {
    let (origin, standing) = standing(&["PUT /** : slow 10KiB/s"]).await;
    let began = Instant::now();
    let body = "x".repeat(2_048);
    let heard = standing.send("PUT", "/x", &body).await.unwrap();
    assert!(heard.whole && heard.text() == body);
    assert_eq!(heard.declared_length(), Some(2_048));
    // 2 KiB there and 2 KiB back.
    assert!(began.elapsed() >= Duration::from_millis(390), "{:?}", began.elapsed());
    assert_eq!(origin.got()[0].headers["content-length"], "2048");
    // A request without a body stays one.
    let before = origin.got().len();
    standing.send("PUT", "/y", "").await.unwrap();
    assert!(!origin.got()[before].headers.contains_key("transfer-encoding"));
}

#[tokio::test]
async fn drop_properties_forwards_a_commit_without_them() {
    let (origin, standing) = standing(&["POST /v1/**/tables/* : drop-properties firn."]).await;
    let commit =
        json!({"updates": [{"action": "set-properties", "updates": {"firn.cursor.w": "1", "a": "b"}}]});
    standing.send("POST", "/v1/namespaces/db/tables/t", &commit.to_string()).await.unwrap();
    standing.send("POST", "/v1/namespaces/db/tables/t", "no json").await.unwrap();
    let got = origin.got();
    let left = json!({"updates": [{"action": "set-properties", "updates": {"a": "b"}}]}).to_string();
    assert_eq!(got[0].body.as_deref(), Some(left.as_bytes()));
    assert_eq!(got[0].headers["content-length"], left.len().to_string().as_str());
    assert_eq!(got[1].body.as_deref(), Some(&b"no json"[..]));
    let notes: Vec<_> = standing.log().iter().map(|line| line["note"].clone()).collect();
    assert_eq!(notes, [json!("1 properties removed"), json!("its body is no JSON: forwarded as it is")]);
}

#[tokio::test]
async fn duplicate_sends_twice_and_passes_the_second_reply_on() {
    let (origin, standing) = standing(&["POST /** : duplicate"]).await;
    let heard = standing.send("POST", "/x?a=b%20c", "body").await.unwrap();
    assert_eq!((heard.status, heard.text().as_str()), (202, "body"));
    let got = origin.got();
    assert_eq!(got.len(), 2);
    for one in got {
        assert_eq!((one.method.as_str(), one.target.as_str()), ("POST", "/x?a=b%20c"));
        assert_eq!(one.headers["host"], "origin.test");
        assert_eq!(one.body.as_deref(), Some(&b"body"[..]));
    }
    assert_eq!(standing.log()[0]["note"], "the first reply was 201");
}

#[tokio::test]
async fn a_body_that_is_too_long_to_be_kept_is_forwarded_as_it_is() {
    let (origin, standing) = standing(&["PUT /** : duplicate"]).await;
    let body = "x".repeat((64 << 20) + 1);
    assert_eq!(standing.send("PUT", "/x", &body).await.unwrap().status, 201);
    assert_eq!(origin.got()[0].body.as_ref().map(bytes::Bytes::len), Some(body.len()));
    assert!(standing.log()[0]["note"].as_str().unwrap_or_default().contains("longer than"));
}

#[tokio::test]
async fn a_fault_in_front_of_an_absent_upstream_says_so() {
    let (origin, _) = standing(&[]).await;
    let address = origin.address;
    drop(origin);
    tokio::task::yield_now().await;
    let standing = Standing::before(address, &["POST /a : duplicate", "POST /b : apply-then 500"]).await;
    assert_eq!(standing.send("POST", "/a", "x").await.unwrap().status, 502);
    assert_eq!(standing.send("POST", "/b", "x").await.unwrap().status, 500);
    let log = standing.log();
    assert!(log[1]["note"].as_str().unwrap_or_default().contains("no connection"), "{log:?}");
    assert!(log[1].get("upstream_status").is_none());
}
