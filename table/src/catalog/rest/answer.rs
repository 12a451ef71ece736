//! What a server answered.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;

use super::secret::{Secret, covered};

/// The most of a server's text that a message repeats.
const SHOWN_CHARACTERS: usize = 300;

/// A complete answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Bytes,
    /// Whether an earlier try of the same request was refused in a way that does not prove that nothing was done.
    pub(super) doubtful: bool,
}

/// An answer that says no.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    /// The catalog's own words; `None` where the body is not Iceberg's error model, as with a proxy's page.
    pub(super) model: Option<ErrorModel>,
    pub(super) doubtful: bool,
}

/// Iceberg's error model, without its stack trace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ErrorModel {
    #[serde(default)]
    pub(super) message: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The status, repeated.
    pub(super) code: u16,
}

#[derive(Debug, Deserialize)]
struct ErrorBody {
    error: ErrorModel,
}

impl Answer {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The refusal that this answer is, with the secrets covered that the server repeats.
    pub(super) fn refusal<'a>(&self, secrets: impl IntoIterator<Item = &'a Secret>) -> Refusal {
        let model = serde_json::from_slice::<ErrorBody>(&self.body).ok().map(|body| body.error);
        let model = model.map(|model| ErrorModel { message: shown(&model.message, secrets), ..model });
        Refusal { status: self.status, retry_after: self.retry_after, model, doubtful: self.doubtful }
    }

    /// Whether the catalog itself, and no proxy, refused.
    pub(super) fn has_error_model(&self) -> bool {
        serde_json::from_slice::<ErrorBody>(&self.body).is_ok()
    }
}

impl Refusal {
    /// Whether the catalog names this as the reason: the name of a Java exception.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.model.as_ref().is_some_and(|model| model.kind == kind)
    }

    /// What was answered, as part of a message.
    pub(super) fn describe(&self) -> String {
        match &self.model {
            Some(model) => format!("the catalog answered {} {}: {}", self.status, model.kind, model.message),
            None => format!("the answer was {} and not in the catalog's form, as from a proxy", self.status),
        }
    }
}

/// A server's text as it is put into a message: secrets covered, on one line, not too long.
pub(super) fn shown<'a>(text: &str, secrets: impl IntoIterator<Item = &'a Secret>) -> String {
    let text = covered(text, secrets);
    let mut line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_CHARACTERS).collect();
    if text.chars().nth(SHOWN_CHARACTERS).is_some() {
        line.push('…');
    }
    line
}
