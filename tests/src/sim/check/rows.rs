//! W1: every message whose offset the ledger covers is in the table once, or declared rejected.

use std::collections::BTreeMap;

use async_trait::async_trait;
use firn_table::ledger::Ledger;

use super::super::records::Content;
use super::super::view::{Checker, Step, View, Violation};
use crate::rows;

/// Counts rows at the end.
#[derive(Debug)]
pub(super) struct EachOnce;

#[async_trait]
impl Checker for EachOnce {
    fn name(&self) -> &'static str {
        "W1"
    }

    async fn after_step(&mut self, _view: View<'_>, _step: Step) -> Result<(), Violation> {
        Ok(())
    }

    async fn at_end(&mut self, view: View<'_>) -> Result<(), Violation> {
        let Some(table) = view.table else { return Ok(()) };
        // Then more than cursors and rows tells what has to be there.
        if view.setting.cursors_may_go_back
            || !view.records.truncated.is_empty()
            || view.records.incarnation > 0
        {
            return Ok(());
        }
        let wrong = |what: String| Err(Violation::new("W1", what));
        let counts = match rows::ids(table, view.stores).await {
            Ok(counts) => counts,
            Err(error) => return wrong(format!("the table cannot be read: {error:#}")),
        };
        let ledgers = Ledger::read_all(table.metadata().properties()).unwrap_or_default();
        let mut expected: BTreeMap<i64, u64> = BTreeMap::new();
        for (_, _, ledger) in &ledgers {
            for produced in &view.records.produced {
                let covered = ledger
                    .cursors
                    .get(&produced.partition)
                    .is_some_and(|cursor| (cursor.start..cursor.next).contains(&produced.offset));
                if let (true, Content::Row(id)) = (covered, produced.content) {
                    expected.insert(id, 1);
                }
            }
        }
        for id in expected.keys().chain(counts.keys()).filter(|id| **id > 0) {
            let (there, due) = (counts.get(id).copied().unwrap_or(0), expected.get(id).copied().unwrap_or(0));
            if there != due {
                let message = view.records.produced.iter().find(|p| p.content == Content::Row(*id));
                return wrong(format!("id {id} is there {there} times instead of {due}: {message:?}"));
            }
        }
        Ok(())
    }
}
