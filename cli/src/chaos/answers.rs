//! Answers that are made here.

use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::body::{Body, full};
use super::rule::{Answer, Text};

/// An answer as a rule describes it.
pub(super) fn made(answer: &Answer) -> Response<Body> {
    let status = answer.status;
    let mut reply = match &answer.body {
        Text::Default => {
            said(status, &format!("firn chaos: {}\n", status.canonical_reason().unwrap_or("a fault")))
        }
        Text::Given(body) => typed(status, content_type(body), body.clone()),
        Text::Iceberg(kind) => {
            let error = json!({"message": "made by firn chaos", "type": kind, "code": status.as_u16()});
            typed(status, "application/json", json!({ "error": error }).to_string())
        }
    };
    if let Some(time) = answer.retry_after {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(time.as_secs()));
    }
    reply
}

/// A sentence.
pub(super) fn said(status: StatusCode, text: &str) -> Response<Body> {
    typed(status, "text/plain", text.to_owned())
}

/// What S3 says to a client that asks too often.
pub(super) fn slow_down() -> Response<Body> {
    let body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>SlowDown</Code><Message>Please reduce your \
                request rate.</Message><RequestId>firn-chaos</RequestId></Error>";
    typed(StatusCode::SERVICE_UNAVAILABLE, "application/xml", body.to_owned())
}

fn content_type(body: &str) -> &'static str {
    match body.trim_start().chars().next() {
        Some('{' | '[') => "application/json",
        Some('<') => "application/xml",
        _ => "text/plain",
    }
}

fn typed(status: StatusCode, content_type: &'static str, body: String) -> Response<Body> {
    let mut reply = Response::new(full(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}
