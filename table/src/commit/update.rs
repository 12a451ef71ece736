//! Commits that add no snapshot: properties, and what expiry removes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use iceberg::table::Table;
use iceberg::{TableRequirement, TableUpdate};

use super::TableHandle;
use super::handle::Turn;
use super::protocol::{Finished, Landed, Producer, Request, Step};
use super::written::Written;
use crate::ledger::{CommitId, PREFIX};
use crate::{Error, ErrorKind, Result};

/// Metadata updates to be committed, and what must hold for the head so that they are right.
/// That the table has the same uuid is required in any case.
#[derive(Debug, Clone, Default)]
pub(crate) struct MetadataChange {
    /// What must hold.
    pub(crate) requirements: Vec<TableRequirement>,
    /// What is changed.
    pub(crate) updates: Vec<TableUpdate>,
}

/// What became of a [`MetadataChange`].
#[derive(Debug, Clone)]
pub(crate) enum Submitted {
    /// The change is in the table, or the head needs it no more since the last request.
    Committed {
        /// The table that the last request was made for. Where its outcome was unknown or a conflict and the head
        /// then needed no change, still the table before it.
        base: Box<Table>,
        /// The table after it.
        table: Box<Table>,
    },
    /// The head needs no change; nothing was sent.
    Unneeded(Box<Table>),
}

impl TableHandle {
    /// Commits metadata updates in turn with the appends and replaces of this process.
    ///
    /// `change` is asked on the base of every attempt and must be pure: `None` where the base needs no change. After
    /// a conflict or an unknown outcome the table is loaded and `change` is asked again, so it must be such that
    /// asking it on a table that holds it already gives `None`. Errors are those of [`TableHandle::append`].
    pub(crate) async fn submit(
        &self,
        change: impl FnMut(&Table) -> Result<Option<MetadataChange>> + Send,
    ) -> Result<Submitted> {
        let mut submission = Submission { change, sent: None };
        let finished = self.run(&mut submission, Written::new([])).await?;
        let table = match finished {
            Finished::Landed(committed) => Box::new(committed.table),
            Finished::Stopped(table) => table,
        };
        Ok(match submission.sent {
            Some(base) => Submitted::Committed { base, table },
            None => Submitted::Unneeded(table),
        })
    }

    /// Sets and removes table properties. The ledger's properties are refused: a cursor changes only together with
    /// a snapshot ([`TableHandle::set_cursors`]), or the comparison of the branch's head would not cover it.
    pub async fn set_properties(&self, set: BTreeMap<String, String>, remove: Vec<String>) -> Result<Table> {
        if let Some(name) = set.keys().chain(&remove).find(|name| name.starts_with(PREFIX)) {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!("property `{name}` holds a ledger and is not set by itself: set the cursors instead"),
            ));
        }
        let change = |table: &Table| {
            let now = table.metadata().properties();
            let updates: HashMap<String, String> = set
                .iter()
                .filter(|(name, value)| now.get(*name) != Some(value))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            let removals: Vec<String> =
                remove.iter().filter(|name| now.contains_key(*name)).cloned().collect();
            let mut change = MetadataChange::default();
            if !updates.is_empty() {
                change.updates.push(TableUpdate::SetProperties { updates });
            }
            if !removals.is_empty() {
                change.updates.push(TableUpdate::RemoveProperties { removals });
            }
            Ok((!change.updates.is_empty()).then_some(change))
        };
        Ok(match self.submit(change).await? {
            Submitted::Committed { table, .. } | Submitted::Unneeded(table) => *table,
        })
    }
}

struct Submission<F> {
    change: F,
    /// The base of the last request.
    sent: Option<Box<Table>>,
}

impl<F> Producer for Submission<F>
where
    F: FnMut(&Table) -> Result<Option<MetadataChange>> + Send,
{
    type Stop = Box<Table>;

    fn commit_id(&self) -> Option<CommitId> {
        None
    }

    fn given(&self) -> Vec<String> {
        Vec::new()
    }

    /// A loaded table is judged by `attempt`: it needs the change or not.
    fn landed(&self, _table: &Table) -> Option<Landed> {
        None
    }

    fn landed_in_reply(&self, _table: &Table) -> Option<Landed> {
        Some(Landed { snapshot_id: 0, sequence_number: 0, files: HashSet::new() })
    }

    /// A change that the known table does not need can wait.
    fn verdict_needs_head(&self) -> bool {
        false
    }

    async fn attempt(&mut self, _turn: &mut Turn, base: &Table) -> Result<Step<Box<Table>>> {
        let Some(change) = (self.change)(base)? else { return Ok(Step::Stop(Box::new(base.clone()))) };
        let mut requirements = vec![TableRequirement::UuidMatch { uuid: base.metadata().uuid() }];
        requirements.extend(change.requirements);
        self.sent = Some(Box::new(base.clone()));
        Ok(Step::Send(Request {
            requirements,
            updates: change.updates,
            files: Vec::new(),
            list_time: Duration::ZERO,
        }))
    }

    fn confirm(&mut self, _turn: &mut Turn, _table: &Table) -> Result<()> {
        Ok(())
    }
}
