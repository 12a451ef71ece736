//! Rows are deleted by deletion vectors: format version 3.

use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use async_trait::async_trait;
use iceberg::spec::{DataContentType, DataFileBuilder, DataFileFormat, FormatVersion, Operation};
use iceberg::table::Table;

use super::engine::{Deed, Engine};
use super::entries::{Entry, FileKey};
use super::files::{FILE_PATH, Partition};
use super::position_delete::by_partition;
use super::puffin;
use super::rows::is_vector;
use super::snapshot::{Added, Change, Draft};
use super::victims::Victims;

/// Deletes rows by deletion vectors, all in one Puffin file. A vector that a data file has already, and position
/// deletes for it alone, are merged into the new one and removed.
#[derive(Debug, Clone)]
pub struct DeletionVectors {
    /// The rows.
    pub victims: Victims,
}

/// The vectors to be written.
#[derive(Debug, Default)]
struct Merged {
    vectors: BTreeMap<String, HashSet<i64>>,
    partitions: BTreeMap<String, Partition>,
    removed: HashSet<FileKey>,
}

#[async_trait]
impl Deed for DeletionVectors {
    async fn decide(&self, engine: &mut Engine, base: &Table) -> Result<Option<Change>> {
        let metadata = base.metadata();
        let Some(head) = metadata.current_snapshot_id() else { return Ok(None) };
        if metadata.format_version() < FormatVersion::V3 {
            return Ok(None);
        }
        let mut merged = Merged::default();
        for (partition, files) in by_partition(&engine.victims(base, &self.victims).await?) {
            for (path, positions) in files {
                merged.partitions.insert(path.clone(), partition.clone());
                merged.vectors.insert(path, positions);
            }
        }
        if merged.vectors.is_empty() {
            return Ok(None);
        }
        let entries = engine.reader.entries(base, head).await?;
        for entry in entries.iter().filter(|e| e.file.content_type() == DataContentType::PositionDeletes) {
            engine.merge(&mut merged, entry, &entries).await?;
        }
        let added = engine.write_vectors(base, &merged).await?;
        Ok(Some(Draft { operation: Operation::Delete, added, removed: merged.removed }.into()))
    }
}

impl Engine {
    /// Takes what a delete file says about the vectors' files into the vectors.
    async fn merge(&mut self, merged: &mut Merged, delete: &Entry, entries: &[Entry]) -> Result<()> {
        if is_vector(&delete.file) {
            let of = delete.file.referenced_data_file().unwrap_or_default();
            if let Some(vector) = merged.vectors.get_mut(&of) {
                vector.extend(self.reader.vector(delete).await?.iter());
                merged.removed.insert(delete.key());
            }
            return Ok(());
        }
        for (path, positions) in self.reader.position_deletes(delete).await?.iter() {
            let applies = entries.iter().any(|data| {
                data.is_data()
                    && data.file.file_path() == path
                    && data.sequence_number <= delete.sequence_number
            });
            if applies && let Some(vector) = merged.vectors.get_mut(path) {
                vector.extend(positions);
                if of_one_file(delete) {
                    merged.removed.insert(delete.key());
                }
            }
        }
        Ok(())
    }

    async fn write_vectors(&mut self, base: &Table, merged: &Merged) -> Result<Vec<Added>> {
        let path = format!("{}/data/foreign-{}.puffin", base.metadata().location(), self.uuid());
        let (placed, bytes) = puffin::write(base, &path, &merged.vectors).await?;
        let mut added = Vec::new();
        for vector in placed {
            let partition = &merged.partitions[&vector.data_file];
            let file = DataFileBuilder::default()
                .content(DataContentType::PositionDeletes)
                .file_path(path.clone())
                .file_format(DataFileFormat::Puffin)
                .partition(partition.tuple.clone())
                .partition_spec_id(partition.spec_id)
                .record_count(vector.cardinality)
                .file_size_in_bytes(bytes)
                .referenced_data_file(Some(vector.data_file.clone()))
                .content_offset(Some(vector.offset))
                .content_size_in_bytes(Some(vector.size))
                .build()?;
            added.push(Added { file, spec_id: partition.spec_id, sequence_number: None });
        }
        Ok(added)
    }
}

/// Whether a position delete file names one data file alone.
fn of_one_file(delete: &Entry) -> bool {
    let (lower, upper) = (delete.file.lower_bounds(), delete.file.upper_bounds());
    delete.file.referenced_data_file().is_some()
        || lower.get(&FILE_PATH).is_some_and(|lower| Some(lower) == upper.get(&FILE_PATH))
}
