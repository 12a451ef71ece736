//! Reading of data files by field id.

mod defaults;
mod mapping;
mod plan;
mod stream;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef as ArrowSchemaRef;
use futures::stream::BoxStream;
use futures::{StreamExt, stream as futures_stream};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{
    DataContentType, DataFile, DataFileFormat, Literal, NameMapping, PartitionField, PartitionSpec,
    SchemaRef, Transform,
};
use iceberg::table::Table;
use object_store::ObjectStoreExt;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::async_reader::{AsyncFileReader, ParquetObjectReader, ParquetRecordBatchStreamBuilder};

use self::plan::{FilePlan, reader_options};
use self::stream::{InMemory, batches};
use crate::storage::Stores;
use crate::{Error, ErrorKind, Result};

/// A file of at most so many bytes is fetched whole, by one request.
const WHOLE_FILE_BYTES: u64 = 8 << 20;
/// Bytes at the end of a larger file that are fetched in the hope that they hold its footer.
const FOOTER_BYTES: usize = 256 << 10;

/// Reads data files of one table as batches of one schema, matching columns by field id: renames, reordering,
/// promotions, added and dropped columns, in nested types too.
///
/// A column that a file does not have is the partition's value where the file's spec has it as identity, else
/// its initial default, else null (specification, "column projection"). A file without field ids is read
/// through the table's name mapping (`schema.name-mapping.default`); `Unsupported` where there is none.
#[derive(Debug, Clone)]
pub struct DataFileReader {
    stores: Stores,
    table: Table,
    schema: SchemaRef,
    arrow_schema: ArrowSchemaRef,
    mapping: Option<Arc<NameMapping>>,
}

impl DataFileReader {
    /// A reader for files of `table`, as rows of `schema`.
    pub fn new(stores: &Stores, table: &Table, schema: &SchemaRef) -> Result<Self> {
        let arrow_schema = schema_to_arrow_schema(schema).map_err(|cause| {
            Error::new(ErrorKind::Unsupported, "the schema has no Arrow form").with_source(cause)
        })?;
        Ok(Self {
            stores: stores.clone(),
            table: table.clone(),
            schema: Arc::clone(schema),
            arrow_schema: Arc::new(arrow_schema),
            mapping: mapping::of_table(table)?.map(Arc::new),
        })
    }

    /// The schema of the batches, with field ids.
    #[must_use]
    pub fn arrow_schema(&self) -> &ArrowSchemaRef {
        &self.arrow_schema
    }

    /// Opens a file, which was written with the partition spec of that id, and streams its rows in file
    /// order, in batches of at most `batch_rows`. Decoding runs on blocking threads; the next row group is
    /// fetched meanwhile, so at most two are in memory. A file without rows is not opened. The stream ends
    /// with an error where the file has other rows than its entry says.
    pub async fn read(
        &self,
        file: &DataFile,
        spec_id: i32,
        batch_rows: usize,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let path = file.file_path();
        self.open(file, spec_id, batch_rows)
            .await
            .map_err(|error| error.context(format!("data file `{path}`")))
    }

    async fn open(
        &self,
        file: &DataFile,
        spec_id: i32,
        batch_rows: usize,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        check_readable(file)?;
        if file.record_count() == 0 {
            return Ok(futures_stream::empty().boxed());
        }
        let mut source = self.source(file).await?;
        let metadata = source.get_metadata(None).await.map_err(stream::read_error)?;
        let options = reader_options(metadata.file_metadata().schema_descr())?;
        let metadata = ArrowReaderMetadata::try_new(metadata, options).map_err(stream::read_error)?;
        let constants = self.constants(file, spec_id)?;
        let plan = FilePlan::new(self, &metadata, &constants)?;
        let parquet = ParquetRecordBatchStreamBuilder::new_with_metadata(source, metadata)
            .with_projection(plan.mask().clone())
            .with_batch_size(batch_rows.max(1))
            .build()
            .map_err(stream::read_error)?;
        Ok(batches(parquet, plan, file))
    }

    async fn source(&self, file: &DataFile) -> Result<Box<dyn AsyncFileReader>> {
        let (store, path) = self.stores.resolve(file.file_path())?;
        let bytes = file.file_size_in_bytes();
        if bytes <= WHOLE_FILE_BYTES {
            let fetched = store.get(&path).await?;
            let whole = fetched.bytes().await?;
            return Ok(Box::new(InMemory::new(whole)));
        }
        let reader =
            ParquetObjectReader::new(store, path).with_file_size(bytes).with_footer_size_hint(FOOTER_BYTES);
        Ok(Box::new(reader))
    }

    /// The values of the partition's identity fields, by source field id.
    fn constants(&self, file: &DataFile, spec_id: i32) -> Result<HashMap<i32, Option<Literal>>> {
        let spec = self.table.metadata().partition_spec_by_id(spec_id).ok_or_else(|| {
            Error::new(ErrorKind::Data, format!("partition spec `{spec_id}` is not in the table's metadata"))
        })?;
        Ok(spec
            .fields()
            .iter()
            .zip(file.partition().iter())
            .filter(|(field, _)| field.transform == Transform::Identity)
            .map(|(field, value)| (field.source_id, value.cloned()))
            .collect())
    }
}

/// As [`DataFileReader::read`], for a caller that does not know the file's partition spec: it is found by the
/// number of partition values. `Unsupported` where several specs fit and differ in their identity fields.
pub async fn read_data_file(
    stores: &Stores,
    table: &Table,
    schema: &SchemaRef,
    file: &DataFile,
    batch_rows: usize,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let fitting: Vec<_> = table
        .metadata()
        .partition_specs_iter()
        .filter(|spec| spec.fields().len() == file.partition().fields().len())
        .collect();
    let identities = |spec: &PartitionSpec| -> Vec<Option<i32>> {
        let source =
            |field: &PartitionField| (field.transform == Transform::Identity).then_some(field.source_id);
        spec.fields().iter().map(source).collect()
    };
    let path = file.file_path();
    let [first, others @ ..] = fitting.as_slice() else {
        let values = file.partition().fields().len();
        return Err(Error::new(
            ErrorKind::Data,
            format!("data file `{path}`: no partition spec of the table has {values} fields"),
        ));
    };
    if others.iter().any(|other| identities(other) != identities(first)) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("data file `{path}`: more than one partition spec of the table fits its partition"),
        ));
    }
    DataFileReader::new(stores, table, schema)?.read(file, first.spec_id(), batch_rows).await
}

fn check_readable(file: &DataFile) -> Result<()> {
    let unsupported = |what: String| Err(Error::new(ErrorKind::Unsupported, what));
    if file.content_type() != DataContentType::Data {
        return unsupported("it is a delete file, not a data file".to_owned());
    }
    if file.file_format() != DataFileFormat::Parquet {
        return unsupported(format!("its format is {}, and only Parquet is read", file.file_format()));
    }
    if file.key_metadata().is_some() {
        return unsupported("it is encrypted".to_owned());
    }
    if file.file_size_in_bytes() == 0 && file.record_count() > 0 {
        let message = format!("its entry has {} rows in 0 bytes", file.record_count());
        return Err(Error::new(ErrorKind::Data, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
