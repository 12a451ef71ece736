//! An HTTP server that answers as it is told, and remembers what it was asked.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

type Body = http_body_util::combinators::BoxBody<Bytes, std::io::Error>;
type Answers = Arc<dyn Fn(&Received) -> Reply + Send + Sync>;

/// A request as it came in; nothing in it is decoded.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: Bytes,
}

impl Received {
    pub(super) fn is(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path == path
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// What the server does with a request.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    Answer {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Bytes,
    },
    /// Never answers.
    Hang,
    /// Closes the connection instead.
    Close,
    /// Answers, and closes the connection in the middle of the body.
    Cut {
        status: u16,
        body: Bytes,
    },
    /// Answers, and sends a space now and then for ever.
    Drip,
}

impl Reply {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::Answer { status, headers: Vec::new(), body: body.to_string().into() }
    }

    /// A refusal in the catalog's own words.
    pub(super) fn refusal(status: u16, kind: &str) -> Self {
        Self::json(
            status,
            &json!({"error": {"message": format!("no: {kind}"), "type": kind, "code": status}}),
        )
    }

    /// A page of a proxy.
    pub(super) fn page(status: u16) -> Self {
        Self::Answer { status, headers: Vec::new(), body: format!("<html>{status}</html>").into() }
    }

    pub(super) fn with(self, name: &'static str, value: impl Into<String>) -> Self {
        match self {
            Self::Answer { status, mut headers, body } => {
                headers.push((name, value.into()));
                Self::Answer { status, headers, body }
            }
            other => other,
        }
    }
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

impl Server {
    pub(super) async fn start(answers: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(accept(listener, Arc::new(answers), received.clone()));
        Self { address, received, task }
    }

    pub(super) fn uri(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked so far, in order.
    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The requests of a method and path so far.
    pub(super) fn received_at(&self, method: &str, path: &str) -> Vec<Received> {
        self.received().into_iter().filter(|request| request.is(method, path)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, answers: Answers, received: Arc<Mutex<Vec<Received>>>) {
    // Dropped with this task, and the connections with it.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (answers, received) = (answers.clone(), received.clone());
        connections.spawn(async move {
            let service = service_fn(move |request| serve(request, answers.clone(), received.clone()));
            // A connection that is closed on purpose ends in an error.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn serve(
    request: Request<Incoming>,
    answers: Answers,
    received: Arc<Mutex<Vec<Received>>>,
) -> Result<Response<Body>, std::io::Error> {
    let (parts, body) = request.into_parts();
    let header = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let request = Received {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers.iter().map(header).collect(),
        body: body.collect().await.map_err(std::io::Error::other)?.to_bytes(),
    };
    received.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
    let (status, headers, body) = match answers(&request) {
        Reply::Answer { status, headers, body } => (status, headers, whole(body)),
        Reply::Hang => std::future::pending().await,
        Reply::Close => return Err(std::io::Error::other("closed on purpose")),
        Reply::Cut { status, body } => (status, Vec::new(), cut(&body)),
        Reply::Drip => (200, Vec::new(), drip()),
    };
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(body).map_err(std::io::Error::other)
}

fn whole(body: Bytes) -> Body {
    http_body_util::Full::new(body).map_err(|never: Infallible| match never {}).boxed()
}

fn cut(body: &Bytes) -> Body {
    let half = Ok(Frame::data(body.slice(..body.len() / 2)));
    let pieces = stream::iter([half]).chain(stream::once(async {
        // The half is on its way before the connection closes.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        Err(std::io::Error::other("closed on purpose"))
    }));
    BodyExt::boxed(StreamBody::new(pieces))
}

fn drip() -> Body {
    let drops = stream::unfold((), |()| async {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        Some((Ok(Frame::data(Bytes::from_static(b" "))), ()))
    });
    BodyExt::boxed(StreamBody::new(drops))
}
