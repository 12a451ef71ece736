//! `/metrics`, `/ready` and `/health` over HTTP.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use firn_writer::observe::Status;
use firn_writer::{Event, Observer};
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::health::Health;
use super::metrics::Metrics;

/// Who scrapes and who probes: a few; others wait to be accepted.
const MAX_CONNECTIONS: usize = 64;
/// A client that says nothing for so long is let go.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait where the system refuses to accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is shown.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) metrics: Metrics,
    pub(super) health: Health,
}

/// An answer before it is one of HTTP.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    status: StatusCode,
    content_type: &'static str,
    text: String,
}

const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Pages {
    fn page(&self, method: &Method, path: &str) -> Page {
        let text = |status, text: &str| Page { status, content_type: TEXT, text: format!("{text}\n") };
        if method != Method::GET && method != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered");
        }
        let told = |state: Result<(), String>| match state {
            Ok(()) => text(StatusCode::OK, "ok"),
            Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, &reason),
        };
        match path {
            "/metrics" => match self.metrics.text() {
                Ok(text) => Page { status: StatusCode::OK, content_type: OPEN_METRICS, text },
                Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
            },
            "/ready" => told(self.health.ready()),
            "/health" => told(self.health.healthy()),
            _ => text(StatusCode::NOT_FOUND, "there are /metrics, /ready and /health"),
        }
    }
}

impl Observer for Pages {
    fn on_event(&self, event: &Event) {
        self.metrics.on_event(event);
        self.health.on_event(event);
    }

    fn on_status(&self, status: &Status) {
        self.metrics.on_status(status);
    }
}

/// Serves until it is told to stop; then all connections end.
pub(super) async fn serve(listener: TcpListener, pages: Arc<Pages>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let full = connections.len() >= MAX_CONNECTIONS;
        tokio::select! {
            () = stop.cancelled() => break,
            _ = connections.join_next(), if full => {}
            accepted = listener.accept(), if !full => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(stream, Arc::clone(&pages)))),
                Err(error) => {
                    tracing::warn!(%error, "a connection for metrics cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, pages: Arc<Pages>) {
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let Page { status, content_type, text } = pages.page(request.method(), request.uri().path());
        let mut reply = Response::new(Full::new(Bytes::from(text)));
        *reply.status_mut() = status;
        reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        std::future::ready(Ok::<_, Infallible>(reply))
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    // A client that goes away in the middle is no event.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

#[cfg(test)]
mod tests {
    use firn_table::ledger::{CommitId, TopicPartition};
    use firn_writer::observe::{CommitEvent, Phases, Rejection};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use uuid::Uuid;

    use super::*;

    fn pages() -> Arc<Pages> {
        Arc::new(Pages { metrics: Metrics::new(), health: Health::default() })
    }

    fn commit() -> Event {
        Event::Committed(Box::new(CommitEvent {
            snapshot_id: 5,
            commit_id: CommitId { instance: Uuid::nil(), counter: 1 },
            ranges: Vec::new(),
            rows: 100,
            rejected: 3,
            files: 2,
            bytes: 12_000,
            file_sizes: vec![5_000, 7_000],
            visible_at_ms: 10_000,
            produced_at_ms: vec![(9_000, 90), (7_000, 13)],
            phases: Phases { commit: Duration::from_millis(30), ..Phases::default() },
            attempts: 3,
            conflicts: 2,
        }))
    }

    fn rejection(code: &str) -> Event {
        let partition = TopicPartition { topic: "t".to_owned(), partition: 0 };
        let (path, reason) = (String::new(), String::new());
        Event::Rejected(Rejection { partition, offset: 1, code: code.to_owned(), path, reason })
    }

    fn metrics(pages: &Pages) -> String {
        pages.page(&Method::GET, "/metrics").text
    }

    #[test]
    fn a_commit_is_counted_by_messages_rows_files_and_latency() {
        let pages = pages();
        pages.on_event(&commit());
        let text = metrics(&pages);
        for line in [
            "firn_writer_messages_total 103",
            "firn_writer_rows_total 100",
            "firn_writer_files_total 2",
            "firn_writer_bytes_total 12000",
            "firn_writer_commits_total 1",
            "firn_writer_conflicts_total 2",
            "firn_writer_commit_seconds_count 1",
            "firn_writer_commit_seconds_bucket{le=\"0.02\"} 0",
            "firn_writer_commit_seconds_bucket{le=\"0.04\"} 1",
            "firn_writer_produce_to_visible_seconds_count 103",
            "firn_writer_produce_to_visible_seconds_sum 129.0",
            "firn_writer_produce_to_visible_seconds_bucket{le=\"1.28\"} 90",
            "firn_writer_produce_to_visible_seconds_bucket{le=\"5.12\"} 103",
            "firn_writer_file_bytes_bucket{le=\"4096.0\"} 0",
            "firn_writer_file_bytes_bucket{le=\"8192.0\"} 2",
            "firn_writer_file_bytes_bucket{le=\"+Inf\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "`{line}` is missing:\n{text}");
        }
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn codes_are_a_closed_set_and_there_from_the_start() {
        let pages = pages();
        assert!(metrics(&pages).contains("firn_writer_rejected_messages_total{code=\"out-of-range\"} 0\n"));
        let lines = metrics(&pages).lines().count();
        pages.on_event(&rejection("out-of-range"));
        (0..50).for_each(|n| pages.on_event(&rejection(&format!("unheard-of-{n}"))));
        let text = metrics(&pages);
        assert!(text.contains("firn_writer_rejected_messages_total{code=\"out-of-range\"} 1\n"), "{text}");
        assert!(text.contains("firn_writer_rejected_messages_total{code=\"other\"} 50\n"), "{text}");
        assert_eq!(text.lines().count(), lines, "no event makes a new series");
    }

    #[test]
    fn a_status_sets_the_gauges() {
        let pages = pages();
        let mut status = Status::default();
        status.oldest_row_age = Duration::from_millis(1_500);
        status.memory_bytes = 77;
        pages.on_status(&status);
        let text = metrics(&pages);
        assert!(text.contains("firn_writer_oldest_row_age_seconds 1.5\n"), "{text}");
        assert!(text.contains("firn_writer_memory_bytes 77\n"), "{text}");
    }

    #[test]
    fn a_writer_is_ready_while_it_runs() {
        let pages = pages();
        let ready = || pages.page(&Method::GET, "/ready").status;
        assert_eq!(ready(), StatusCode::SERVICE_UNAVAILABLE);
        pages.on_event(&Event::Started { instance: Uuid::nil() });
        assert_eq!(ready(), StatusCode::OK);
        pages.on_event(&Event::Stopping);
        assert_eq!(ready(), StatusCode::SERVICE_UNAVAILABLE);
    }

    #[test]
    fn a_broken_promise_is_unhealthy_with_its_reason_until_it_is_kept_again() {
        let pages = pages();
        assert_eq!(pages.page(&Method::GET, "/health").status, StatusCode::OK);
        let reason = "the catalog is away".to_owned();
        pages.on_event(&Event::Unhealthy { oldest_row_age: Duration::from_secs(61), reason });
        let page = pages.page(&Method::GET, "/health");
        assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(page.text.contains("61.0 s") && page.text.contains("the catalog is away"), "{}", page.text);
        pages.on_event(&Event::Healthy);
        assert_eq!(pages.page(&Method::GET, "/health").status, StatusCode::OK);
    }

    #[test]
    fn other_paths_and_methods_are_refused() {
        let pages = pages();
        assert_eq!(pages.page(&Method::GET, "/").status, StatusCode::NOT_FOUND);
        assert_eq!(pages.page(&Method::POST, "/metrics").status, StatusCode::METHOD_NOT_ALLOWED);
    }

    #[tokio::test]
    async fn pages_are_served_until_the_stop() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(listener, pages(), stop.clone()));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        assert!(reply.contains("application/openmetrics-text"), "{reply}");
        assert!(reply.contains("\nfirn_writer_rows_total 0\n"), "{reply}");
        stop.cancel();
        serving.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }
}
