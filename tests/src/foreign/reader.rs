//! The rows of a snapshot with all its deletes applied: specification "Scan planning", "Deletion vectors", "Row-level
//! deletes", "Row lineage".

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use firn_table::storage::Stores;
use iceberg::spec::{DataContentType, ManifestFile, Schema, Struct};
use iceberg::table::Table;

use super::entries::{Entry, entries, manifests};
use super::files::{FILE_PATH, LAST_UPDATED, POSITION, ROW_ID};
use super::puffin;
use super::rows::{FileColumns, is_vector};

/// How often each row is in a snapshot. A row is its values by column name.
pub type Rows = BTreeMap<String, u64>;

/// A row of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRow {
    /// The data file.
    pub path: Arc<str>,
    /// The spec of the file.
    pub spec_id: i32,
    /// The partition of the file.
    pub partition: Struct,
    /// The position in the file.
    pub position: i64,
    /// The values, by the names of the table's current schema.
    pub text: String,
    /// The value of the column `id`, where there is one.
    pub id: Option<i64>,
    /// `_row_id`, in format version 3.
    pub row_id: Option<i64>,
    /// `_last_updated_sequence_number`, in format version 3.
    pub last_updated: Option<i64>,
}

/// Rows that equality deletes name: field ids, and the values that are gone.
type Keys = (Vec<i32>, HashSet<Vec<Option<String>>>);

/// Reads snapshots of one table. What never changes is read once: manifests and files, by their paths.
pub struct Reader {
    stores: Stores,
    manifests: HashMap<(String, Option<u64>), Arc<Vec<Entry>>>,
    files: HashMap<String, Arc<FileColumns>>,
    texts: HashMap<(String, i32), Arc<Vec<String>>>,
    positions: HashMap<String, Arc<HashMap<String, HashSet<i64>>>>,
    vectors: HashMap<(String, i64), Arc<HashSet<i64>>>,
    keys: HashMap<String, Arc<Keys>>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

/// Reads the head of a table without keeping anything.
pub async fn rows(table: &Table, stores: &Stores) -> Result<Rows> {
    match table.metadata().current_snapshot_id() {
        Some(head) => Reader::new(stores).rows(table, head).await,
        None => Ok(Rows::new()),
    }
}

impl Reader {
    /// A reader that has read nothing yet.
    #[must_use]
    pub fn new(stores: &Stores) -> Self {
        Self {
            stores: stores.clone(),
            manifests: HashMap::new(),
            files: HashMap::new(),
            texts: HashMap::new(),
            positions: HashMap::new(),
            vectors: HashMap::new(),
            keys: HashMap::new(),
        }
    }

    /// How often each row is in a snapshot, by the table's current schema.
    pub async fn rows(&mut self, table: &Table, snapshot_id: i64) -> Result<Rows> {
        let mut rows = Rows::new();
        for row in self.live(table, snapshot_id).await? {
            *rows.entry(row.text).or_default() += 1;
        }
        Ok(rows)
    }

    /// The live entries of a snapshot: data and deletes.
    pub async fn entries(&mut self, table: &Table, snapshot_id: i64) -> Result<Vec<Entry>> {
        let snapshot = table.metadata().snapshot_by_id(snapshot_id).context("a snapshot of the table")?;
        let mut all = Vec::new();
        for manifest in manifests(table, snapshot).await? {
            all.extend(self.of_manifest(&manifest).await?.iter().filter(|entry| entry.is_live()).cloned());
        }
        Ok(all)
    }

    async fn of_manifest(&mut self, manifest: &ManifestFile) -> Result<Arc<Vec<Entry>>> {
        let key = (manifest.manifest_path.clone(), manifest.first_row_id);
        if let Some(known) = self.manifests.get(&key) {
            return Ok(known.clone());
        }
        let read = Arc::new(entries(&self.stores.file_io(), manifest).await?);
        self.manifests.insert(key, read.clone());
        Ok(read)
    }

    /// Every row of a snapshot that no delete takes away, by the table's current schema.
    pub async fn live(&mut self, table: &Table, snapshot_id: i64) -> Result<Vec<LiveRow>> {
        let (data, deletes): (Vec<Entry>, Vec<Entry>) =
            self.entries(table, snapshot_id).await?.into_iter().partition(Entry::is_data);
        let schema = table.metadata().current_schema();
        let global = |spec_id: i32| {
            table.metadata().partition_spec_by_id(spec_id).is_some_and(|spec| spec.is_unpartitioned())
        };
        let mut live = Vec::new();
        for file in &data {
            let gone = self.deleted(file, &deletes, &global).await?;
            live.extend(self.rows_of(file, schema, &gone).await?);
        }
        Ok(live)
    }

    /// The positions of a file that deletes take away.
    async fn deleted(
        &mut self,
        file: &Entry,
        deletes: &[Entry],
        global: &impl Fn(i32) -> bool,
    ) -> Result<HashSet<i64>> {
        let path = file.file.file_path();
        let same_partition = |delete: &Entry| {
            delete.spec_id == file.spec_id && delete.file.partition() == file.file.partition()
        };
        let vectors: Vec<&Entry> = deletes
            .iter()
            .filter(|delete| is_vector(&delete.file))
            .filter(|delete| delete.file.referenced_data_file().as_deref() == Some(path))
            .filter(|delete| same_partition(delete) && file.sequence_number <= delete.sequence_number)
            .collect();
        ensure!(vectors.len() < 2, "{path} has {} deletion vectors", vectors.len());
        let mut gone = HashSet::new();
        if let Some(vector) = vectors.first() {
            gone.extend(self.vector(vector).await?.iter());
        }
        for delete in deletes {
            match delete.file.content_type() {
                DataContentType::PositionDeletes
                    if vectors.is_empty()
                        && !is_vector(&delete.file)
                        && same_partition(delete)
                        && file.sequence_number <= delete.sequence_number =>
                {
                    gone.extend(self.position_deletes(delete).await?.get(path).into_iter().flatten());
                }
                DataContentType::EqualityDeletes
                    if file.sequence_number < delete.sequence_number
                        && (global(delete.spec_id) || same_partition(delete)) =>
                {
                    let keys = self.equality_deletes(delete).await?;
                    gone.extend(self.matching(path, &keys).await?);
                }
                _ => {}
            }
        }
        Ok(gone)
    }

    /// The rows of a data file but those at some positions.
    pub(crate) async fn rows_of(
        &mut self,
        file: &Entry,
        schema: &Schema,
        gone: &HashSet<i64>,
    ) -> Result<Vec<LiveRow>> {
        let path: Arc<str> = file.file.file_path().into();
        let columns = self.columns(&path).await?;
        ensure!(columns.rows as u64 == file.file.record_count(), "{path} has {} rows", columns.rows);
        let texts = self.texts(&path, schema, &columns)?;
        let id = schema.field_by_name("id").map(|field| field.id);
        let ids = id.and_then(|id| columns.numbers(id).ok()).unwrap_or_else(|| vec![None; columns.rows]);
        let (row_ids, updated) = (columns.numbers(ROW_ID)?, columns.numbers(LAST_UPDATED)?);
        let mut rows = Vec::new();
        for at in 0..columns.rows {
            let position = i64::try_from(at)?;
            if gone.contains(&position) {
                continue;
            }
            // Both are null where the file has no first row id: it is older than the format.
            let first = file.file.first_row_id();
            rows.push(LiveRow {
                path: path.clone(),
                spec_id: file.spec_id,
                partition: file.file.partition().clone(),
                position,
                text: texts[at].clone(),
                id: ids[at],
                row_id: first.map(|first| row_ids[at].unwrap_or(first + position)),
                last_updated: first.map(|_| updated[at].unwrap_or(file.sequence_number)),
            });
        }
        Ok(rows)
    }

    /// The columns of a data file.
    pub(super) async fn columns(&mut self, path: &str) -> Result<Arc<FileColumns>> {
        if let Some(known) = self.files.get(path) {
            return Ok(known.clone());
        }
        let bytes = self.stores.read(path).await?;
        let read = Arc::new(FileColumns::of_parquet(bytes).with_context(|| path.to_owned())?);
        self.files.insert(path.to_owned(), read.clone());
        Ok(read)
    }

    fn texts(&mut self, path: &str, schema: &Schema, columns: &FileColumns) -> Result<Arc<Vec<String>>> {
        let key = (path.to_owned(), schema.schema_id());
        if let Some(known) = self.texts.get(&key) {
            return Ok(known.clone());
        }
        let texts = Arc::new(columns.texts(schema)?);
        self.texts.insert(key, texts.clone());
        Ok(texts)
    }

    /// The positions that a position delete file names, by data file.
    pub(super) async fn position_deletes(
        &mut self,
        delete: &Entry,
    ) -> Result<Arc<HashMap<String, HashSet<i64>>>> {
        let path = delete.file.file_path();
        if let Some(known) = self.positions.get(path) {
            return Ok(known.clone());
        }
        let columns = FileColumns::of_parquet(self.stores.read(path).await?)?;
        let mut positions: HashMap<String, HashSet<i64>> = HashMap::new();
        for (file, position) in columns.values(FILE_PATH)?.into_iter().zip(columns.numbers(POSITION)?) {
            let file = file.context("a path in a position delete")?;
            positions.entry(file).or_default().insert(position.context("a position")?);
        }
        let read = Arc::new(positions);
        self.positions.insert(path.to_owned(), read.clone());
        Ok(read)
    }

    /// The positions of a deletion vector.
    pub(super) async fn vector(&mut self, delete: &Entry) -> Result<Arc<HashSet<i64>>> {
        let offset = delete.file.content_offset().context("the offset of a deletion vector")?;
        let key = (delete.file.file_path().to_owned(), offset);
        if let Some(known) = self.vectors.get(&key) {
            return Ok(known.clone());
        }
        let size = delete.file.content_size_in_bytes().context("the size of a deletion vector")?;
        let bytes = self.stores.read(&key.0).await?;
        let positions = puffin::positions(&bytes, offset, size).with_context(|| key.0.clone())?;
        ensure!(positions.len() as u64 == delete.file.record_count(), "a vector of another cardinality");
        let read = Arc::new(positions);
        self.vectors.insert(key, read.clone());
        Ok(read)
    }

    async fn equality_deletes(&mut self, delete: &Entry) -> Result<Arc<Keys>> {
        let path = delete.file.file_path();
        if let Some(known) = self.keys.get(path) {
            return Ok(known.clone());
        }
        let ids = delete.file.equality_ids().context("the columns of an equality delete")?;
        let columns = FileColumns::of_parquet(self.stores.read(path).await?)?;
        let read = Arc::new((ids.clone(), tuples(&columns, &ids)?.into_iter().collect()));
        self.keys.insert(path.to_owned(), Arc::clone(&read));
        Ok(read)
    }

    /// The positions of rows that have one of these keys.
    async fn matching(&mut self, path: &str, (ids, keys): &Keys) -> Result<Vec<i64>> {
        let columns = self.columns(path).await?;
        let rows = tuples(&columns, ids)?.into_iter().enumerate();
        rows.filter(|(_, key)| keys.contains(key)).map(|(at, _)| Ok(i64::try_from(at)?)).collect()
    }
}

/// The values of some columns, row by row.
fn tuples(columns: &FileColumns, ids: &[i32]) -> Result<Vec<Vec<Option<String>>>> {
    let values = ids.iter().map(|id| columns.values(*id)).collect::<Result<Vec<_>>>()?;
    Ok((0..columns.rows).map(|row| values.iter().map(|column| column[row].clone()).collect()).collect())
}
