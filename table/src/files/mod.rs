//! Parquet data files: writing them with Iceberg's metrics, reading them by field id.
//!
//! ```text
//! batches → PartitionRouter → FileEncoder → EncodedFile → upload → NewFile → (commit)
//! DataFile → DataFileReader → batches of the current schema → Checksum
//! ```
//!
//! - **Types.** Batches have the Arrow form that `iceberg` gives a schema, with the field id in each field's
//!   metadata (`PARQUET:field_id`): `Utf8`, `LargeBinary`, `FixedSizeBinary` for fixed and uuid (16),
//!   `Decimal128`, `Date32`, `Time64(µs)`, `Timestamp(µs)` without a zone or with `+00:00`, `List`, `Map`,
//!   `Struct`. The Parquet schema is made from Iceberg's as Java makes it, uuid annotation and decimals in
//!   int32, int64 or fixed bytes included.
//! - **CPU and I/O are apart.** [`FileEncoder`] and [`encode_file`] are synchronous; [`upload`] only moves
//!   bytes; [`DataFileWriter`] joins both for files that are too large to be held.
//! - **Written to be stitched later.** One codec, data pages of version 1, plain encoding, an offset index,
//!   and a dictionary only where the first batch shows that it pays. Delta encodings are never written.
//! - **Metrics** follow `write.metadata.metrics.*`. Columns inside lists and maps have counts and no bounds.

mod checksum;
mod columns;
mod deleted_rows;
mod dictionary;
mod encode;
mod format;
mod lineage;
mod location;
mod metrics;
mod metrics_config;
mod parquet_schema;
mod project;
mod read;
mod router;
#[cfg(test)]
pub(crate) mod testing;
mod transform;
mod truncate;
mod vector;
mod writer;

use std::sync::Arc;

use iceberg::spec::{DataFile, PartitionSpec, Struct};

pub use checksum::{Checksum, ColumnChecksum};
pub use deleted_rows::DeletedRows;
pub use encode::{EncodedFile, FileEncoder, encode_file};
pub use format::FileFormat;
pub use lineage::{rewrite_schema, with_lineage};
pub use location::{data_file_location, partition_path};
pub use read::{DataFileReader, read_data_file};
pub use router::PartitionRouter;
pub use writer::{DataFileWriter, upload};

/// A data file that was written and is not yet in the table, with the spec it was written with.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// The manifest entry's file, with metrics.
    pub file: DataFile,
    /// The id of its partition spec.
    pub spec_id: i32,
}

/// Where a data file goes: partition spec, partition value and full location.
#[derive(Debug, Clone)]
pub struct FileTarget {
    /// The spec.
    pub spec: Arc<PartitionSpec>,
    /// The partition tuple of that spec; empty where unpartitioned.
    pub partition: Struct,
    /// The full location.
    pub location: String,
}
