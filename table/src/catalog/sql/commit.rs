//! The compare-and-set with its outcomes.

use std::time::Duration;

use iceberg::spec::TableMetadata;
use iceberg::table::Table;
use iceberg::{TableIdent, TableRequirement, TableUpdate};

use super::super::metadata_file::Contents;
use super::super::metadata_json::Texts;
use super::super::update::{Refusal, apply, drops_a_ref};
use super::super::{CommitOutcome, metadata_file};
use super::failure::Failure;
use super::{Head, SqlCatalog};
use crate::{Error, ErrorKind, Result};

/// A property that has old metadata files deleted after each commit; Iceberg's default is not to.
const DELETE_AFTER_COMMIT: &str = "write.metadata.delete-after-commit.enabled";
/// How long a commit that landed may wait for deletes that are of no consequence to it.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);

impl SqlCatalog {
    pub(super) async fn compare_and_set(
        &self,
        base: &Table,
        requirements: &[TableRequirement],
        updates: Vec<TableUpdate>,
    ) -> CommitOutcome {
        let ident = base.identifier();
        let head = match self.head_or(ident, base).await {
            Ok(head) => head,
            Err(outcome) => return outcome,
        };
        let moved = base.metadata_location() != Some(&head.location);
        let Contents { metadata, texts } = &head.contents;
        match moved.then(|| drops_a_ref(metadata, &updates)).transpose() {
            Ok(Some(true)) => return CommitOutcome::Conflict,
            Ok(Some(false) | None) => {}
            Err(error) => return CommitOutcome::Rejected(error),
        }
        let applied = match apply(metadata, &head.location, requirements, &updates) {
            Ok(applied) => applied,
            Err(Refusal::Requirement) => return CommitOutcome::Conflict,
            Err(Refusal::Update(_)) if moved => return CommitOutcome::Conflict,
            Err(Refusal::Update(error)) => {
                return CommitOutcome::Rejected(
                    Error::from(error).context("the updates make no valid table"),
                );
            }
        };
        let texts = texts.clone().and_then(|texts| texts.after(&updates, &applied.metadata));
        let next = match self.write_metadata(applied.metadata, texts, &head.location).await {
            Ok(next) => next,
            Err(outcome) => return outcome,
        };
        match self.rows.swap(ident, &head.location, &next.location).await {
            Ok(true) => self.landed(ident, next, applied.dropped_from_log).await,
            Ok(false) => {
                self.discard(&next.location).await;
                CommitOutcome::Conflict
            }
            Err(failure) => self.failed(failure, &next.location).await,
        }
    }

    /// The head as it is now; `base` is not read again where it still is the head.
    async fn head_or(&self, ident: &TableIdent, base: &Table) -> Result<Head, CommitOutcome> {
        let location = match self.rows.location(ident).await {
            Ok(Some(location)) => location,
            Ok(None) => {
                let message = format!("table `{ident}` is not in the catalog any more");
                return Err(CommitOutcome::Rejected(Error::new(ErrorKind::NotFound, message)));
            }
            Err(Failure::Rejected(error)) => {
                return Err(CommitOutcome::Rejected(error.context("looking up the head")));
            }
            // Nothing was sent that could change the table.
            Err(failure) => return Err(not_applied(failure.into_error("looking up the head"))),
        };
        if base.metadata_location() == Some(location.as_str()) {
            let texts = self.cached(ident, &location).and_then(|head| head.contents.texts);
            return Ok(Head { location, contents: Contents { metadata: base.metadata_ref(), texts } });
        }
        match self.read_head(ident, location).await {
            Ok(head) => Ok(head),
            // The row moved on and the file was deleted since.
            Err(error) if error.kind() == ErrorKind::NotFound => Err(CommitOutcome::Conflict),
            Err(error) if error.kind() == ErrorKind::Unavailable => Err(not_applied(error)),
            Err(error) => Err(CommitOutcome::Rejected(error)),
        }
    }

    /// Writes the next metadata file. A failure is definite: no row names the file yet.
    async fn write_metadata(
        &self,
        metadata: TableMetadata,
        texts: Option<Texts>,
        previous: &str,
    ) -> Result<Head, CommitOutcome> {
        let location =
            metadata_file::next_location(&metadata, Some(previous)).map_err(CommitOutcome::Rejected)?;
        match metadata_file::write(&self.stores, &location, metadata, texts).await {
            Ok(contents) => Ok(Head { location, contents }),
            Err(error) => {
                self.discard(&location).await;
                Err(match error.kind() {
                    ErrorKind::Unavailable => not_applied(error),
                    _ => CommitOutcome::Rejected(error),
                })
            }
        }
    }

    async fn landed(&self, ident: &TableIdent, head: Head, dropped: Vec<String>) -> CommitOutcome {
        self.remember(ident, &head);
        if deletes_after_commit(&head.contents.metadata) {
            self.delete_dropped(ident, dropped).await;
        }
        match self.table(ident, head) {
            Ok(table) => CommitOutcome::Committed(Box::new(table)),
            // It landed, and the next load says so.
            Err(error) => CommitOutcome::Unknown(error),
        }
    }

    async fn failed(&self, failure: Failure, written: &str) -> CommitOutcome {
        match failure {
            Failure::NotApplied(cause) => {
                self.discard(written).await;
                not_applied(cause)
            }
            Failure::Rejected(error) => {
                self.discard(written).await;
                CommitOutcome::Rejected(error)
            }
            // An UPDATE violates no unique key of its own; whatever this is, the file stays.
            failure @ (Failure::Exists | Failure::Unknown(_)) => {
                CommitOutcome::Unknown(failure.into_error("moving the table to its new metadata"))
            }
        }
    }

    /// Removes a metadata file that no row names and none will.
    pub(super) async fn discard(&self, location: &str) {
        let deleted = tokio::time::timeout(CLEANUP_TIMEOUT, self.stores.delete(location)).await;
        if !matches!(deleted, Ok(Ok(()))) {
            tracing::warn!(location, "metadata file of a failed commit stays behind");
        }
    }

    async fn delete_dropped(&self, ident: &TableIdent, dropped: Vec<String>) {
        if dropped.is_empty() {
            return;
        }
        let files = dropped.len();
        match tokio::time::timeout(CLEANUP_TIMEOUT, self.stores.delete_all(dropped)).await {
            Ok(failed) if failed.is_empty() => {}
            Ok(failed) => {
                for (location, error) in failed {
                    tracing::warn!(table = %ident, location, %error, "old metadata file stays behind");
                }
            }
            Err(_) => tracing::warn!(table = %ident, files, "deleting old metadata files timed out"),
        }
    }
}

fn not_applied(cause: Error) -> CommitOutcome {
    CommitOutcome::NotApplied { retry_after: None, cause }
}

fn deletes_after_commit(metadata: &TableMetadata) -> bool {
    metadata.properties().get(DELETE_AFTER_COMMIT).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}
