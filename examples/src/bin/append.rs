//! Creates a table and appends rows to it exactly once.
//!
//! ```text
//! append DIRECTORY
//! ```
//!
//! Run it twice: the second run offers the same offsets again, is overtaken, and changes nothing.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use anyhow::Context;
use arrow_array::{Int64Array, RecordBatch};
use firn_table::ErrorKind;
use firn_table::catalog::{CatalogOptions, IfMissing, open_catalog, parse_table_ident};
use firn_table::commit::{Flush, FlushOutcome, Guarantee, SourceIdentity, TableHandle};
use firn_table::files::{DataFileWriter, FileFormat, FileTarget, NewFile, data_file_location};
use firn_table::ledger::{CommitId, OffsetRange, TopicPartition, WriterName};
use iceberg::TableCreation;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Struct, Type};
use uuid::Uuid;

/// Rows of the example.
const ROWS: u64 = 1_000;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let directory = std::env::args().nth(1).context("usage: append DIRECTORY")?;
    let handle = open(&directory).await?;
    let file = write_file(&handle).await?;
    let outcome = handle.append(flush(file)?).await?;
    let mut out = std::io::stdout().lock();
    match outcome {
        FlushOutcome::Committed(committed) => {
            writeln!(out, "{ROWS} rows are in snapshot {}", committed.snapshot_id)?;
        }
        FlushOutcome::Overtaken { cursors, .. } => {
            for (partition, cursor) in cursors {
                writeln!(out, "overtaken: the table has offsets of {partition} up to {}", cursor.next)?;
            }
        }
    }
    Ok(())
}

/// Opens the table `example.numbers`, and makes it where it is not there.
async fn open(directory: &str) -> anyhow::Result<TableHandle> {
    std::fs::create_dir_all(directory)?;
    let options = CatalogOptions {
        uri: format!("sqlite:{directory}/catalog.db"),
        name: None,
        warehouse: Some(format!("{directory}/warehouse")),
        properties: HashMap::new(),
        if_missing: IfMissing::Create,
    };
    let opened = open_catalog(&options, None).await?;
    let ident = parse_table_ident("example.numbers")?;
    let open =
        || TableHandle::open(Arc::clone(&opened.catalog), opened.stores.clone(), ident.clone(), "main");
    match open().await {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        handle => return Ok(handle?),
    }
    let number = NestedField::required(1, "number", Type::Primitive(PrimitiveType::Long));
    let schema = Schema::builder().with_fields([Arc::new(number)]).build()?;
    if !opened.catalog.namespace_exists(ident.namespace()).await? {
        opened.catalog.create_namespace(ident.namespace(), HashMap::new()).await?;
    }
    let creation = TableCreation::builder().name(ident.name().to_owned()).schema(schema).build();
    opened.catalog.create_table(ident.namespace(), creation).await?;
    Ok(open().await?)
}

/// Writes one Parquet file, which is not yet in the table.
async fn write_file(handle: &TableHandle) -> anyhow::Result<NewFile> {
    let table = handle.table();
    let format = FileFormat::of_table(&table)?;
    let spec = table.metadata().default_partition_spec().clone();
    let partition = Struct::empty();
    let name = format!("{}.parquet", Uuid::now_v7());
    let location = data_file_location(&table, &spec, &partition, &name)?;
    let mut writer = DataFileWriter::new(&format, handle.stores(), FileTarget { spec, partition, location })?;
    let numbers = Int64Array::from_iter_values((0..ROWS).map(u64::cast_signed));
    let batch = RecordBatch::try_new(format.arrow_schema().clone(), vec![Arc::new(numbers)])?;
    writer.write(&batch).await?;
    writer.close().await?.context("rows were written, so there is a file")
}

/// Ties the file to the offsets whose rows it holds: both get into the table, or neither.
fn flush(file: NewFile) -> anyhow::Result<Flush> {
    let partition = TopicPartition { topic: "numbers".to_owned(), partition: 0 };
    let range =
        OffsetRange { partition, start: 0, next: ROWS.cast_signed(), rows: ROWS, rejected: 0, holes: 0 };
    Ok(Flush {
        commit_id: CommitId { instance: Uuid::now_v7(), counter: 1 },
        writer: WriterName::new("example")?,
        ranges: vec![range],
        files: vec![file],
        source: SourceIdentity::default(),
        guarantee: Guarantee::ExactlyOnce,
    })
}
