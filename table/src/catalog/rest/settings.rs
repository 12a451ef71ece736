//! Catalog properties taken apart.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use super::secret::Secret;
use crate::{Error, ErrorKind, Result};

const HEADER_PREFIX: &str = "header.";
const DEFAULT_SCOPE: &str = "catalog";
/// The unit separator, percent-encoded, between the levels of a namespace.
const DEFAULT_SEPARATOR: &str = "%1F";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Below the deadline that a committer sets for a request, so that the reason is the better one.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
const TOKEN_LIFE: Duration = Duration::from_secs(3600);

/// What a session is made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RestSettings {
    /// The catalog's address, without a slash at its end.
    pub(super) uri: String,
    pub(super) warehouse: Option<String>,
    /// What the server puts between `/v1/` and the rest, without slashes at its ends.
    pub(super) prefix: Option<String>,
    /// Between the levels of a namespace in a path, percent-encoded.
    pub(super) separator: String,
    pub(super) page_size: Option<u32>,
    pub(super) headers: HeaderMap,
    pub(super) timeouts: Timeouts,
    pub(super) auth: Option<OAuth2Settings>,
    /// Every value that no message may show.
    pub(super) secrets: Vec<Secret>,
}

/// Deadlines of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timeouts {
    pub(super) connect: Duration,
    /// From the request to the end of its answer.
    pub(super) request: Duration,
}

/// How to get a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OAuth2Settings {
    pub(super) server: Url,
    /// A token to begin with.
    pub(super) token: Option<Secret>,
    pub(super) credential: Option<Credential>,
    pub(super) scope: String,
    pub(super) audience: Option<String>,
    pub(super) resource: Option<String>,
    /// How long a token is good whose server does not say.
    pub(super) token_life: Duration,
    /// Whether tokens are renewed before they expire.
    pub(super) refreshes: bool,
    /// Whether a token without a credential may be exchanged for a newer one.
    pub(super) exchanges: bool,
}

/// A client's id, where it has one, and its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credential {
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Secret,
}

impl RestSettings {
    /// Takes properties apart.
    ///
    /// # Errors
    /// `Configuration` for a value that is none, `Unsupported` for a way of signing requests that is not built in.
    pub(super) fn parse(properties: &HashMap<String, String>) -> Result<Self> {
        let property =
            |name: &str| properties.get(name).map(String::as_str).filter(|value| !value.is_empty());
        refuse_other_signatures(properties)?;
        let uri = address("uri", property("uri").unwrap_or_default())?;
        let headers = headers(properties)?;
        let auth = OAuth2Settings::parse(properties, &uri)?;
        let timeout = |name: &str, default| -> Result<Duration> {
            Ok(millis(properties, name)?.filter(|limit| !limit.is_zero()).unwrap_or(default))
        };
        let mut secrets: Vec<Secret> =
            headers.values().filter_map(|value| value.to_str().ok()).map(Secret::new).collect();
        if let Some(auth) = &auth {
            secrets.extend(auth.token.clone());
            secrets.extend(auth.credential.iter().map(|credential| credential.client_secret.clone()));
        }
        Ok(Self {
            warehouse: property("warehouse").map(str::to_owned),
            prefix: property("prefix").map(|prefix| prefix.trim_matches('/').to_owned()),
            separator: property("namespace-separator").unwrap_or(DEFAULT_SEPARATOR).to_owned(),
            page_size: number(properties, "rest-page-size")?.and_then(|size| u32::try_from(size).ok()),
            timeouts: Timeouts {
                connect: timeout("rest.client.connection-timeout-ms", CONNECT_TIMEOUT)?,
                request: timeout("rest.client.socket-timeout-ms", REQUEST_TIMEOUT)?,
            },
            uri: uri.as_str().trim_end_matches('/').to_owned(),
            headers,
            auth,
            secrets,
        })
    }
}

impl OAuth2Settings {
    /// How to get a token; `None` where neither a token nor a credential is given.
    fn parse(properties: &HashMap<String, String>, uri: &Url) -> Result<Option<Self>> {
        let property =
            |name: &str| properties.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let token = property("token").map(Secret::new);
        let credential = property("credential").map(Credential::parse);
        if token.is_none() && credential.is_none() {
            return Ok(None);
        }
        let default = format!("{}/v1/oauth/tokens", uri.as_str().trim_end_matches('/'));
        let flag = |name: &str| property(name).is_none_or(|value| !value.eq_ignore_ascii_case("false"));
        Ok(Some(Self {
            server: match property("oauth2-server-uri") {
                // A path is one of the catalog's own.
                Some(path) if !path.contains("://") => {
                    let base = uri.as_str().trim_end_matches('/');
                    address("oauth2-server-uri", &format!("{base}/{}", path.trim_start_matches('/')))?
                }
                Some(server) => address("oauth2-server-uri", server)?,
                None => address("oauth2-server-uri", &default)?,
            },
            token,
            credential,
            scope: property("scope").unwrap_or(DEFAULT_SCOPE).to_owned(),
            audience: property("audience").map(str::to_owned),
            resource: property("resource").map(str::to_owned),
            token_life: millis(properties, "token-expires-in-ms")?.unwrap_or(TOKEN_LIFE),
            refreshes: flag("token-refresh-enabled"),
            exchanges: flag("token-exchange-enabled"),
        }))
    }
}

impl Credential {
    /// `id:secret`, or a secret alone.
    fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some((id, secret)) => Self { client_id: Some(id.to_owned()), client_secret: Secret::new(secret) },
            None => Self { client_id: None, client_secret: Secret::new(text) },
        }
    }
}

/// The properties without those that only the session needs, most of which are secrets: for the stores.
pub(super) fn for_stores(properties: &HashMap<String, String>) -> HashMap<String, String> {
    const OURS: [&str; 10] = [
        "uri",
        "warehouse",
        "prefix",
        "token",
        "credential",
        "scope",
        "oauth2-server-uri",
        "audience",
        "resource",
        "namespace-separator",
    ];
    let is_ours = |name: &str| {
        OURS.contains(&name)
            || name.starts_with(HEADER_PREFIX)
            || name.starts_with("rest.")
            || name.starts_with("token-")
    };
    let kept = properties.iter().filter(|(name, _)| !is_ours(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn refuse_other_signatures(properties: &HashMap<String, String>) -> Result<()> {
    let kind = properties.get("rest.auth.type").map_or("oauth2", String::as_str);
    let sigv4 = properties.get("rest.sigv4-enabled").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if !sigv4 && matches!(kind.to_ascii_lowercase().as_str(), "oauth2" | "none") {
        return Ok(());
    }
    let kind = if sigv4 { "sigv4" } else { kind };
    let message = format!(
        "the REST catalog wants requests signed by `{kind}`, which this build does not do: use a token, a credential \
         or headers"
    );
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// An address. It is not repeated where it may hold a password.
fn address(name: &str, text: &str) -> Result<Url> {
    let refuse = |what: &str| {
        let message = format!("`{name}` {what}: write `https://host/path`");
        Error::new(ErrorKind::Configuration, message)
    };
    let url = Url::parse(text).map_err(|error| refuse("is no address").with_source(error))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(refuse("is no address of a web server"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("holds a user or a password, which belong into `credential` or a header"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refuse("has a query"));
    }
    Ok(url)
}

/// The custom headers. Their values are marked, so that they are not shown.
fn headers(properties: &HashMap<String, String>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in properties {
        let Some(name) = name.strip_prefix(HEADER_PREFIX) else { continue };
        let refuse = |what: &str| {
            Error::new(
                ErrorKind::Configuration,
                format!("`{HEADER_PREFIX}{name}` {what}: correct it or leave it out"),
            )
        };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse("names no header"))?;
        let mut value =
            HeaderValue::from_str(value).map_err(|_| refuse("has a value that no header can have"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    if headers.contains_key(AUTHORIZATION)
        && (properties.contains_key("token") || properties.contains_key("credential"))
    {
        let message = "both `header.Authorization` and a token or credential are given: choose one";
        return Err(Error::new(ErrorKind::Configuration, message));
    }
    Ok(headers)
}

fn millis(properties: &HashMap<String, String>, name: &str) -> Result<Option<Duration>> {
    Ok(number(properties, name)?.map(Duration::from_millis))
}

fn number(properties: &HashMap<String, String>, name: &str) -> Result<Option<u64>> {
    let Some(text) = properties.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        Error::new(ErrorKind::Configuration, format!("`{name}` is `{text}`, which is no number: correct it"))
    })
}
