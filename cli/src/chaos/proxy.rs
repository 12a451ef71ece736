//! Connections and requests: what no rule acts on is forwarded as it came.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::body::{Body, passing};
use super::choice::Choice;
use super::journal::{Journal, Touched};
use super::rule::Head;
use super::upstream::{BUFFER_BYTES, Lane, NoReply, Upstream};
use super::{answers, faults};

/// How many clients are served at a time; others wait to be accepted.
const MAX_CONNECTIONS: usize = 1_024;

/// How long to wait where the system refuses to accept: it lacks descriptors or memory for the moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Everything that requests share.
#[derive(Debug)]
pub(crate) struct Proxy {
    /// Where requests go.
    pub(crate) upstream: Upstream,
    /// What happens to them.
    pub(crate) choice: Choice,
    /// What happened to them.
    pub(crate) journal: Journal,
    /// KiB that bodies which are kept may take together.
    pub(super) kept_kib: Arc<Semaphore>,
    started: Instant,
}

/// The client is told nothing: its connection is reset.
#[derive(Debug)]
pub(super) struct Reset;

impl Proxy {
    /// Rules' times begin now.
    pub(crate) fn new(upstream: Upstream, choice: Choice, journal: Journal) -> Self {
        let kept_kib = Arc::new(Semaphore::new(faults::ALL_KEPT_KIB));
        Self { upstream, choice, journal, kept_kib, started: Instant::now() }
    }

    /// Serves until it is told to stop; then all connections end.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener, stop: CancellationToken) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let full = connections.len() >= MAX_CONNECTIONS;
            tokio::select! {
                () = stop.cancelled() => break,
                _ = connections.join_next(), if full => {}
                accepted = listener.accept(), if !full => match accepted {
                    Ok((stream, _)) => drop(connections.spawn(Arc::clone(&self).connection(stream))),
                    Err(error) => {
                        tracing::warn!(%error, "a connection cannot be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        connections.shutdown().await;
    }

    async fn connection(self: Arc<Self>, stream: TcpStream) {
        // Without it only small replies would wait a little longer.
        let _ = stream.set_nodelay(true);
        let lane = Arc::new(Lane::default());
        let service = service_fn(move |request| Arc::clone(&self).request(Arc::clone(&lane), request));
        let mut builder = http1::Builder::new();
        builder.preserve_header_case(true).auto_date_header(false).max_buf_size(BUFFER_BYTES);
        let mut connection = builder.serve_connection(TokioIo::new(stream), service);
        let ended = (&mut connection).await;
        if ended.is_err_and(|error| error.source().is_some_and(|cause| cause.is::<Reset>())) {
            // Closing a socket that lingers for no time resets the connection.
            let _ = connection.into_parts().io.into_inner().set_zero_linger();
        }
    }

    async fn request(
        self: Arc<Self>,
        lane: Arc<Lane>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Reset> {
        self.journal.request();
        let head = Head { method: request.method(), uri: request.uri(), headers: request.headers() };
        let hit = self.choice.decide(head, self.started.elapsed());
        let hit = hit.map(|hit| (hit.rule, hit.fault.clone()));
        let request = request.map(passing);
        if let Some((rule, fault)) = hit {
            return faults::act(self, rule, fault, request).await;
        }
        let (method, target) = (request.method().to_string(), request.uri().to_string());
        match lane.send(&self.upstream, request).await {
            Ok(reply) => Ok(reply.map(passing)),
            Err(error) => {
                let note = Some(error.to_string());
                let did = "forward".to_owned();
                self.journal.touched(&Touched {
                    rule: None,
                    method,
                    target,
                    did,
                    upstream_status: None,
                    note,
                });
                self.without_reply(&error)
            }
        }
    }

    /// What a client hears where the upstream gave no reply.
    pub(super) fn without_reply(&self, error: &NoReply) -> Result<Response<Body>, Reset> {
        match error {
            NoReply::Unreachable(_) => {
                self.journal.unreachable();
                let text = format!("firn chaos: {} cannot be reached ({error})\n", self.upstream);
                Ok(answers::said(StatusCode::BAD_GATEWAY, &text))
            }
            NoReply::Broken(_) => Err(Reset),
        }
    }
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client's connection is reset")
    }
}

impl std::error::Error for Reset {}

/// Binds the address to listen at.
pub(crate) async fn bind(address: &str) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}
