//! The summary of a snapshot: what a commit changed, and the totals after it.

use std::collections::{BTreeMap, HashMap, HashSet};

use iceberg::spec::{DataContentType, DataFile, DataFileFormat, Operation, Snapshot, Struct, Summary};

/// Totals of Iceberg's own names. One that the parent lacks stays out: it cannot be known.
const TOTALS: [&str; 6] = [
    "total-records",
    "total-files-size",
    "total-data-files",
    "total-delete-files",
    "total-position-deletes",
    "total-equality-deletes",
];

/// Where other writers keep their place in the snapshots' summaries. They look for it at the head, so a replace
/// carries it on: Kafka Connect's sink, Flink's, Arroyo's.
const BOOKKEEPING: [&str; 5] =
    ["kafka.connect.", "flink.job-id", "flink.operator-id", "flink.max-committed-checkpoint-id", "arroyo."];

/// What a commit adds and removes.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    added: Counts,
    removed: Counts,
    removed_deletes: DeleteCounts,
    partitions: HashSet<(i32, Struct)>,
    /// Manifests written by the commit.
    pub(super) manifests_created: usize,
    /// Manifests of the parent that are in the new list.
    pub(super) manifests_kept: usize,
    /// Manifests of the parent in whose place others are.
    pub(super) manifests_replaced: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    files: u64,
    records: u64,
    bytes: u64,
}

impl Counts {
    fn count(&mut self, file: &DataFile) {
        self.files += 1;
        self.records += file.record_count();
        self.bytes += file.file_size_in_bytes();
    }
}

/// Delete files, by kind. A deletion vector is one, and its positions count as position deletes.
#[derive(Debug, Clone, Copy, Default)]
struct DeleteCounts {
    files: u64,
    vectors: u64,
    position_files: u64,
    equality_files: u64,
    positions: u64,
    equality_rows: u64,
    bytes: u64,
}

impl DeleteCounts {
    fn count(&mut self, file: &DataFile) {
        self.files += 1;
        let is_vector = file.file_format() == DataFileFormat::Puffin;
        match file.content_type() {
            DataContentType::EqualityDeletes => {
                self.equality_files += 1;
                self.equality_rows += file.record_count();
            }
            _ => {
                *if is_vector { &mut self.vectors } else { &mut self.position_files } += 1;
                self.positions += file.record_count();
            }
        }
        // Vectors share a file: each has the bytes of its own content.
        let own =
            file.content_size_in_bytes().filter(|_| is_vector).and_then(|bytes| u64::try_from(bytes).ok());
        self.bytes += own.unwrap_or_else(|| file.file_size_in_bytes());
    }
}

impl Changes {
    /// Counts an added data file.
    pub(super) fn add(&mut self, file: &DataFile, spec_id: i32) {
        self.added.count(file);
        self.partitions.insert((spec_id, file.partition().clone()));
    }

    /// Counts a removed data file.
    pub(super) fn remove(&mut self, file: &DataFile, spec_id: i32) {
        self.removed.count(file);
        self.partitions.insert((spec_id, file.partition().clone()));
    }

    /// Counts a removed delete file or deletion vector.
    pub(super) fn remove_delete(&mut self, file: &DataFile, spec_id: i32) {
        self.removed_deletes.count(file);
        self.partitions.insert((spec_id, file.partition().clone()));
    }

    /// The summary of a snapshot with these changes on top of `parent`. `own` are the entries of this commit.
    pub(super) fn summary(
        &self,
        operation: Operation,
        parent: Option<&Snapshot>,
        own: &BTreeMap<String, String>,
    ) -> Summary {
        let mut entries: HashMap<String, String> = HashMap::new();
        if let (Operation::Replace, Some(parent)) = (&operation, parent) {
            entries.extend(bookkeeping(parent));
        }
        let mut put = |name: &str, value: u64| {
            if value > 0 {
                entries.insert(name.to_owned(), value.to_string());
            }
        };
        put("added-data-files", self.added.files);
        put("added-records", self.added.records);
        put("added-files-size", self.added.bytes);
        put("deleted-data-files", self.removed.files);
        put("deleted-records", self.removed.records);
        put("removed-files-size", self.removed.bytes + self.removed_deletes.bytes);
        put("removed-delete-files", self.removed_deletes.files);
        put("removed-dvs", self.removed_deletes.vectors);
        put("removed-position-delete-files", self.removed_deletes.position_files);
        put("removed-position-deletes", self.removed_deletes.positions);
        put("removed-equality-delete-files", self.removed_deletes.equality_files);
        put("removed-equality-deletes", self.removed_deletes.equality_rows);
        for (name, value) in [
            ("changed-partition-count", self.partitions.len()),
            ("manifests-created", self.manifests_created),
            ("manifests-kept", self.manifests_kept),
            ("manifests-replaced", self.manifests_replaced),
        ] {
            entries.insert(name.to_owned(), value.to_string());
        }
        entries.extend(self.totals(parent));
        entries.insert("engine-name".to_owned(), "firn".to_owned());
        entries.insert("engine-version".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        entries.extend(own.clone());
        Summary { operation, additional_properties: entries }
    }

    fn totals(&self, parent: Option<&Snapshot>) -> Vec<(String, String)> {
        let total = |name: &&str| {
            let before = match parent {
                None => 0,
                Some(parent) => parent.summary().additional_properties.get(*name)?.parse::<u64>().ok()?,
            };
            let (added, removed) = match *name {
                "total-records" => (self.added.records, self.removed.records),
                "total-files-size" => (self.added.bytes, self.removed.bytes + self.removed_deletes.bytes),
                "total-data-files" => (self.added.files, self.removed.files),
                "total-delete-files" => (0, self.removed_deletes.files),
                "total-position-deletes" => (0, self.removed_deletes.positions),
                "total-equality-deletes" => (0, self.removed_deletes.equality_rows),
                _ => (0, 0),
            };
            let after = before.checked_add(added)?.checked_sub(removed)?;
            Some(((*name).to_owned(), after.to_string()))
        };
        TOTALS.iter().filter_map(total).collect()
    }
}

fn bookkeeping(parent: &Snapshot) -> impl Iterator<Item = (String, String)> + '_ {
    let kept = |name: &str| BOOKKEEPING.iter().any(|prefix| name.starts_with(prefix));
    let entries = parent.summary().additional_properties.iter();
    entries.filter(move |(name, _)| kept(name)).map(|(name, value)| (name.clone(), value.clone()))
}
