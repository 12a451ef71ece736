//! What must hold of a table at any time, whoever did what to it: read from the files alone, with nothing of firn's
//! reading of manifests, so that a fault there cannot hide itself.
//!
//! | module | what it finds |
//! | --- | --- |
//! | `files` | files that a live snapshot needs and the store lacks; files that nothing needs |
//! | `totals` | summaries of snapshots that differ from a recount |
//! | `manifests` | entries, counts and partition summaries that break the rules of replace and append snapshots |
//! | `ledger` | cursors whose arithmetic does not hold |
//!
//! A check returns problems, one line each: the caller prints its seed with them.

mod contents;
mod files;
mod ledger;
mod manifests;
mod totals;

use anyhow::{Result, bail};
use firn_table::storage::Stores;
use iceberg::table::Table;

pub use contents::{Contents, LoadedManifest, SnapshotContents};
pub use files::{missing, unreferenced};
pub use ledger::cursor_problems;
pub use manifests::{live_twice, manifest_problems, problems_of_manifest, revived};
pub use totals::total_problems;

/// Whether everything that touches the table has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Something was killed or still runs: files that nothing references may be left.
    Fault,
    /// All stopped in good order: nothing unreferenced is left.
    GracefulStop,
}

/// Fails with every problem that the checks find in the table.
pub async fn check(table: &Table, stores: &Stores, after: After) -> Result<()> {
    none(table, &problems(table, stores, after).await?)
}

/// Fails unless there are no problems.
pub fn none(table: &Table, problems: &[String]) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    let shown = problems.iter().take(20).map(|problem| format!("\n  {problem}")).collect::<String>();
    bail!("table {} has {} problems:{shown}", table.identifier(), problems.len())
}

/// Every problem that the checks find in the table.
pub async fn problems(table: &Table, stores: &Stores, after: After) -> Result<Vec<String>> {
    let contents = match Contents::load(table).await {
        Ok(contents) => contents,
        // A list or manifest that is gone is a problem of the table, not of the check.
        Err(error) => return Ok(vec![format!("the metadata tree cannot be read: {error:#}")]),
    };
    let mut problems = missing(table, &contents, stores).await?;
    for snapshot in &contents.snapshots {
        problems.extend(total_problems(snapshot));
        problems.extend(manifest_problems(snapshot));
    }
    problems.extend(revived(table.metadata(), &contents));
    problems.extend(cursor_problems(table.metadata())?);
    if after == After::GracefulStop {
        let left = unreferenced(table, &contents, stores).await?;
        problems.extend(left.into_iter().map(|path| format!("nothing references {path}")));
    }
    Ok(problems)
}
