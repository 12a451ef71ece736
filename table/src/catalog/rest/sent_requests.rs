//! Requests to commit whose outcome is not known yet, so that the same request carries the same key and the same bytes
//! when it is sent again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use iceberg::{TableIdent, TableRequirement, TableUpdate};
use tokio::time::Instant;
use uuid::Uuid;

use super::messages::{CommitTable, body};
use crate::Result;

/// Tables whose last request is remembered.
const MAX_REMEMBERED: usize = 256;

/// A commit as it is sent.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    pub(super) body: Bytes,
    /// `Idempotency-Key`, where the server knows it.
    pub(super) key: Option<Uuid>,
}

#[derive(Debug, Default)]
pub(super) struct SentRequests {
    unanswered: Mutex<HashMap<TableIdent, Unanswered>>,
}

#[derive(Debug)]
struct Unanswered {
    requirements: Vec<TableRequirement>,
    updates: Vec<TableUpdate>,
    body: Bytes,
    key: Uuid,
    since: Instant,
}

impl SentRequests {
    /// A commit to be sent: with the key and bytes of the same one that had no answer, within the `lifetime` of keys.
    pub(super) fn prepare(
        &self,
        table: &TableIdent,
        requirements: &[TableRequirement],
        updates: &[TableUpdate],
        lifetime: Option<Duration>,
    ) -> Result<Prepared> {
        let serialise = || body(&CommitTable { identifier: table, requirements, updates });
        let Some(lifetime) = lifetime else { return Ok(Prepared { body: serialise()?, key: None }) };
        let now = Instant::now();
        let mut unanswered = self.unanswered();
        if let Some(sent) = unanswered.get(table)
            && sent.requirements == requirements
            && sent.updates == updates
            && now.duration_since(sent.since) < lifetime
        {
            return Ok(Prepared { body: sent.body.clone(), key: Some(sent.key) });
        }
        let (body, key) = (serialise()?, Uuid::now_v7());
        if unanswered.len() >= MAX_REMEMBERED && !unanswered.contains_key(table) {
            unanswered.clear();
        }
        let (requirements, updates) = (requirements.to_vec(), updates.to_vec());
        unanswered
            .insert(table.clone(), Unanswered { requirements, updates, body: body.clone(), key, since: now });
        Ok(Prepared { body, key: Some(key) })
    }

    /// The server has answered for good: with the same key it would only repeat itself.
    pub(super) fn answered(&self, table: &TableIdent) {
        self.unanswered().remove(table);
    }

    fn unanswered(&self) -> MutexGuard<'_, HashMap<TableIdent, Unanswered>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
