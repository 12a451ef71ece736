//! Requests to a token server (RFC 6749, section 4.4, and RFC 8693), as Iceberg's own clients make them.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderValue;
use serde::Deserialize;

use super::answer::{Answer, shown};
use super::http::{Body, Call, Failure, Form, Http};
use super::secret::Secret;
use super::settings::{Credential, OAuth2Settings};
use crate::{Error, ErrorKind, Result};

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// A token that was issued.
#[derive(Debug, Clone)]
pub(super) struct Issued {
    pub(super) token: Secret,
    pub(super) life: Duration,
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    #[serde(default)]
    expires_in: Option<u64>,
}

/// What a token server says that refuses.
#[derive(Debug, Deserialize)]
struct OAuthError {
    error: String,
    #[serde(default)]
    error_description: Option<String>,
}

/// A token for the client's credential.
pub(super) async fn for_credential(
    http: &Http,
    settings: &OAuth2Settings,
    credential: &Credential,
) -> Result<Issued> {
    let mut fields = vec![("grant_type", "client_credentials".to_owned())];
    fields.extend(credential.client_id.clone().map(|id| ("client_id", id)));
    fields.push(("client_secret", credential.client_secret.reveal().to_owned()));
    ask(http, settings, fields, None).await
}

/// A newer token for one that the server still knows.
pub(super) async fn exchange(http: &Http, settings: &OAuth2Settings, token: &Secret) -> Result<Issued> {
    let fields = vec![
        ("grant_type", EXCHANGE.to_owned()),
        ("subject_token", token.reveal().to_owned()),
        ("subject_token_type", ACCESS_TOKEN.to_owned()),
    ];
    ask(http, settings, fields, Some(token)).await
}

/// The header that carries a token.
pub(super) fn bearer(token: &Secret) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.reveal())).map_err(|_| {
        Error::new(
            ErrorKind::Configuration,
            "the token holds characters that no header can carry: correct it",
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

async fn ask(
    http: &Http,
    settings: &OAuth2Settings,
    mut fields: Vec<(&'static str, String)>,
    token: Option<&Secret>,
) -> Result<Issued> {
    fields.push(("scope", settings.scope.clone()));
    fields.extend(settings.audience.clone().map(|audience| ("audience", audience)));
    fields.extend(settings.resource.clone().map(|resource| ("resource", resource)));
    let mut call = Call::new(Method::POST, settings.server.clone());
    call.body = Body::Form(Form(fields));
    let answer = http.send(&call, token.map(bearer).transpose()?).await;
    let answer = answer.map_err(Failure::into_error).map_err(|error| error.context("getting a token"))?;
    if !answer.is_success() {
        let secrets = settings.credential.iter().map(|credential| &credential.client_secret);
        return Err(refused(&answer, secrets.chain(&settings.token).chain(token)));
    }
    let response: TokenResponse = serde_json::from_slice(&answer.body).map_err(|error| {
        // The error may repeat a part of the token: it is not kept.
        let message = format!(
            "the token server's answer is no token (line {}, column {}): check `oauth2-server-uri`",
            error.line(),
            error.column()
        );
        Error::new(ErrorKind::Unavailable, message)
    })?;
    let life = response.expires_in.map_or(settings.token_life, Duration::from_secs);
    Ok(Issued { token: Secret::new(response.access_token), life })
}

fn refused<'a>(answer: &Answer, secrets: impl IntoIterator<Item = &'a Secret>) -> Error {
    let status = answer.status;
    let reason = match serde_json::from_slice::<OAuthError>(&answer.body) {
        Ok(OAuthError { error, error_description }) => {
            let described = error_description.map(|text| format!(" ({text})")).unwrap_or_default();
            format!("the token server answered {status} {error}{described}")
        }
        Err(_) => {
            let refusal = answer.refusal([]);
            match refusal.model {
                Some(model) => {
                    format!("the token server answered {status} {}: {}", model.kind, model.message)
                }
                None => format!("the token server answered {status} in no form of its own, as from a proxy"),
            }
        }
    };
    // What may pass by itself, and what a person must mend.
    let kind = if status == 408 || status == 429 || status >= 500 {
        ErrorKind::Unavailable
    } else {
        ErrorKind::Configuration
    };
    let advice = if kind == ErrorKind::Configuration {
        ": check `credential`, `scope` and `oauth2-server-uri`"
    } else {
        ""
    };
    Error::new(kind, shown(&format!("{reason}{advice}"), secrets))
}
