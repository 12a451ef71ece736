//! How many requests processes sent, and how many bytes of objects went with them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::network::Kind;
use super::records::Role;

/// Requests of one kind, by processes of one role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests that were sent.
    pub requests: u64,
    /// Bytes of the objects that were put, or that were got.
    pub bytes: u64,
}

/// Counts requests by role and kind.
#[derive(Debug, Default)]
pub struct Meter {
    traffic: Mutex<BTreeMap<(Role, Kind), Traffic>>,
}

impl Meter {
    fn traffic(&self) -> MutexGuard<'_, BTreeMap<(Role, Kind), Traffic>> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So far.
    #[must_use]
    pub fn so_far(&self, role: Role, kind: Kind) -> Traffic {
        self.traffic().get(&(role, kind)).copied().unwrap_or_default()
    }

    /// A request was sent.
    pub(super) fn count(&self, role: Role, kind: Kind) {
        self.traffic().entry((role, kind)).or_default().requests += 1;
    }

    /// So many bytes went with it.
    pub(super) fn carried(&self, role: Role, kind: Kind, bytes: u64) {
        self.traffic().entry((role, kind)).or_default().bytes += bytes;
    }
}
