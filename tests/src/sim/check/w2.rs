//! W2: cursors only grow.

use std::collections::BTreeMap;

use async_trait::async_trait;
use firn_table::ledger::{CommitRecord, Cursor, Ledger, TopicPartition, WriterName};
use iceberg::spec::TableMetadata;

use super::super::records::{Commit, Role};
use super::super::view::{Checker, Step, View, Violation};

const NAME: &str = "W2";

type Cursors = BTreeMap<(String, WriterName, TopicPartition), Cursor>;

/// The checker.
#[derive(Debug, Default)]
pub struct W2;

#[async_trait]
impl Checker for W2 {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation> {
        let Some(commit) = view.records.commits.last().filter(|_| step == Step::Commit) else {
            return Ok(());
        };
        let (Some(before), Some(after)) = (&commit.before, &commit.after) else { return Ok(()) };
        let foreign = matches!(commit.by.role, Role::Foreign | Role::World);
        if foreign || (view.setting.cursors_may_go_back && sets_cursors(commit)) {
            return Ok(());
        }
        let after = cursors(after.metadata())?;
        for (key, before) in cursors(before.metadata())? {
            let (branch, writer, partition) = &key;
            let went = match after.get(&key) {
                Some(after) if grows(&before, after) => continue,
                Some(after) => format!("went from {before:?} to {after:?}"),
                None => format!("was {before:?} and is gone"),
            };
            let by = &commit.by.name;
            let what = format!("the cursor of `{writer}` on `{branch}` in {partition} {went}, by {by}");
            return Err(Violation::new(NAME, what));
        }
        Ok(())
    }

    async fn at_end(&mut self, _view: View<'_>) -> Result<(), Violation> {
        Ok(())
    }
}

/// A cursor covers what it covered, and more.
fn grows(before: &Cursor, after: &Cursor) -> bool {
    after.start == before.start
        && after.next >= before.next
        && after.rows >= before.rows
        && after.rejected >= before.rejected
        && after.holes >= before.holes
        && after.gaps >= before.gaps
}

/// Whether the commit is a person's decision.
fn sets_cursors(commit: &Commit) -> bool {
    let Some(after) = &commit.after else { return false };
    let added = commit.added_snapshots().filter_map(|id| after.metadata().snapshot_by_id(id));
    let mut records = added.filter_map(|s| CommitRecord::read(&s.summary().additional_properties));
    records.any(|record| record.sets_cursors)
}

fn cursors(metadata: &TableMetadata) -> Result<Cursors, Violation> {
    let ledgers = Ledger::read_all(metadata.properties());
    let ledgers = ledgers.map_err(|error| Violation::new(NAME, format!("no ledger any more: {error}")))?;
    let mut all = Cursors::new();
    for (branch, writer, ledger) in ledgers {
        for (partition, cursor) in ledger.cursors {
            all.insert((branch.clone(), writer.clone(), partition), cursor);
        }
    }
    Ok(all)
}
