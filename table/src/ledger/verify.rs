//! Proving, from the table alone, that offsets are contiguous and accounted for.

use std::collections::BTreeMap;

use iceberg::spec::TableMetadata;

use super::{
    Cursor, Guarantee, Ledger, OffsetRange, Standing, TopicPartition, WriterName, ancestors, commit_record,
    standing,
};
use crate::{Error, ErrorKind, Result};

/// What was proved about a writer's ledger, and what contradicts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// The ledger that was verified.
    pub ledger: Ledger,
    /// Offsets that the cursors cover.
    pub offsets: u64,
    /// Rows in the table.
    pub rows: u64,
    /// Messages rejected and counted.
    pub rejected: u64,
    /// Offsets that Kafka does not deliver.
    pub holes: u64,
    /// Offsets lost to retention and recorded.
    pub gaps: u64,
    /// Commits in the ancestry whose ranges were checked against their neighbours.
    pub commits_checked: usize,
    /// Commits in the ancestry that list no ranges: they are covered by the cursors alone.
    pub commits_without_ranges: usize,
    /// Contradictions, one line each; empty where all is well.
    pub problems: Vec<String>,
}

/// Verifies a writer's ledger on a branch. `NotFound` where the table never saw the writer.
///
/// Checked are the arithmetic of every cursor (rows + rejected + holes + gaps = offsets covered; at least that under
/// [`Guarantee::AtLeastOnce`]), that the ledger is that of the head's ancestry, and that the ranges of the commits
/// still in the metadata follow each other without gap or overlap up to the cursors.
pub fn verify(metadata: &TableMetadata, branch: &str, writer: &WriterName) -> Result<Verification> {
    let mut problems = Vec::new();
    let ledger = match standing(metadata, branch, writer)? {
        Standing::Current(ledger) => ledger,
        Standing::RolledBack { ledger, .. } => {
            problems.push(format!(
                "the ledger names snapshot {}, which is not an ancestor of the head: the table was rolled back or \
                 replaced",
                ledger.snapshot_id
            ));
            ledger
        }
        Standing::Missing { last_snapshot_id } => {
            problems.push(format!("snapshot {last_snapshot_id} of the writer is not covered by the ledger"));
            Ledger::read(metadata.properties(), branch, writer)?.ok_or_else(|| {
                Error::new(
                    ErrorKind::Ledger,
                    format!(
                        "writer `{writer}` has commits in the table (snapshot {last_snapshot_id}) and no ledger: the \
                         property was removed; set the cursors"
                    ),
                )
            })?
        }
        Standing::Absent => {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("writer `{writer}` has no ledger on `{branch}`"),
            ));
        }
    };
    let mut verification = totals(ledger, problems);
    check_arithmetic(&mut verification);
    check_commits(&mut verification, metadata, branch, writer);
    Ok(verification)
}

fn totals(ledger: Ledger, problems: Vec<String>) -> Verification {
    let sum = |count: fn(&Cursor) -> u64| ledger.cursors.values().map(count).sum();
    Verification {
        offsets: sum(Cursor::covered),
        rows: sum(|cursor| cursor.rows),
        rejected: sum(|cursor| cursor.rejected),
        holes: sum(|cursor| cursor.holes),
        gaps: sum(|cursor| cursor.gaps),
        commits_checked: 0,
        commits_without_ranges: 0,
        problems,
        ledger,
    }
}

fn check_arithmetic(verification: &mut Verification) {
    for (partition, cursor) in &verification.ledger.cursors {
        let (accounted, covered) = (cursor.accounted(), cursor.covered());
        let holds = match verification.ledger.guarantee {
            Guarantee::ExactlyOnce => accounted == covered,
            Guarantee::AtLeastOnce => accounted >= covered,
        };
        if !holds {
            verification.problems.push(format!(
                "`{partition}` covers {covered} offsets and accounts for {accounted} (rows {}, rejected {}, holes {}, \
                 gaps {})",
                cursor.rows, cursor.rejected, cursor.holes, cursor.gaps
            ));
        }
    }
}

/// Walks from the head backwards; `expected` is where the next older range of each partition must end.
fn check_commits(
    verification: &mut Verification,
    metadata: &TableMetadata,
    branch: &str,
    writer: &WriterName,
) {
    let cursors = verification.ledger.cursors.iter();
    let mut expected: BTreeMap<TopicPartition, i64> =
        cursors.map(|(partition, cursor)| (partition.clone(), cursor.next)).collect();
    for snapshot in ancestors(metadata, branch) {
        let Some(record) = commit_record(snapshot).filter(|record| &record.writer == writer) else {
            continue;
        };
        if record.sets_cursors {
            return;
        }
        let Some(ranges) = record.ranges else {
            verification.commits_without_ranges += 1;
            expected.clear();
            continue;
        };
        verification.commits_checked += 1;
        for range in ranges {
            if let Some(problem) = check_range(&mut expected, &range, verification.ledger.guarantee) {
                verification.problems.push(format!("snapshot {}: {problem}", snapshot.snapshot_id()));
            }
        }
    }
}

fn check_range(
    expected: &mut BTreeMap<TopicPartition, i64>,
    range: &OffsetRange,
    guarantee: Guarantee,
) -> Option<String> {
    let next = expected.insert(range.partition.clone(), range.start)?;
    let holds = match guarantee {
        Guarantee::ExactlyOnce => range.next == next,
        // Sent again: it may reach into what comes after it, but leaves nothing out.
        Guarantee::AtLeastOnce => range.next >= next,
    };
    (!holds).then(|| {
        let what = if range.next < next { "are missing" } else { "are there twice" };
        let (low, high) = (range.next.min(next), range.next.max(next));
        format!("offsets {low} to {} of `{}` {what}", high - 1, range.partition)
    })
}
