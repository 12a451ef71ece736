//! The rows of data files that position deletes and deletion vectors take away.

use std::collections::{BTreeMap, HashMap, HashSet};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use iceberg::spec::{DataContentType, DataFileFormat};
use object_store::ObjectStoreExt;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{PARQUET_FIELD_ID_META_KEY, ProjectionMask};
use roaring::RoaringTreemap;

use super::vector;
use crate::layout::{DeleteIndex, DeleteKey, DeleteScope, LiveDelete, LiveFile, partition_key};
use crate::storage::Stores;
use crate::{Error, ErrorKind, Result};

/// Field ids of a position delete file.
const FILE_PATH: i32 = i32::MAX - 101;
const POSITION: i32 = i32::MAX - 102;

/// The positions of data files that deletes take away.
#[derive(Debug, Clone, Default)]
pub struct DeletedRows {
    by_file: HashMap<String, RoaringTreemap>,
}

/// The positions that one delete file names, by data file.
type Named = BTreeMap<String, RoaringTreemap>;

impl DeletedRows {
    /// Reads the deletes that apply to these files, each once. `Unsupported` where one of them is an equality delete or
    /// not Parquet or Puffin, `Data` where one contradicts the specification.
    pub async fn read(stores: &Stores, files: &[LiveFile], deletes: &DeleteIndex) -> Result<Self> {
        let paths: HashSet<&str> = files.iter().map(|file| file.file.file_path()).collect();
        let mut read: HashMap<DeleteKey, Named> = HashMap::new();
        let mut rows = Self::default();
        for file in files {
            let path = file.file.file_path();
            for delete in deletes.applying_to(file) {
                check(delete, file)?;
                let key = delete.key();
                if !read.contains_key(&key) {
                    let named = named(stores, delete, &paths)
                        .await
                        .map_err(|error| error.context(format_args!("delete file `{}`", key.path)))?;
                    read.insert(key.clone(), named);
                }
                if let Some(positions) = read.get(&key).and_then(|named| named.get(path)) {
                    *rows.by_file.entry(path.to_owned()).or_default() |= positions;
                }
            }
            if let Some(positions) = rows.by_file.get_mut(path) {
                // A position behind the end names no row.
                positions.remove_range(file.file.record_count()..);
            }
        }
        Ok(rows)
    }

    /// How many rows are taken away.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.by_file.values().map(RoaringTreemap::len).sum()
    }

    /// The rows of a batch that stay. Its first row has the given position in the file.
    pub fn filter(&self, path: &str, position: u64, batch: RecordBatch) -> Result<RecordBatch> {
        let end = position + batch.num_rows() as u64;
        let Some(gone) = self.by_file.get(path).filter(|gone| gone.range_cardinality(position..end) > 0)
        else {
            return Ok(batch);
        };
        let kept: BooleanArray = (position..end).map(|at| Some(!gone.contains(at))).collect();
        filter_record_batch(&batch, &kept).map_err(|cause| {
            Error::new(ErrorKind::Internal, "rows could not be taken out of a batch").with_source(cause)
        })
    }
}

/// Refuses deletes that cannot be applied.
fn check(delete: &LiveDelete, file: &LiveFile) -> Result<()> {
    if delete.file.content_type() == DataContentType::EqualityDeletes {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("`{}` is an equality delete, which is not applied yet", delete.file.file_path()),
        ));
    }
    let is_vector = matches!(delete.scope(), DeleteScope::Vector(_));
    let fits = delete.spec_id == file.spec_id
        && partition_key(delete.file.partition()) == partition_key(file.file.partition())
        && file.sequence_number <= delete.sequence_number;
    if is_vector && !fits {
        return Err(Error::new(
            ErrorKind::Data,
            format!(
                "the deletion vector of `{}` is of another partition, or older than the file",
                file.file.file_path()
            ),
        ));
    }
    Ok(())
}

/// What a delete says about these data files.
async fn named(stores: &Stores, delete: &LiveDelete, paths: &HashSet<&str>) -> Result<Named> {
    match (delete.scope(), delete.file.file_format()) {
        (DeleteScope::Vector(path), _) => Ok(Named::from([(path, read_vector(stores, delete).await?)])),
        (_, DataFileFormat::Parquet) => positions(stores.read(delete.file.file_path()).await?, paths),
        (_, format) => Err(Error::new(
            ErrorKind::Unsupported,
            format!("its format is {format}, and only Parquet is read"),
        )),
    }
}

async fn read_vector(stores: &Stores, delete: &LiveDelete) -> Result<RoaringTreemap> {
    let unsigned = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
    let place = (unsigned(delete.file.content_offset()), unsigned(delete.file.content_size_in_bytes()));
    let (Some(offset), Some(size)) = place else {
        return Err(Error::new(ErrorKind::Data, "its entry does not say where the deletion vector is"));
    };
    let (store, path) = stores.resolve(delete.file.file_path())?;
    let blob = store.get_range(&path, offset..offset.saturating_add(size)).await?;
    let positions = vector::positions(&blob)?;
    if positions.len() != delete.file.record_count() {
        let (found, said) = (positions.len(), delete.file.record_count());
        return Err(Error::new(
            ErrorKind::Data,
            format!("a deletion vector has {found} positions, not {said}"),
        ));
    }
    Ok(positions)
}

/// The positions in a position delete file that belong to these data files.
fn positions(bytes: Bytes, paths: &HashSet<&str>) -> Result<Named> {
    let invalid = |cause: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(ErrorKind::Data, "it is no position delete file").with_source(cause)
    };
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|e| invalid(e.into()))?;
    let root = |id: i32| {
        let wanted = id.to_string();
        let has_id = |field: &std::sync::Arc<arrow_schema::Field>| {
            field.metadata().get(PARQUET_FIELD_ID_META_KEY) == Some(&wanted)
        };
        reader.schema().fields().iter().position(has_id)
    };
    let (Some(path), Some(position)) = (root(FILE_PATH), root(POSITION)) else {
        return Err(Error::new(ErrorKind::Data, "it has no columns of paths and positions"));
    };
    let mask = ProjectionMask::roots(reader.parquet_schema(), [path, position]);
    let (path, position) = if path < position { (0, 1) } else { (1, 0) };
    let mut named = Named::new();
    for batch in reader.with_projection(mask).build().map_err(|e| invalid(e.into()))? {
        let batch = batch.map_err(|e| invalid(e.into()))?;
        let files = cast(batch.column(path), &DataType::Utf8).map_err(|e| invalid(e.into()))?;
        let rows = cast(batch.column(position), &DataType::Int64).map_err(|e| invalid(e.into()))?;
        let (files, rows) = (files.as_string::<i32>(), rows.as_primitive::<Int64Type>());
        for at in 0..batch.num_rows() {
            let row = u64::try_from(rows.value(at)).ok().filter(|_| rows.is_valid(at) && files.is_valid(at));
            let row =
                row.ok_or_else(|| Error::new(ErrorKind::Data, "it has a row without a path or position"))?;
            let file = files.value(at);
            if paths.contains(file) {
                match named.get_mut(file) {
                    Some(known) => drop(known.insert(row)),
                    None => drop(named.insert(file.to_owned(), RoaringTreemap::from_iter([row]))),
                }
            }
        }
    }
    Ok(named)
}

#[cfg(test)]
mod tests;
