//! Requests to one catalog: with its prefix, headers and tokens.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Method, Url};

use super::answer::{Answer, Refusal};
use super::http::{Call, Failure, Http};
use super::oauth::bearer;
use super::paths::Paths;
use super::server_config::ServerConfig;
use super::settings::{RestSettings, for_stores};
use super::token::{Token, TokenSource};
use crate::{Error, ErrorKind, Result};

/// Tries of a request that changes nothing.
const READ_TRIES: u32 = 4;
/// The first wait between them; doubled.
const READ_WAIT: Duration = Duration::from_millis(100);
/// The longest wait between them: the callers of a read have deadlines of their own.
const MAX_READ_WAIT: Duration = Duration::from_secs(5);

/// A session with a catalog. Cheap to share.
pub(in crate::catalog) struct RestSession {
    settings: RestSettings,
    http: Http,
    tokens: Option<Arc<TokenSource>>,
    paths: Paths,
    config: ServerConfig,
    store_properties: HashMap<String, String>,
}

impl fmt::Debug for RestSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestSession").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl RestSession {
    /// Asks the server for its configuration and lays the client's properties over its defaults and under its
    /// overrides.
    ///
    /// # Errors
    /// `Configuration` where a property is none, the server refuses the credentials, or it is no Iceberg REST catalog;
    /// `Unavailable` where it does not answer.
    pub(in crate::catalog) async fn open(properties: &HashMap<String, String>) -> Result<Self> {
        let first = RestSettings::parse(properties)?;
        let http = Http::new(&first)?;
        let tokens = first.auth.clone().map(|auth| Arc::new(TokenSource::new(auth)));
        let mut session = Self {
            paths: Paths::new(&first),
            settings: first,
            http,
            tokens,
            config: ServerConfig::default(),
            store_properties: HashMap::new(),
        };
        let config = session.fetch_config().await?;
        let merged = config.merge(properties);
        session.apply(RestSettings::parse(&merged)?)?;
        session.store_properties = for_stores(&merged);
        session.config = config;
        Ok(session)
    }

    async fn fetch_config(&self) -> Result<ServerConfig> {
        let call = Call::new(Method::GET, Paths::config(&self.settings)?);
        let answer = self.read(&call).await.map_err(Failure::into_error)?;
        if answer.is_success() {
            return ServerConfig::parse(&answer.body);
        }
        let refusal = self.refusal(&answer);
        let (kind, advice) = match refusal.status {
            408 | 429 | 500.. => (ErrorKind::Unavailable, "try again later"),
            401 | 403 | 419 => (ErrorKind::Configuration, "check `token`, `credential` and headers"),
            300..=399 => {
                (ErrorKind::Configuration, "redirects are not followed: give the address that it names")
            }
            _ => (ErrorKind::Configuration, "check `uri` and `warehouse`"),
        };
        let message = format!(
            "the REST catalog at `{}` is not opened: {}; {advice}",
            self.settings.uri,
            refusal.describe()
        );
        Err(Error::new(kind, message))
    }

    /// Goes on with merged settings. A token stays where the server changes nothing about tokens.
    fn apply(&mut self, settings: RestSettings) -> Result<()> {
        self.http = Http::new(&settings)?;
        self.paths = Paths::new(&settings);
        if self.tokens.as_ref().map(|tokens| tokens.settings()) != settings.auth.as_ref() {
            self.tokens = settings.auth.clone().map(|auth| Arc::new(TokenSource::new(auth)));
        }
        self.settings = settings;
        Ok(())
    }

    pub(super) fn paths(&self) -> &Paths {
        &self.paths
    }

    pub(super) fn config(&self) -> &ServerConfig {
        &self.config
    }

    pub(super) fn page_size(&self) -> Option<u32> {
        self.settings.page_size
    }

    /// The merged properties that concern stores.
    pub(in crate::catalog) fn store_properties(&self) -> &HashMap<String, String> {
        &self.store_properties
    }

    /// What an answer that is no success says, without secrets that it repeats.
    pub(super) fn refusal(&self, answer: &Answer) -> Refusal {
        let token = self.tokens.as_ref().and_then(|tokens| tokens.current());
        answer.refusal(self.settings.secrets.iter().chain(&token))
    }

    /// Sends a request; once more, with another token, where the server refuses the token.
    pub(super) async fn send(&self, call: &Call) -> Result<Answer, Failure> {
        let Some(tokens) = &self.tokens else { return self.http.send(call, None).await };
        let token = tokens.token(&self.http).await.map_err(Failure::NotSent)?;
        let answer = self.http.send(call, Some(header(&token)?)).await?;
        if !is_token_refused(&answer) {
            return Ok(answer);
        }
        let token = match tokens.replace(&self.http, &token).await {
            Ok(token) => token,
            Err(error) => {
                tracing::warn!(%error, status = answer.status, "the catalog refused the token, and there is no other");
                return Ok(answer);
            }
        };
        let doubtful = !answer.has_error_model();
        match self.http.send(call, Some(header(&token)?)).await {
            Ok(again) => Ok(Answer { doubtful, ..again }),
            Err(Failure::NotSent(error)) if doubtful => Err(Failure::Lost(error)),
            Err(failure) => Err(failure),
        }
    }

    /// Sends a request that changes nothing: some times more where the server was not reached, throttles, or is away.
    pub(super) async fn read(&self, call: &Call) -> Result<Answer, Failure> {
        let mut wait = READ_WAIT;
        for _ in 1..READ_TRIES {
            let sent = self.send(call).await;
            let asked = match &sent {
                Ok(answer) if matches!(answer.status, 429 | 502..=504) => answer.retry_after,
                Err(Failure::NotSent(error)) if error.kind() == ErrorKind::Unavailable => None,
                _ => return sent,
            };
            if asked.is_some_and(|asked| asked > MAX_READ_WAIT) {
                return sent;
            }
            tokio::time::sleep(asked.unwrap_or(wait).max(wait)).await;
            wait = (wait * 2).min(MAX_READ_WAIT);
        }
        self.send(call).await
    }

    /// Sends a request that changes nothing, and gives the body of its success.
    pub(super) async fn get(&self, url: Url) -> Result<Result<Answer, Refusal>> {
        let answer = self.read(&Call::new(Method::GET, url)).await.map_err(Failure::into_error)?;
        Ok(if answer.is_success() { Ok(answer) } else { Err(self.refusal(&answer)) })
    }
}

fn header(token: &Token) -> Result<HeaderValue, Failure> {
    bearer(&token.text).map_err(Failure::NotSent)
}

fn is_token_refused(answer: &Answer) -> bool {
    matches!(answer.status, 401 | 419)
}
