//! Which rows a delete is for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use iceberg::table::Table;
use rand::seq::IndexedRandom;

use super::engine::Engine;
use super::reader::LiveRow;

/// Which rows a delete is for.
#[derive(Debug, Clone)]
pub enum Victims {
    /// Those whose column `id` holds one of these.
    Ids(BTreeSet<i64>),
    /// Some rows of some files.
    Random {
        /// Files at most.
        files: usize,
        /// Rows of each at most.
        rows: usize,
    },
}

impl Victims {
    /// Those whose column `id` holds one of these.
    pub fn ids(ids: impl IntoIterator<Item = i64>) -> Self {
        Self::Ids(ids.into_iter().collect())
    }
}

impl Engine {
    /// The rows of the head that are meant, as they are there now.
    pub(super) async fn victims(&mut self, base: &Table, victims: &Victims) -> Result<Vec<LiveRow>> {
        let Some(head) = base.metadata().current_snapshot_id() else { return Ok(Vec::new()) };
        let live = self.reader.live(base, head).await?;
        Ok(match victims {
            Victims::Ids(ids) => {
                live.into_iter().filter(|row| row.id.is_some_and(|id| ids.contains(&id))).collect()
            }
            Victims::Random { files, rows } => {
                let mut by_file: BTreeMap<String, Vec<LiveRow>> = BTreeMap::new();
                for row in live {
                    by_file.entry(row.path.to_string()).or_default().push(row);
                }
                let paths: Vec<String> = by_file.keys().cloned().collect();
                let chosen: Vec<String> = paths.choose_multiple(&mut self.random, *files).cloned().collect();
                let mut meant = Vec::new();
                for path in chosen {
                    let of_file = &by_file[&path];
                    meant.extend(of_file.choose_multiple(&mut self.random, *rows).cloned());
                }
                meant
            }
        })
    }
}
