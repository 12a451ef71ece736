//! A server behind the proxy, the proxy, and a client.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::header::{CONTENT_LENGTH, HeaderMap};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::chaos::journal::Journal;
use crate::chaos::parse::{of_options, parse};
use crate::chaos::{Choice, HostHeader, Proxy, Upstream};
use crate::output::Format;

/// How long anything may take here.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// A task that ends with what it returns.
fn task(serving: impl Future<Output = ()> + Send + 'static) -> JoinSet<()> {
    let mut task = JoinSet::new();
    task.spawn(serving);
    task
}

/// What the server got.
#[derive(Clone, Debug)]
pub(super) struct Got {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    /// `None` where it broke off.
    pub(super) body: Option<Bytes>,
}

/// A server that remembers requests and answers `201`, `202`, … with the body that it got; to GETs with 1,000 bytes.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
    _serving: JoinSet<()>,
}

impl Origin {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let got = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&got);
        let serving = async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let seen = Arc::clone(&seen);
                let service = service_fn(move |request| answer(Arc::clone(&seen), request));
                tokio::spawn(server::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        };
        Self { address, got, _serving: task(serving) }
    }

    /// What came until now.
    pub(super) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until so many requests have come.
    pub(super) async fn wait_for(&self, requests: usize) {
        let come = async {
            while self.got().len() < requests {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LIMIT, come).await.expect("the requests come");
    }
}

async fn answer(
    seen: Arc<Mutex<Vec<Got>>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|collected| collected.to_bytes()).ok();
    let reply =
        if head.method == "GET" { vec![b'x'; 1_000].into() } else { body.clone().unwrap_or_default() };
    let number = {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (method, target) = (head.method.to_string(), head.uri.to_string());
        seen.push(Got { method, target, headers: head.headers, body });
        seen.len()
    };
    let mut response = Response::new(Full::new(reply));
    *response.status_mut() = StatusCode::from_u16(200 + u16::try_from(number).unwrap()).unwrap();
    Ok(response)
}

/// The proxy at work. It ends with this value.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) address: SocketAddr,
    pub(super) proxy: Arc<Proxy>,
    log: tempfile::NamedTempFile,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl Standing {
    pub(super) async fn before(origin: SocketAddr, rules: &[&str]) -> Self {
        let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let choice = Choice::new(parse(&of_options(&rules)).unwrap(), 1);
        let upstream = Upstream::new(&format!("http://{origin}"), HostHeader::Keep).unwrap();
        let log = tempfile::NamedTempFile::new().unwrap();
        let journal = Journal::open(Some(log.path()), Format::Json).unwrap();
        let proxy = Arc::new(Proxy::new(upstream, choice, journal));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = task(Arc::clone(&proxy).serve(listener, stop.clone()));
        Self { address, proxy, log, stop, serving }
    }

    /// The lines of the log.
    pub(super) fn log(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.log.path()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Ends it as a signal does.
    pub(super) async fn stop(&mut self) {
        self.stop.cancel();
        tokio::time::timeout(LIMIT, self.serving.join_next()).await.expect("it ends").unwrap().unwrap();
    }

    /// Sends a request on a connection of its own.
    pub(super) async fn send(&self, method: &str, target: &str, body: &str) -> Result<Heard, hyper::Error> {
        let sending = async {
            let stream = TcpStream::connect(self.address).await.unwrap();
            let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            let request = Request::builder().method(method).uri(target).header("host", "origin.test");
            let reply =
                sender.send_request(request.body(Full::<Bytes>::from(body.to_owned())).unwrap()).await?;
            let (head, mut body) = reply.into_parts();
            let mut heard =
                Heard { status: head.status.as_u16(), headers: head.headers, body: Vec::new(), whole: true };
            while let Some(frame) = body.frame().await {
                match frame {
                    Ok(frame) => heard.body.extend(frame.into_data().unwrap_or_default()),
                    Err(_) => heard.whole = false,
                }
            }
            Ok(heard)
        };
        tokio::time::timeout(LIMIT, sending).await.expect("an end within the limit")
    }
}

/// What the client heard.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// Whether the body came to its end.
    pub(super) whole: bool,
}

impl Heard {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(super) fn declared_length(&self) -> Option<usize> {
        self.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }
}

/// A server that answers every request on a connection with the same bytes, and remembers what it read.
///
/// `ends` tells from what was read whether a request is over.
#[derive(Debug)]
pub(super) struct RawOrigin {
    pub(super) address: SocketAddr,
    read: Arc<Mutex<Vec<u8>>>,
    connections: Arc<Mutex<usize>>,
    _serving: JoinSet<()>,
}

impl RawOrigin {
    pub(super) async fn start(reply: &'static [u8], ends: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (read, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let (all, count) = (Arc::clone(&read), Arc::clone(&connections));
        let serving = async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                *count.lock().unwrap() += 1;
                let all = Arc::clone(&all);
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    let mut buffer = [0; 4096];
                    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                        all.lock().unwrap().extend_from_slice(&buffer[..length]);
                        request.extend_from_slice(&buffer[..length]);
                        if request.ends_with(ends) {
                            request.clear();
                            stream.write_all(reply).await.unwrap();
                        }
                    }
                });
            }
        };
        Self { address, read, connections, _serving: task(serving) }
    }

    pub(super) fn read(&self) -> String {
        String::from_utf8_lossy(&self.read.lock().unwrap()).into_owned()
    }

    pub(super) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

/// Writes bytes and reads until what was read ends so.
pub(super) async fn exchange(stream: &mut TcpStream, request: &[u8], ends: &[u8]) -> String {
    let exchanging = async {
        stream.write_all(request).await.unwrap();
        let mut read = Vec::new();
        let mut buffer = [0; 4096];
        while !read.ends_with(ends) {
            match stream.read(&mut buffer).await.unwrap() {
                0 => break,
                length => read.extend_from_slice(&buffer[..length]),
            }
        }
        String::from_utf8_lossy(&read).into_owned()
    };
    tokio::time::timeout(LIMIT, exchanging).await.expect("an answer within the limit")
}
