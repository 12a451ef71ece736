//! The server behind the proxy.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use url::Url;

use super::body::Body;
use crate::exit::Failure;

/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// What is kept of a connection's bytes in memory.
pub(super) const BUFFER_BYTES: usize = 64 * 1024;

/// Whose name requests carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HostHeader {
    /// The one that the client wrote: signatures stay valid.
    #[default]
    Keep,
    /// The upstream's own: for servers that look at it.
    Upstream,
}

/// Where requests go.
pub(crate) struct Upstream {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    host_header: Option<HeaderValue>,
}

/// Why a request has no reply.
#[derive(Debug)]
pub(super) enum NoReply {
    /// There is no connection: nothing was sent.
    Unreachable(io::Error),
    /// The connection broke.
    Broken(hyper::Error),
}

/// A connection on which one request after the other is sent.
pub(super) type Sender = SendRequest<Body>;

impl Upstream {
    /// The upstream of a URL without a path.
    pub(crate) fn new(url: &str, host: HostHeader) -> anyhow::Result<Self> {
        let wrong = |what: &str| {
            Failure::usage(format!(
                "`{url}` as upstream {what}; write for instance http://127.0.0.1:8181, since paths are passed on as \
                 they are"
            ))
        };
        let parsed = Url::parse(url).map_err(|error| wrong(&format!("is no URL ({error})")))?;
        let name = parsed.host_str().ok_or_else(|| wrong("names no host"))?;
        let port = parsed.port_or_known_default().ok_or_else(|| wrong("names no port"))?;
        if parsed.path() != "/" || parsed.query().is_some() || !parsed.username().is_empty() {
            return Err(wrong("has more than scheme, host and port").into());
        }
        let bare = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let tls = match parsed.scheme() {
            "http" => None,
            "https" => Some((connector()?, ServerName::try_from(bare.clone())?)),
            _ => return Err(wrong("is neither http nor https").into()),
        };
        let authority = &parsed[url::Position::BeforeHost..url::Position::AfterPort];
        let host_header =
            (host == HostHeader::Upstream).then(|| HeaderValue::from_str(authority)).transpose()?;
        Ok(Self { host: bare, port, tls, host_header })
    }

    /// A new connection.
    pub(super) async fn connect(&self) -> Result<Sender, NoReply> {
        let connecting = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            stream.set_nodelay(true)?;
            match &self.tls {
                None => Ok(handshake(stream).await),
                Some((connector, name)) => {
                    Ok(handshake(connector.connect(name.clone(), stream).await?).await)
                }
            }
        };
        match tokio::time::timeout(CONNECT_LIMIT, connecting).await {
            Ok(Ok(connected)) => connected.map_err(NoReply::Broken),
            Ok(Err(error)) => Err(NoReply::Unreachable(error)),
            Err(_) => Err(NoReply::Unreachable(io::ErrorKind::TimedOut.into())),
        }
    }

    /// A request as the upstream gets it: with the target as it was sent.
    pub(super) fn addressed(&self, mut request: Request<Body>) -> Request<Body> {
        if let Some(target) = request.uri().path_and_query().cloned() {
            *request.uri_mut() = Uri::from(target);
        }
        if let Some(host) = &self.host_header {
            request.headers_mut().insert(HOST, host.clone());
        }
        request
    }

    /// Sends a request on a connection of its own.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, NoReply> {
        let mut sender = self.connect().await?;
        let reply = sender.send_request(self.addressed(request)).await.map_err(NoReply::Broken)?;
        Ok(reply.map(super::body::passing))
    }
}

async fn handshake<S>(stream: S) -> Result<Sender, hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.preserve_header_case(true).max_buf_size(BUFFER_BYTES);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    // It ends with its sender; how it broke is told to the request that was on it.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

fn connector() -> anyhow::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(native.certs);
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .context("TLS cannot be set up")?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Display for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        write!(f, "{scheme}://{host}:{}", self.port)
    }
}

impl std::fmt::Display for NoReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable(error) => write!(f, "no connection: {error}"),
            Self::Broken(error) => write!(f, "the connection broke: {error}"),
        }
    }
}

/// The connection of a client's connection: made when the first request comes, and again where the upstream closed it.
#[derive(Debug, Default)]
pub(super) struct Lane {
    sender: tokio::sync::Mutex<Option<Sender>>,
}

impl Lane {
    /// Sends a request; one that was not sent because the upstream had closed the connection meanwhile is sent again.
    pub(super) async fn send(
        &self,
        upstream: &Upstream,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, NoReply> {
        let mut request = upstream.addressed(request);
        let mut kept = self.sender.lock().await;
        if let Some(mut sender) = kept.take()
            && sender.ready().await.is_ok()
        {
            match sender.try_send_request(request).await {
                Ok(reply) => {
                    *kept = Some(sender);
                    return Ok(reply);
                }
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(NoReply::Broken(failed.into_error())),
                },
            }
        }
        let mut sender = upstream.connect().await?;
        let reply = sender.send_request(request).await.map_err(NoReply::Broken)?;
        *kept = Some(sender);
        Ok(reply)
    }
}
