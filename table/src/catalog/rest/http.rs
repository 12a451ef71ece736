//! One request over HTTP: with deadlines, without redirects, and with a bound on what is read.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, Url};

use super::answer::Answer;
use super::retry_after;
use super::settings::{RestSettings, Timeouts};
use crate::{Error, ErrorKind, Result};

const USER_AGENT: &str = concat!("firn/", env!("CARGO_PKG_VERSION"));
/// Connections that were idle longer are not used again: servers close them, and a request that meets the close is one
/// whose outcome nobody knows.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer: the metadata of a table with a hundred thousand snapshots.
const MAX_BODY_BYTES: usize = 512 << 20;
/// The largest refusal that is read.
const MAX_REFUSAL_BYTES: usize = 1 << 20;

/// A client with its deadlines.
#[derive(Debug, Clone)]
pub(super) struct Http {
    client: Client,
    timeouts: Timeouts,
}

/// A request, complete but for the token.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

#[derive(Debug, Clone)]
pub(super) enum Body {
    Empty,
    Json(Bytes),
    /// Holds secrets: only for requests to a token server.
    Form(Form),
}

/// Fields of a form, which are not shown.
#[derive(Clone)]
pub(super) struct Form(pub(super) Vec<(&'static str, String)>);

impl std::fmt::Debug for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Why there is no complete answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing was sent.
    NotSent(Error),
    /// The request, or a part of it, was sent.
    Lost(Error),
}

impl Failure {
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::NotSent(error) | Self::Lost(error) => error,
        }
    }
}

impl Call {
    pub(super) fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: Body::Empty }
    }

    pub(super) fn json(mut self, body: Bytes) -> Self {
        self.body = Body::Json(body);
        self
    }

    /// What is requested, for messages: the query may be long.
    fn describe(&self) -> String {
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{} {}{port}{}", self.method, self.url.host_str().unwrap_or_default(), self.url.path())
    }
}

impl Http {
    /// A client with the custom headers. It follows no redirect (a POST would become a GET, and a token go elsewhere)
    /// and looks at no variable of the environment for a proxy.
    pub(super) fn new(settings: &RestSettings) -> Result<Self> {
        let client = Client::builder()
            .user_agent(USER_AGENT)
            .default_headers(settings.headers.clone())
            .connect_timeout(settings.timeouts.connect)
            .timeout(settings.timeouts.request)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .build()
            .map_err(|error| {
                let message = "no HTTP client can be made: see whether the system has root certificates";
                Error::new(ErrorKind::Configuration, message).with_source(error)
            })?;
        Ok(Self { client, timeouts: settings.timeouts })
    }

    /// Sends a request once. `authorization` is put in.
    pub(super) async fn send(
        &self,
        call: &Call,
        authorization: Option<HeaderValue>,
    ) -> Result<Answer, Failure> {
        let mut request =
            self.client.request(call.method.clone(), call.url.clone()).headers(call.headers.clone());
        if let Some(authorization) = authorization {
            request = request.header(reqwest::header::AUTHORIZATION, authorization);
        }
        request = match &call.body {
            Body::Empty => request,
            Body::Json(bytes) => {
                request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(bytes.clone())
            }
            Body::Form(Form(fields)) => request.form(fields),
        };
        let response = request.send().await.map_err(|error| self.failed(call, error))?;
        self.answer(call, response).await
    }

    async fn answer(&self, call: &Call, mut response: Response) -> Result<Answer, Failure> {
        let status = response.status().as_u16();
        let limit = if response.status().is_success() { MAX_BODY_BYTES } else { MAX_REFUSAL_BYTES };
        let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = header.and_then(|header| retry_after::wait(header, chrono::Utc::now()));
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(call, error))? {
            if body.len() + chunk.len() > limit {
                let message =
                    format!("{}: the answer is longer than {limit} bytes and was not read", call.describe());
                return Err(Failure::Lost(Error::new(ErrorKind::Unavailable, message)));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, retry_after, body: body.freeze(), doubtful: false })
    }

    /// Whether a request was sent: a connection that did not come about carries none.
    fn failed(&self, call: &Call, error: reqwest::Error) -> Failure {
        let error = error.without_url();
        let what = call.describe();
        let limit = |limit: Duration| format!("within {} ms", limit.as_millis());
        let unavailable = |message| Error::new(ErrorKind::Unavailable, message);
        if error.is_builder() {
            let message = format!("{what}: the request cannot be made");
            return Failure::NotSent(Error::new(ErrorKind::Configuration, message).with_source(error));
        }
        if error.is_connect() {
            let within =
                if error.is_timeout() { format!(" {}", limit(self.timeouts.connect)) } else { String::new() };
            let message = format!("{what}: no connection{within}: {}", root_cause(&error));
            return Failure::NotSent(unavailable(message).with_source(error));
        }
        if error.is_timeout() {
            let message = format!("{what}: no answer {}: the server hangs", limit(self.timeouts.request));
            return Failure::Lost(unavailable(message).with_source(error));
        }
        let message =
            format!("{what}: the connection broke before the answer was complete: {}", root_cause(&error));
        Failure::Lost(unavailable(message).with_source(error))
    }
}

/// What lies at the bottom of an error: the operating system's words.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
