//! Parquet files of data and of deletes, with no more metrics than a reader needs.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use iceberg::spec::{DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, Struct};
use iceberg::table::Table;
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};

use super::engine::Engine;
use super::position_delete::Scope;

/// Field ids of a position delete file: `file_path` and `pos`.
pub(super) const FILE_PATH: i32 = i32::MAX - 101;
pub(super) const POSITION: i32 = i32::MAX - 102;
/// Field ids of the lineage columns: `_row_id` and `_last_updated_sequence_number`.
pub(super) const ROW_ID: i32 = i32::MAX - 107;
pub(super) const LAST_UPDATED: i32 = i32::MAX - 108;

/// A spec's partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Partition {
    pub(super) spec_id: i32,
    pub(super) tuple: Struct,
}

/// A column of Arrow with a field id.
pub(super) fn field(name: &str, kind: DataType, id: i32) -> Field {
    let metadata = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]);
    Field::new(name, kind, true).with_metadata(metadata)
}

impl Engine {
    /// A data file with these rows, whose fields have ids.
    pub(super) async fn data_file(
        &mut self,
        table: &Table,
        rows: &RecordBatch,
        partition: &Partition,
    ) -> Result<DataFile> {
        self.parquet(table, rows, partition, DataContentType::Data).await?.build().context("a data file")
    }

    /// A position delete file with these paths and positions, in order of both.
    pub(super) async fn position_delete_file(
        &mut self,
        table: &Table,
        mut deletes: Vec<(String, i64)>,
        partition: &Partition,
        scope: Scope,
    ) -> Result<DataFile> {
        deletes.sort();
        deletes.dedup();
        let (first, last) = match (deletes.first(), deletes.last()) {
            (Some(first), Some(last)) => (first.0.clone(), last.0.clone()),
            _ => anyhow::bail!("a delete file without deletes was asked for"),
        };
        let (paths, positions): (Vec<String>, Vec<i64>) = deletes.into_iter().unzip();
        let columns: Vec<ArrayRef> =
            vec![Arc::new(StringArray::from(paths)), Arc::new(Int64Array::from(positions))];
        let fields = vec![
            field("file_path", DataType::Utf8, FILE_PATH).with_nullable(false),
            field("pos", DataType::Int64, POSITION).with_nullable(false),
        ];
        let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns)?;
        let mut builder = self.parquet(table, &batch, partition, DataContentType::PositionDeletes).await?;
        if scope == Scope::FileByReference {
            builder.referenced_data_file(Some(first));
        } else {
            builder
                .lower_bounds(HashMap::from([(FILE_PATH, Datum::string(first))]))
                .upper_bounds(HashMap::from([(FILE_PATH, Datum::string(last))]));
        }
        Ok(builder.build()?)
    }

    /// An equality delete file with these rows, compared by the columns that they have.
    pub(super) async fn equality_delete_file(
        &mut self,
        table: &Table,
        rows: &RecordBatch,
        partition: &Partition,
    ) -> Result<DataFile> {
        let ids = rows.schema_ref().fields().iter().map(|field| {
            let id = field.metadata().get(PARQUET_FIELD_ID_META_KEY).context("a field id")?;
            Ok(id.parse()?)
        });
        let ids = ids.collect::<Result<Vec<i32>>>()?;
        let mut builder = self.parquet(table, rows, partition, DataContentType::EqualityDeletes).await?;
        Ok(builder.equality_ids(Some(ids)).build()?)
    }

    async fn parquet(
        &mut self,
        table: &Table,
        rows: &RecordBatch,
        partition: &Partition,
        content: DataContentType,
    ) -> Result<DataFileBuilder> {
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None)?;
        writer.write(rows)?;
        let bytes = writer.into_inner()?;
        let path = format!("{}/data/foreign-{}.parquet", table.metadata().location(), self.uuid());
        let mut builder = DataFileBuilder::default();
        builder
            .content(content)
            .file_path(path.clone())
            .file_format(DataFileFormat::Parquet)
            .partition(partition.tuple.clone())
            .partition_spec_id(partition.spec_id)
            .record_count(rows.num_rows() as u64)
            .file_size_in_bytes(bytes.len() as u64);
        self.stores.write(&path, bytes.into()).await?;
        Ok(builder)
    }
}
