//! C6: the ledger is untouched by maintenance, and so is the head of `main`, unless a rewrite is what it is.

use std::collections::BTreeMap;

use async_trait::async_trait;
use firn_table::ledger::CommitRecord;
use iceberg::table::Table;

use super::super::records::{Commit, Role};
use super::super::view::{Checker, Step, View, Violation};

const NAME: &str = "C6";
const PREFIX: &str = "firn.cursor.";

/// The checker.
#[derive(Debug, Default)]
pub struct C6;

#[async_trait]
impl Checker for C6 {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation> {
        let Some(commit) = view.records.commits.last().filter(|_| step == Step::Commit) else {
            return Ok(());
        };
        let (Some(before), Some(after)) = (&commit.before, &commit.after) else { return Ok(()) };
        if !is_maintenance(commit, after) {
            return Ok(());
        }
        if commit.added_snapshots().next().is_none() {
            let head = |table: &Table| table.metadata().current_snapshot_id();
            let (from, to) = (head(before), head(after));
            if from != to {
                let what = format!("`main` went from {from:?} to {to:?} by a commit of {}", commit.by.name);
                return Err(Violation::new(NAME, what));
            }
        }
        let (before, after) = (ledgers(before), ledgers(after));
        match before.iter().chain(&after).find(|(name, _)| before.get(*name) != after.get(*name)) {
            None => Ok(()),
            Some((name, _)) => Err(Violation::new(
                NAME,
                format!(
                    "`{name}` was {:?} and is {:?} after a commit of {}",
                    before.get(name),
                    after.get(name),
                    commit.by.name
                ),
            )),
        }
    }

    async fn at_end(&mut self, _view: View<'_>) -> Result<(), Violation> {
        Ok(())
    }
}

/// Whether a commit of ours is none of a flush or of a person's cursors.
fn is_maintenance(commit: &Commit, after: &Table) -> bool {
    let is_of_a_writer = |id| {
        let snapshot = after.metadata().snapshot_by_id(id);
        snapshot.is_some_and(|s| CommitRecord::read(&s.summary().additional_properties).is_some())
    };
    let ours = matches!(commit.by.role, Role::Writer | Role::Compactor | Role::Maintenance);
    ours && !commit.added_snapshots().any(is_of_a_writer)
}

fn ledgers(table: &Table) -> BTreeMap<&String, &String> {
    let properties = table.metadata().properties().iter();
    properties.filter(|(name, _)| name.starts_with(PREFIX)).collect()
}
