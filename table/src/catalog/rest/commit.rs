//! The commit, and its answer as an outcome.

use std::sync::PoisonError;
use std::time::Duration;

use iceberg::table::Table;
use iceberg::{TableIdent, TableRequirement, TableUpdate};
use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue};
use tokio::time::Instant;

use super::super::CommitOutcome;
use super::super::update::drops_a_ref;
use super::RestCatalog;
use super::answer::{Answer, Refusal};
use super::failure::general;
use super::http::{Call, Failure};
use super::messages::read_table;
use super::verdict::{Seen, Verdict, seen, verdict};
use crate::{Error, ErrorKind, Result};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl RestCatalog {
    pub(super) async fn compare_and_set(
        &self,
        base: &Table,
        requirements: &[TableRequirement],
        updates: &[TableUpdate],
    ) -> CommitOutcome {
        if let Some(left) = self.asked_to_wait() {
            let cause = Error::new(
                ErrorKind::Unavailable,
                "the catalog asked to wait, and nothing was sent meanwhile",
            );
            return CommitOutcome::NotApplied { retry_after: Some(left), cause };
        }
        let ident = base.identifier();
        if let Some(outcome) = self.drops_a_ref(ident, updates).await {
            return outcome;
        }
        let call = match self.commit_call(ident, requirements, updates) {
            Ok(call) => call,
            Err(error) => return CommitOutcome::Rejected(error),
        };
        let sent = self.session.send(&call).await;
        self.looked.forget(ident);
        match sent {
            Ok(answer) if answer.is_success() => self.applied(ident, answer).await,
            Ok(answer) => {
                let refusal = self.session.refusal(&answer);
                if is_final(refusal.status) {
                    self.sent.answered(ident);
                }
                self.refused(base, (requirements, updates), refusal).await
            }
            Err(Failure::NotSent(cause)) => CommitOutcome::NotApplied { retry_after: None, cause },
            Err(Failure::Lost(error)) => CommitOutcome::Unknown(error),
        }
    }

    /// Why a commit that removes snapshots is not sent. A server removes with a snapshot each ref that has it as its head,
    /// also one that was made since the base was loaded, and no requirement can forbid that: the head is looked at right
    /// before, which leaves the time of one request.
    async fn drops_a_ref(&self, ident: &TableIdent, updates: &[TableUpdate]) -> Option<CommitOutcome> {
        if !updates.iter().any(|update| matches!(update, TableUpdate::RemoveSnapshots { .. })) {
            return None;
        }
        let now = match self.load(ident).await.map_err(Error::from) {
            Ok(now) => now,
            Err(error) if error.kind() == ErrorKind::NotFound => return Some(CommitOutcome::Rejected(error)),
            Err(cause) => return Some(CommitOutcome::NotApplied { retry_after: None, cause }),
        };
        match drops_a_ref(now.metadata(), updates) {
            Ok(false) => None,
            Ok(true) => Some(CommitOutcome::Conflict),
            Err(error) => Some(CommitOutcome::Rejected(error)),
        }
    }

    fn commit_call(
        &self,
        table: &TableIdent,
        requirements: &[TableRequirement],
        updates: &[TableUpdate],
    ) -> Result<Call> {
        let lifetime = self.session.config().idempotency_key_lifetime();
        let prepared = self.sent.prepare(table, requirements, updates, lifetime)?;
        let mut call = Call::new(Method::POST, self.session.paths().table(table)?).json(prepared.body);
        if let Some(key) = prepared.key {
            let value = HeaderValue::from_str(&key.to_string()).map_err(|error| {
                Error::new(ErrorKind::Internal, "a UUID is no header's value").with_source(error)
            })?;
            call.headers.insert(IDEMPOTENCY_KEY, value);
        }
        Ok(call)
    }

    /// The table after the commit. An answer that cannot be read says nothing.
    async fn applied(&self, ident: &TableIdent, answer: Answer) -> CommitOutcome {
        let table = match read_table(answer.body).await {
            Ok(loaded) => self.table_of(ident, loaded),
            Err(error) => Err(error),
        };
        match table {
            Ok(table) => {
                self.sent.answered(ident);
                CommitOutcome::Committed(Box::new(table))
            }
            Err(error) => CommitOutcome::Unknown(error.context("the answer to a commit")),
        }
    }

    async fn refused(
        &self,
        base: &Table,
        (requirements, updates): (&[TableRequirement], &[TableUpdate]),
        refusal: Refusal,
    ) -> CommitOutcome {
        let ident = base.identifier();
        let error = general(&refusal, format_args!("committing to `{ident}`"));
        match verdict(&refusal) {
            Verdict::NotApplied => {
                CommitOutcome::NotApplied { retry_after: refusal.retry_after, cause: error }
            }
            Verdict::Rejected(kind) => CommitOutcome::Rejected(Error::new(kind, error.to_string())),
            Verdict::Unknown => self.unknown(error, &refusal),
            Verdict::Look => match self.load(ident).await {
                Ok(now) => match seen((base, &now), requirements, updates, &refusal) {
                    Seen::Landed => CommitOutcome::Committed(Box::new(now)),
                    Seen::Moved => {
                        self.looked.keep(now);
                        CommitOutcome::Conflict
                    }
                    Seen::Same => self.unknown(error, &refusal),
                },
                Err(unseen) => {
                    let message =
                        format!("{error}; the table could not be looked at: {}", Error::from(unseen));
                    self.unknown(Error::new(ErrorKind::Unavailable, message), &refusal)
                }
            },
        }
    }

    /// An outcome that nobody knows. Where the server asks to wait, the next commit does.
    fn unknown(&self, error: Error, refusal: &Refusal) -> CommitOutcome {
        if let Some(wait) = refusal.retry_after {
            let until = Instant::now() + wait;
            *self.not_before.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        }
        CommitOutcome::Unknown(error)
    }

    fn asked_to_wait(&self) -> Option<Duration> {
        let mut not_before = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        let left = not_before.as_ref()?.saturating_duration_since(Instant::now());
        if left.is_zero() {
            *not_before = None;
            return None;
        }
        Some(left)
    }
}

/// Whether a server that knows idempotency keys would only repeat this answer.
fn is_final(status: u16) -> bool {
    !matches!(status, 401 | 408 | 419 | 429 | 500..)
}
