//! The files of one commit, and which of them may be deleted.
//!
//! A file is deleted by the process that wrote it, and only if it was never part of a request, or every request
//! had a definite outcome and the one that landed (if any) does not name it. Once an outcome was unknown, a request
//! may still land, so whatever was sent stays; orphan removal finds it.

use std::collections::{BTreeMap, HashSet};

use crate::protections::{Protection, stands};
use crate::storage::Stores;

/// What is known about the requests that were sent for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// None was sent.
    Never,
    /// All were answered: applied or certainly not.
    Definite,
    /// At least one may have been applied, or may be applied later.
    Unknown,
}

/// All files that were written for one commit.
#[derive(Debug)]
pub(super) struct Written {
    sent: Sent,
    /// Location, and whether a request that was sent names it.
    files: BTreeMap<String, bool>,
}

impl Written {
    /// Data files that were there before the first attempt.
    pub(super) fn new(data_files: impl IntoIterator<Item = String>) -> Self {
        Self { sent: Sent::Never, files: data_files.into_iter().map(|file| (file, false)).collect() }
    }

    /// Notes that an earlier call for the same commit ended without knowing its outcome: all files so far may be
    /// named by its requests.
    pub(super) fn earlier_call_is_unknown(&mut self) {
        self.sent = Sent::Unknown;
        self.files.values_mut().for_each(|sent| *sent = true);
    }

    /// Adds files that no request names.
    pub(super) fn note(&mut self, locations: impl IntoIterator<Item = String>) {
        for location in locations {
            self.files.entry(location).or_insert(false);
        }
    }

    /// Notes that a request with these files is about to be sent: until it is answered its outcome is unknown.
    pub(super) fn sending(&mut self, files: &[String]) -> Sent {
        self.files.extend(files.iter().map(|file| (file.clone(), true)));
        std::mem::replace(&mut self.sent, Sent::Unknown)
    }

    /// Notes that the request was answered. `before` is what [`Self::sending`] returned.
    pub(super) fn answered(&mut self, before: Sent) {
        let sticks = before == Sent::Unknown && stands(Protection::StickyUnknown);
        self.sent = if sticks { Sent::Unknown } else { Sent::Definite };
    }

    /// What is known about the requests.
    pub(super) fn sent(&self) -> Sent {
        self.sent
    }

    /// What may be deleted, given the files that the landed request names (none where none landed).
    pub(super) fn removable(&self, landed: &HashSet<String>) -> Vec<String> {
        let definite = self.sent != Sent::Unknown || !stands(Protection::DefiniteCleanup);
        let may_go = |sent: bool| !sent || definite;
        let files = self.files.iter();
        files
            .filter(|(file, sent)| may_go(**sent) && !landed.contains(*file))
            .map(|(file, _)| file.clone())
            .collect()
    }
}

/// Deletes files. What cannot be deleted is left to orphan removal.
pub(super) async fn delete(stores: &Stores, locations: Vec<String>) {
    for (location, error) in stores.delete_all(locations).await {
        tracing::warn!(%location, %error, "a file of a discarded commit could not be deleted");
    }
}
