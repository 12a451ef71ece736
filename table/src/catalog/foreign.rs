//! Commits made by `iceberg`'s own transactions: the same compare-and-set, with the outcome as an error.

use iceberg::TableCommit;
use iceberg::table::Table;

use super::{CommitCatalog, CommitOutcome};
use crate::{Error, ErrorKind};

/// Tries for commits whose caller retries no further.
const TRIES: u32 = 5;

/// Applies a commit to the head as it is, some times anew where the head moved.
pub(super) async fn apply_foreign(
    catalog: &impl CommitCatalog,
    mut commit: TableCommit,
) -> iceberg::Result<Table> {
    let (requirements, updates) = (commit.take_requirements(), commit.take_updates());
    let ident = commit.identifier();
    let mut tries = 0;
    loop {
        tries += 1;
        let base = catalog.load_table(ident).await?;
        return match catalog.commit(&base, requirements.clone(), updates.clone()).await {
            CommitOutcome::Committed(table) => Ok(*table),
            CommitOutcome::Conflict | CommitOutcome::NotApplied { .. } if tries < TRIES => continue,
            CommitOutcome::Conflict => {
                let message = format!("the head of table `{ident}` moved or does not meet the requirements");
                let kind = iceberg::ErrorKind::CatalogCommitConflicts;
                Err(iceberg::Error::new(kind, message).with_retryable(true))
            }
            CommitOutcome::NotApplied { cause, .. } => Err(iceberg::Error::from(cause).with_retryable(true)),
            CommitOutcome::Rejected(error) => Err(error.into()),
            CommitOutcome::Unknown(error) => {
                let error = Error::new(ErrorKind::UnknownOutcome, error.to_string()).with_source(error);
                Err(error.into())
            }
        };
    }
}
