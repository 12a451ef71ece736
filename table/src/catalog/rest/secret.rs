//! Values that are never shown, and texts of others in which they are covered.

use std::fmt;

/// A value that no message and no debug output shows.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The value itself, to be sent.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A server's text with every one of `secrets` in it covered: servers repeat what they were sent.
pub(super) fn covered<'a>(text: &str, secrets: impl IntoIterator<Item = &'a Secret>) -> String {
    let mut text = text.to_owned();
    for secret in secrets.into_iter().filter(|secret| !secret.0.is_empty()) {
        if text.contains(&secret.0) {
            text = text.replace(&secret.0, "***");
        }
    }
    text
}
