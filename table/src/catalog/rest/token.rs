//! The token that requests carry, renewed in time and by one request at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::http::Http;
use super::oauth::{self, Issued};
use super::secret::Secret;
use super::settings::OAuth2Settings;
use crate::{Error, ErrorKind, Result};

/// The longest time before its end that a token is renewed: a tenth of its life, up to this.
const MAX_MARGIN: Duration = Duration::from_secs(300);

/// A token, and which one it is of those that were had.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) text: Secret,
    generation: u64,
    /// When it is to be renewed, and when it ends; `None` where that is not known.
    life: Option<Life>,
}

#[derive(Debug, Clone, Copy)]
struct Life {
    renew_at: Instant,
    ends_at: Instant,
}

/// Where tokens come from.
#[derive(Debug)]
pub(super) struct TokenSource {
    settings: OAuth2Settings,
    state: Mutex<State>,
    /// Who holds it gets a token; the others wait and take what came of it.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    token: Option<Token>,
    /// The last renewal that failed: who waited for it shares its failure, and does not ask once more.
    failed: Option<(Instant, ErrorKind, String)>,
}

impl TokenSource {
    pub(super) fn new(settings: OAuth2Settings) -> Self {
        let given = settings.token.clone().map(|text| Token { text, generation: 0, life: None });
        Self {
            settings,
            state: Mutex::new(State { token: given, failed: None }),
            renewing: tokio::sync::Mutex::default(),
        }
    }

    /// The token as it is, to be covered in messages.
    pub(super) fn current(&self) -> Option<Secret> {
        self.state().token.as_ref().map(|token| token.text.clone())
    }

    pub(super) fn settings(&self) -> &OAuth2Settings {
        &self.settings
    }

    /// A token that holds. One that is about to end is renewed, by one caller; the others use it meanwhile.
    pub(super) async fn token(&self, http: &Http) -> Result<Token> {
        let now = Instant::now();
        let held = self.state().token.clone();
        let Some(held) = held else { return self.renew(http, None).await };
        match held.life {
            Some(life) if now >= life.ends_at => self.renew(http, Some(held.generation)).await,
            Some(life) if now >= life.renew_at && self.settings.refreshes => {
                self.renew_early(http, held).await
            }
            _ => Ok(held),
        }
    }

    /// A token that the server refused is replaced, unless that has happened since.
    pub(super) async fn replace(&self, http: &Http, refused: &Token) -> Result<Token> {
        self.renew(http, Some(refused.generation)).await
    }

    async fn renew_early(&self, http: &Http, held: Token) -> Result<Token> {
        let Ok(_renewing) = self.renewing.try_lock() else { return Ok(held) };
        match self.issue(http, Some(held.generation)).await {
            Ok(token) => Ok(token),
            Err(error) => {
                tracing::warn!(%error, "the catalog's token was not renewed yet: the old one still holds");
                Ok(held)
            }
        }
    }

    async fn renew(&self, http: &Http, outdated: Option<u64>) -> Result<Token> {
        let asked = Instant::now();
        let _renewing = self.renewing.lock().await;
        if let Some((at, kind, message)) = &self.state().failed
            && *at >= asked
        {
            return Err(Error::new(*kind, message.clone()));
        }
        self.issue(http, outdated).await
    }

    /// Gets a token, unless another than `outdated` is there. The caller holds `renewing`.
    async fn issue(&self, http: &Http, outdated: Option<u64>) -> Result<Token> {
        let held = self.state().token.clone();
        if let Some(held) = &held
            && Some(held.generation) != outdated
        {
            return Ok(held.clone());
        }
        let issued = self.request(http, held.as_ref()).await;
        let mut state = self.state();
        match issued {
            Ok(Issued { token, life }) => {
                let generation = held.map_or(0, |held| held.generation) + 1;
                let token = Token { text: token, generation, life: Some(Life::of(Instant::now(), life)) };
                *state = State { token: Some(token.clone()), failed: None };
                Ok(token)
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.kind(), error.to_string()));
                Err(error)
            }
        }
    }

    async fn request(&self, http: &Http, held: Option<&Token>) -> Result<Issued> {
        match (&self.settings.credential, held) {
            (Some(credential), _) => oauth::for_credential(http, &self.settings, credential).await,
            (None, Some(held)) if self.settings.exchanges => {
                oauth::exchange(http, &self.settings, &held.text).await
            }
            (None, _) => Err(Error::new(
                ErrorKind::Configuration,
                "the catalog's token does not hold any more, and there is no `credential` to get another: give a new \
                 `token`",
            )),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Life {
    fn of(now: Instant, life: Duration) -> Self {
        let margin = (life / 10).min(MAX_MARGIN);
        Self { renew_at: now + life.saturating_sub(margin), ends_at: now + life }
    }
}
