//! Live delete files, and which of them apply to a data file: specification "Scan planning".
//!
//! | delete | applies to a data file |
//! | --- | --- |
//! | deletion vector | that it references |
//! | position delete | of the same spec and partition, written before it or with it, that it may name |
//! | equality delete | written before it, of the same spec and partition, or any where its spec is unpartitioned |
//!
//! What a position delete file names is told by its reference, else by the bounds of its paths: rows are not looked
//! at, so it may apply and have nothing to delete. Of a file with a deletion vector, position deletes do not count.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{DataContentType, DataFile, DataFileFormat, Datum, PrimitiveLiteral, TableMetadata};

use super::LiveFile;
use super::partition_key::partition_key;

/// The field id of `file_path` in position delete files.
const DELETE_FILE_PATH: i32 = i32::MAX - 101;

/// One live delete file, or one deletion vector: vectors share a file.
#[derive(Debug, Clone)]
pub struct LiveDelete {
    /// The entry's file, complete.
    pub file: Arc<DataFile>,
    /// The id of the partition spec it was written with.
    pub spec_id: i32,
    /// The data sequence number.
    pub sequence_number: i64,
    /// The manifest that holds the entry.
    pub manifest_path: Arc<str>,
}

/// What tells delete files of a snapshot apart: the path and, for a deletion vector, the offset in the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeleteKey {
    /// The path.
    pub path: String,
    /// Where its content begins, in bytes.
    pub content_offset: Option<i64>,
}

/// Which data files a delete is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeleteScope {
    /// A deletion vector of this data file.
    Vector(String),
    /// A position delete file for this data file alone.
    File(String),
    /// A position delete file for data files of its partition.
    Paths,
    /// An equality delete.
    Equality,
}

impl DeleteKey {
    /// The key of a delete file's entry.
    #[must_use]
    pub fn of(file: &DataFile) -> Self {
        Self { path: file.file_path().to_owned(), content_offset: file.content_offset() }
    }
}

impl DeleteScope {
    /// What the entry of a delete file says.
    #[must_use]
    pub fn of(file: &DataFile) -> Self {
        let only = file.referenced_data_file().or_else(|| match path_bounds(file) {
            (Some(lower), Some(upper)) if lower == upper => Some(lower.to_owned()),
            _ => None,
        });
        match (file.content_type(), only) {
            (DataContentType::EqualityDeletes, _) => Self::Equality,
            (_, Some(path)) if file.file_format() == DataFileFormat::Puffin => Self::Vector(path),
            (_, Some(path)) => Self::File(path),
            (_, None) => Self::Paths,
        }
    }
}

impl LiveDelete {
    /// What tells it apart.
    #[must_use]
    pub fn key(&self) -> DeleteKey {
        DeleteKey::of(&self.file)
    }

    /// Which data files it is about.
    #[must_use]
    pub fn scope(&self) -> DeleteScope {
        DeleteScope::of(&self.file)
    }

    /// Whether a position delete file can name this path.
    fn may_name(&self, path: &str) -> bool {
        let (lower, upper) = path_bounds(&self.file);
        lower.is_none_or(|lower| lower <= path) && upper.is_none_or(|upper| path <= upper)
    }
}

/// The bounds of the paths in a position delete file. Shortened ones are still bounds.
fn path_bounds(file: &DataFile) -> (Option<&str>, Option<&str>) {
    (text(file.lower_bounds().get(&DELETE_FILE_PATH)), text(file.upper_bounds().get(&DELETE_FILE_PATH)))
}

fn text(bound: Option<&Datum>) -> Option<&str> {
    match bound?.literal() {
        PrimitiveLiteral::String(text) => Some(text),
        _ => None,
    }
}

/// A partition of a spec.
type PartitionOfSpec = (i32, String);

/// The live deletes of a snapshot, to be asked for those of a data file.
#[derive(Debug, Default)]
pub struct DeleteIndex {
    deletes: Vec<LiveDelete>,
    vectors: HashMap<String, Vec<usize>>,
    files: HashMap<String, Vec<usize>>,
    paths: HashMap<PartitionOfSpec, Vec<usize>>,
    equality: HashMap<PartitionOfSpec, Vec<usize>>,
    /// Equality deletes of unpartitioned specs: for all files of the table.
    global: Vec<usize>,
}

impl DeleteIndex {
    /// The index of these deletes, which are live in a snapshot of the table.
    #[must_use]
    pub fn new(metadata: &TableMetadata, deletes: Vec<LiveDelete>) -> Self {
        let mut index = Self::default();
        for (at, delete) in deletes.iter().enumerate() {
            let partition = || (delete.spec_id, partition_key(delete.file.partition()));
            match delete.scope() {
                DeleteScope::Vector(path) => index.vectors.entry(path).or_default().push(at),
                DeleteScope::File(path) => index.files.entry(path).or_default().push(at),
                DeleteScope::Paths => index.paths.entry(partition()).or_default().push(at),
                DeleteScope::Equality if is_global(metadata, delete.spec_id) => index.global.push(at),
                DeleteScope::Equality => index.equality.entry(partition()).or_default().push(at),
            }
        }
        index.deletes = deletes;
        index
    }

    /// The deletes.
    #[must_use]
    pub fn deletes(&self) -> &[LiveDelete] {
        &self.deletes
    }

    /// Those that apply to a data file.
    ///
    /// A deletion vector counts by its reference alone, also where it contradicts the specification (another
    /// partition, or older than the file): whoever cannot apply such a vector must leave the file alone.
    #[must_use]
    pub fn applying_to(&self, file: &LiveFile) -> Vec<&LiveDelete> {
        let path = file.file.file_path();
        let partition = (file.spec_id, partition_key(file.file.partition()));
        let of = |found: Option<&Vec<usize>>| -> Vec<&LiveDelete> {
            found.into_iter().flatten().map(|at| &self.deletes[*at]).collect()
        };
        let mut applying = of(self.vectors.get(path));
        if applying.is_empty() {
            let same = |delete: &&LiveDelete| {
                delete.spec_id == partition.0
                    && partition_key(delete.file.partition()) == partition.1
                    && file.sequence_number <= delete.sequence_number
            };
            applying.extend(of(self.files.get(path)).into_iter().filter(same));
            let paths = of(self.paths.get(&partition)).into_iter().filter(same);
            applying.extend(paths.filter(|delete| delete.may_name(path)));
        }
        let equality = of(self.equality.get(&partition)).into_iter().chain(of(Some(&self.global)));
        applying.extend(equality.filter(|delete| file.sequence_number < delete.sequence_number));
        applying
    }
}

/// Whether equality deletes of a spec are for all files of the table.
#[must_use]
pub fn is_global(metadata: &TableMetadata, spec_id: i32) -> bool {
    metadata.partition_spec_by_id(spec_id).is_some_and(|spec| spec.is_unpartitioned())
}

#[cfg(test)]
mod tests;
