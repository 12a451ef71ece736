//! What a file writer needs to know about its table.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::SchemaRef as ArrowSchemaRef;
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{PrimitiveType, SchemaRef, SortOrder};
use iceberg::table::Table;
use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::SchemaDescriptor;

use super::columns::{Leaf, leaves};
use super::lineage::rewrite_schema;
use super::metrics_config::{MetricsConfig, MetricsMode};
use super::parquet_schema::parquet_schema;
use crate::{Error, ErrorKind, Result};

/// Zstandard's level where the table names none: that of parquet-java.
const ZSTD_LEVEL: i32 = 3;
/// Statistics in the footer and in the column index are cut to so many bytes, unless the table's metrics want
/// more.
const STATISTICS_BYTES: usize = 64;
/// A code point has at most so many bytes.
const MAX_CHAR_BYTES: usize = 4;

/// What a file writer needs to know about its table, taken once from its metadata. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FileFormat {
    schema: SchemaRef,
    arrow_schema: ArrowSchemaRef,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    parquet_schema: SchemaDescriptor,
    leaves: Vec<Leaf>,
    metrics: MetricsConfig,
    limits: Limits,
    compression: Compression,
    /// `None`: statistics are whole.
    statistics_bytes: Option<usize>,
}

/// Sizes from `write.parquet.*`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes of a row group on storage at which it is closed.
    pub(super) row_group_bytes: usize,
    page_bytes: usize,
    page_rows: usize,
    dictionary_bytes: usize,
}

impl FileFormat {
    /// Reads schema, compression, page and row group sizes, and the metrics configuration from the table's
    /// metadata and its properties (`write.parquet.*`, `write.metadata.metrics.*`). Bloom filters are not
    /// written.
    pub fn of_table(table: &Table) -> Result<Self> {
        let metadata = table.metadata();
        let schema = Arc::clone(metadata.current_schema());
        Self::new(schema, metadata.default_sort_order(), metadata.properties())
    }

    /// As [`Self::of_table`], for rewritten files: with the columns of lineage in format version 3.
    pub fn of_rewrite(table: &Table) -> Result<Self> {
        let metadata = table.metadata();
        Self::new(rewrite_schema(metadata)?, metadata.default_sort_order(), metadata.properties())
    }

    /// As [`Self::of_table`], from the parts of the metadata that matter.
    pub fn new(
        schema: SchemaRef,
        sort_order: &SortOrder,
        properties: &HashMap<String, String>,
    ) -> Result<Self> {
        let metrics = MetricsConfig::new(&schema, sort_order, properties)?;
        let internal = |cause: Box<dyn std::error::Error + Send + Sync>| {
            Error::new(ErrorKind::Unsupported, "the table's schema has no Parquet form: nothing was written")
                .with_source(cause)
        };
        let arrow_schema = schema_to_arrow_schema(&schema).map_err(|cause| internal(cause.into()))?;
        let leaves = leaves(&schema);
        let inner = Inner {
            parquet_schema: parquet_schema(&schema).map_err(|cause| internal(cause.into()))?,
            statistics_bytes: statistics_bytes(&leaves, &metrics),
            leaves,
            metrics,
            limits: Limits::new(properties)?,
            compression: compression(properties)?,
        };
        Ok(Self { schema, arrow_schema: Arc::new(arrow_schema), inner: Arc::new(inner) })
    }

    /// The Iceberg schema that is written.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The Arrow schema of the batches that a writer takes, with field ids.
    #[must_use]
    pub fn arrow_schema(&self) -> &ArrowSchemaRef {
        &self.arrow_schema
    }

    pub(super) fn parquet_schema(&self) -> &SchemaDescriptor {
        &self.inner.parquet_schema
    }

    pub(super) fn leaves(&self) -> &[Leaf] {
        &self.inner.leaves
    }

    pub(super) fn metrics(&self) -> &MetricsConfig {
        &self.inner.metrics
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// The Parquet writer's properties; `dictionaries` says for each leaf whether it gets one.
    pub(super) fn writer_properties(&self, dictionaries: &[bool]) -> WriterProperties {
        let limits = &self.inner.limits;
        let mut builder = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by(concat!("firn version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(self.inner.compression)
            .set_encoding(Encoding::PLAIN)
            .set_dictionary_enabled(false)
            .set_data_page_size_limit(limits.page_bytes)
            .set_data_page_row_count_limit(limits.page_rows)
            .set_dictionary_page_size_limit(limits.dictionary_bytes)
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_statistics_truncate_length(self.inner.statistics_bytes)
            .set_column_index_truncate_length(Some(STATISTICS_BYTES))
            // The encoder closes row groups by their size in bytes.
            .set_max_row_group_row_count(None);
        for (column, dictionary) in self.inner.parquet_schema.columns().iter().zip(dictionaries) {
            if *dictionary {
                builder = builder.set_column_dictionary_enabled(column.path().clone(), true);
            }
        }
        builder.build()
    }
}

/// Bounds are taken from the footer's statistics, so these must be at least as long.
fn statistics_bytes(leaves: &[Leaf], metrics: &MetricsConfig) -> Option<usize> {
    let mut bytes = STATISTICS_BYTES;
    for leaf in leaves {
        let text =
            matches!(leaf.primitive, PrimitiveType::String | PrimitiveType::Binary | PrimitiveType::Fixed(_));
        match metrics.mode(leaf.id) {
            MetricsMode::Full if text => return None,
            MetricsMode::Truncate(length) if text => {
                bytes = bytes.max(length.saturating_mul(MAX_CHAR_BYTES));
            }
            _ => {}
        }
    }
    Some(bytes)
}

impl Limits {
    fn new(properties: &HashMap<String, String>) -> Result<Self> {
        Ok(Self {
            row_group_bytes: size(properties, "write.parquet.row-group-size-bytes", 128 << 20)?,
            page_bytes: size(properties, "write.parquet.page-size-bytes", 1 << 20)?,
            page_rows: size(properties, "write.parquet.page-row-limit", 20_000)?,
            dictionary_bytes: size(properties, "write.parquet.dict-size-bytes", 2 << 20)?,
        })
    }
}

fn size(properties: &HashMap<String, String>, key: &str, default: usize) -> Result<usize> {
    let Some(text) = properties.get(key) else { return Ok(default) };
    match text.trim().parse::<usize>() {
        Ok(value) if value > 0 => Ok(value),
        _ => Err(invalid(key, text, "a number above 0")),
    }
}

fn compression(properties: &HashMap<String, String>) -> Result<Compression> {
    const CODEC: &str = "write.parquet.compression-codec";
    const LEVEL: &str = "write.parquet.compression-level";
    let codec = properties.get(CODEC).map_or("zstd", String::as_str);
    let level = properties.get(LEVEL).filter(|text| !text.trim().is_empty() && text.as_str() != "null");
    let number = |text: &String| i32::from_str(text.trim()).map_err(|_| invalid(LEVEL, text, "a number"));
    match codec.trim().to_ascii_lowercase().as_str() {
        "uncompressed" | "none" => Ok(Compression::UNCOMPRESSED),
        "snappy" => Ok(Compression::SNAPPY),
        "lz4" | "lz4_raw" => Ok(Compression::LZ4_RAW),
        "zstd" => {
            let level = level.map_or(Ok(ZSTD_LEVEL), number)?;
            let level = ZstdLevel::try_new(level)
                .map_err(|_| invalid(LEVEL, &level.to_string(), "a level from 1 to 22"))?;
            Ok(Compression::ZSTD(level))
        }
        "gzip" => {
            let Some(text) = level else { return Ok(Compression::GZIP(GzipLevel::default())) };
            let level = u32::try_from(number(text)?).ok().and_then(|level| GzipLevel::try_new(level).ok());
            level.map(Compression::GZIP).ok_or_else(|| invalid(LEVEL, text, "a level from 0 to 9"))
        }
        _ => Err(invalid(CODEC, codec, "zstd, snappy, gzip, lz4 or uncompressed")),
    }
}

fn invalid(key: &str, text: &str, wanted: &str) -> Error {
    Error::new(
        ErrorKind::Configuration,
        format!(
            "table property `{key}`: `{text}` cannot be used, so no file can be written: set it to {wanted}"
        ),
    )
}
