//! The table that was loaded to judge a refusal, for the load that follows at once: whoever met a conflict has half the
//! way to the next attempt behind him, and need not ask for the same again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iceberg::TableIdent;
use iceberg::table::Table;
use tokio::time::Instant;

/// How old it may be. Who waits longer before the next attempt wants a newer one.
const MAX_AGE: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(super) struct Looked {
    tables: Mutex<HashMap<TableIdent, (Table, Instant)>>,
}

impl Looked {
    /// This is how the table is now.
    pub(super) fn keep(&self, table: Table) {
        let mut tables = self.tables();
        tables.retain(|_, (_, at)| at.elapsed() <= MAX_AGE);
        tables.insert(table.identifier().clone(), (table, Instant::now()));
    }

    /// The table, for one load.
    pub(super) fn take(&self, table: &TableIdent) -> Option<Table> {
        let (table, at) = self.tables().remove(table)?;
        (at.elapsed() <= MAX_AGE).then_some(table)
    }

    /// A commit was sent: what was seen before it counts no more.
    pub(super) fn forget(&self, table: &TableIdent) {
        self.tables().remove(table);
    }

    fn tables(&self) -> MutexGuard<'_, HashMap<TableIdent, (Table, Instant)>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
