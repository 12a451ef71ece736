//! Rows are deleted by position delete files; position delete files are rewritten.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use async_trait::async_trait;
use iceberg::spec::{DataContentType, FormatVersion, Operation, Struct};
use iceberg::table::Table;

use super::engine::{Deed, Engine};
use super::entries::Entry;
use super::files::Partition;
use super::reader::LiveRow;
use super::rows::is_vector;
use super::snapshot::{Added, Change, Draft};
use super::victims::Victims;

/// How many data files a position delete file is for, and how its entry says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One, by equal lower and upper bounds of `file_path`.
    FileByBounds,
    /// One, by `referenced_data_file`.
    FileByReference,
    /// All of a partition.
    Partition,
}

/// Deletes rows by position. Format version 3 takes no new position delete files: nothing is done there.
#[derive(Debug, Clone)]
pub struct PositionDelete {
    /// The rows.
    pub victims: Victims,
    /// The files.
    pub scope: Scope,
}

/// The data sequence number of rewritten delete files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceNumber {
    /// The highest of the files that were rewritten, explicitly: the deletes apply to what they applied to.
    Kept,
    /// That of the commit.
    New,
}

/// Puts one position delete file per data file in the place of all that name it, and may delete more rows of those
/// files in the same commit, as engines do that merge the deletes of a file when they add to them. Format version 3
/// takes no new position delete files: nothing is done there.
#[derive(Debug, Clone)]
pub struct RewritePositionDeletes {
    /// The sequence number of the new delete files.
    pub sequence_number: SequenceNumber,
    /// Rows that are deleted with it.
    pub victims: Victims,
}

/// Positions by data file, by partition.
pub(super) fn by_partition(rows: &[LiveRow]) -> Vec<(Partition, BTreeMap<String, HashSet<i64>>)> {
    let mut parts: Vec<(Partition, BTreeMap<String, HashSet<i64>>)> = Vec::new();
    for row in rows {
        let partition = Partition { spec_id: row.spec_id, tuple: row.partition.clone() };
        let at = parts.iter().position(|(known, _)| *known == partition).unwrap_or_else(|| {
            parts.push((partition, BTreeMap::new()));
            parts.len() - 1
        });
        parts[at].1.entry(row.path.to_string()).or_default().insert(row.position);
    }
    parts
}

#[async_trait]
impl Deed for PositionDelete {
    async fn decide(&self, engine: &mut Engine, base: &Table) -> Result<Option<Change>> {
        if base.metadata().format_version() >= FormatVersion::V3 {
            return Ok(None);
        }
        let victims = engine.victims(base, &self.victims).await?;
        let mut added = Vec::new();
        for (partition, files) in by_partition(&victims) {
            let pairs = |(file, positions): (String, HashSet<i64>)| {
                positions.into_iter().map(move |p| (file.clone(), p))
            };
            let deletes: Vec<Vec<(String, i64)>> = match self.scope {
                Scope::Partition => vec![files.into_iter().flat_map(pairs).collect()],
                Scope::FileByBounds | Scope::FileByReference => {
                    files.into_iter().map(|file| pairs(file).collect()).collect()
                }
            };
            for deletes in deletes {
                let file = engine.position_delete_file(base, deletes, &partition, self.scope).await?;
                added.push(Added { file, spec_id: partition.spec_id, sequence_number: None });
            }
        }
        Ok((!added.is_empty()).then(|| Draft::adding(Operation::Delete, added).into()))
    }
}

/// The deletes of a data file: where it is, which positions, the highest sequence number.
#[derive(Debug)]
struct OfFile {
    partition: Partition,
    positions: HashSet<i64>,
    sequence_number: i64,
}

#[async_trait]
impl Deed for RewritePositionDeletes {
    async fn decide(&self, engine: &mut Engine, base: &Table) -> Result<Option<Change>> {
        let Some(head) = base.metadata().current_snapshot_id() else { return Ok(None) };
        if base.metadata().format_version() >= FormatVersion::V3 {
            return Ok(None);
        }
        let entries = engine.reader.entries(base, head).await?;
        let old: Vec<Entry> = entries
            .iter()
            .filter(|entry| entry.file.content_type() == DataContentType::PositionDeletes)
            .filter(|entry| !is_vector(&entry.file))
            .cloned()
            .collect();
        if old.is_empty() {
            return Ok(None);
        }
        let mut files: BTreeMap<String, OfFile> = BTreeMap::new();
        for entry in &old {
            for (path, positions) in engine.reader.position_deletes(entry).await?.iter() {
                merge(&mut files, path, entry.spec_id, (entry.file.partition(), entry.sequence_number));
                if let Some(known) = files.get_mut(path) {
                    known.positions.extend(positions);
                }
            }
        }
        // A file that is gone needs no deletes; one that came after a delete of its name is not meant by it.
        let live: HashMap<&str, i64> = entries
            .iter()
            .filter(|entry| entry.is_data())
            .map(|entry| (entry.file.file_path(), entry.sequence_number))
            .collect();
        files.retain(|path, of| live.get(path.as_str()).is_some_and(|number| *number <= of.sequence_number));
        for row in engine.victims(base, &self.victims).await? {
            if let Some(known) = files.get_mut(row.path.as_ref()) {
                known.positions.insert(row.position);
            }
        }
        let mut added = Vec::new();
        for (path, of) in files {
            let deletes = of.positions.iter().map(|position| (path.clone(), *position)).collect();
            let file = engine.position_delete_file(base, deletes, &of.partition, Scope::FileByBounds).await?;
            let kept = (self.sequence_number == SequenceNumber::Kept).then_some(of.sequence_number);
            added.push(Added { file, spec_id: of.partition.spec_id, sequence_number: kept });
        }
        let removed = old.iter().map(Entry::key).collect();
        Ok(Some(Draft { operation: Operation::Delete, added, removed }.into()))
    }
}

fn merge(files: &mut BTreeMap<String, OfFile>, path: &str, spec_id: i32, (tuple, number): (&Struct, i64)) {
    let known = files.entry(path.to_owned()).or_insert_with(|| OfFile {
        partition: Partition { spec_id, tuple: tuple.clone() },
        positions: HashSet::new(),
        sequence_number: number,
    });
    known.sequence_number = known.sequence_number.max(number);
}
