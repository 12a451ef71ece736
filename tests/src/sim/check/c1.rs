//! C1: a replace leaves the multiset of rows unchanged. In format version 3 that includes their lineage.

use std::collections::BTreeMap;

use async_trait::async_trait;
use iceberg::spec::Operation;
use iceberg::table::Table;

use super::super::records::Role;
use super::super::view::{Checker, Step, View, Violation};
use super::lake::{Added, Lake};
use crate::foreign::LiveRow;

const NAME: &str = "C1";

/// The checker.
#[derive(Debug)]
pub struct C1 {
    lake: Lake,
}

/// Rows before and after.
type Rows = (Vec<LiveRow>, Vec<LiveRow>);

impl C1 {
    /// A new one.
    #[must_use]
    pub fn new(lake: &Lake) -> Self {
        Self { lake: lake.clone() }
    }

    /// The rows of a snapshot's parent and its own; without those of files that both have, where no row is deleted.
    async fn rows(&self, view: View<'_>, table: &Table, added: &Added) -> Result<Rows, Violation> {
        let mut deletes = self.lake.deletes(&added.contents).await?;
        if let Some(parent) = &added.parent {
            deletes.extend(self.lake.deletes(parent).await?);
        }
        if deletes.is_empty() {
            let changes = self.lake.changes(added).await?;
            let before = self.lake.rows_of_files(view, table, &changes.removed).await?;
            return Ok((before, self.lake.rows_of_files(view, table, &changes.added).await?));
        }
        let before = match &added.parent {
            Some(parent) => self.lake.live_rows(view, table, parent.snapshot.snapshot_id()).await?,
            None => Vec::new(),
        };
        Ok((before, self.lake.live_rows(view, table, added.id()).await?))
    }
}

#[async_trait]
impl Checker for C1 {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation> {
        let Some(commit) = view.records.commits.last().filter(|_| step == Step::Commit) else {
            return Ok(());
        };
        let ours = matches!(commit.by.role, Role::Compactor | Role::Maintenance | Role::Writer);
        let Some(table) = commit.after.as_ref().filter(|_| ours) else { return Ok(()) };
        for added in self.lake.added(view).await? {
            if !added.is(&Operation::Replace) {
                continue;
            }
            let (before, after) = self.rows(view, table, &added).await?;
            if let Some(what) = difference(&before, &after) {
                let by = &commit.by.name;
                return Err(Violation::new(NAME, format!("replace {} of {by}: {what}", added.id())));
            }
        }
        Ok(())
    }

    async fn at_end(&mut self, _view: View<'_>) -> Result<(), Violation> {
        Ok(())
    }
}

/// The first row that is there more or less often, or has another lineage where it had one.
fn difference(before: &[LiveRow], after: &[LiveRow]) -> Option<String> {
    let mut balance: BTreeMap<&str, i64> = BTreeMap::new();
    before.iter().for_each(|row| *balance.entry(&row.text).or_default() -= 1);
    after.iter().for_each(|row| *balance.entry(&row.text).or_default() += 1);
    if let Some((row, more)) = balance.iter().find(|(_, more)| **more != 0) {
        let times = more.unsigned_abs();
        let lost: i64 = balance.values().filter(|more| **more < 0).sum();
        let new: i64 = balance.values().filter(|more| **more > 0).sum();
        let way = if *more < 0 { "is lost" } else { "was brought back or doubled" };
        return Some(format!("row `{row}` {way}, {times} times; in all {} lost, {new} more", -lost));
    }
    let lineage = |row: &LiveRow| Some((row.text.clone(), row.row_id?, row.last_updated?));
    let mut known: BTreeMap<_, i64> = BTreeMap::new();
    after.iter().filter_map(lineage).for_each(|row| *known.entry(row).or_default() += 1);
    for (text, row_id, last_updated) in before.iter().filter_map(lineage) {
        let count = known.entry((text.clone(), row_id, last_updated)).or_default();
        *count -= 1;
        if *count < 0 {
            return Some(format!(
                "row `{text}` lost its row id {row_id} or its last update at sequence number {last_updated}"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str, lineage: Option<(i64, i64)>) -> LiveRow {
        LiveRow {
            path: "f".into(),
            spec_id: 0,
            partition: iceberg::spec::Struct::empty(),
            position: 0,
            text: text.to_owned(),
            id: None,
            row_id: lineage.map(|(row_id, _)| row_id),
            last_updated: lineage.map(|(_, updated)| updated),
        }
    }

    #[test]
    fn rows_are_counted_whatever_their_order() {
        let before = [row("a", None), row("b", None), row("b", None)];
        assert_eq!(difference(&before, &[row("b", None), row("a", None), row("b", None)]), None);
        let lost = difference(&before, &before[..2]);
        assert!(lost.is_some_and(|what| what.contains("`b` is lost, 1 times")));
        let back = difference(&before[1..], &before);
        assert!(back.is_some_and(|what| what.contains("`a` was brought back")));
    }

    #[test]
    fn lineage_stays_where_there_was_one() {
        let with = |id| [row("a", Some((id, 5)))];
        assert_eq!(difference(&with(1), &with(1)), None);
        assert_eq!(difference(&[row("a", None)], &with(7)), None);
        assert!(difference(&with(1), &with(2)).is_some());
        assert!(difference(&with(1), &[row("a", Some((1, 6)))]).is_some());
    }
}
