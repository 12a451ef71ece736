//! The live files of one snapshot as statistics, read from manifests without opening a data file, and the
//! metadata's other lists, as Arrow batches to be queried.
//!
//! `files` ([`files_batch`]), one row per live data file:
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `file_path` | utf8 | full location |
//! | `file_name` | utf8 | the location's last part |
//! | `partition` | utf8 | `day=2026-01-02/id_bucket=3`, empty where unpartitioned |
//! | `spec_id` | int | the partition spec it was written with |
//! | `is_current_spec` | bool | whether that is the table's default now |
//! | `format` | utf8 | `parquet`, `orc`, `avro` |
//! | `record_count`, `file_size_bytes` | bigint | from its entry; either may be 0 |
//! | `split_count` | int? | row groups, where the entry names them |
//! | `sort_order_id` | int? | the order in which it is sorted |
//! | `has_bounds` | bool | whether any column has a lower bound |
//! | `sequence_number`, `file_sequence_number` | bigint | of its data, and of the file |
//! | `snapshot_id` | bigint | the snapshot that added it |
//! | `added_at` | timestamp(ms)? | when that was, while the snapshot is in the metadata |
//! | `first_row_id` | bigint? | in format version 3 |
//! | `manifest_path` | utf8 | the manifest that holds its entry |
//!
//! `partitions` ([`partitions_batch`]), one row per partition and spec: `partition`, `spec_id`, `file_count`,
//! `record_count`, `total_bytes`, `mean_file_bytes` (double), `min_file_bytes`, `max_file_bytes`,
//! `min_sequence_number`, `max_sequence_number`, `first_added_at?`, `last_added_at?`.
//!
//! `manifests` ([`manifests_batch`]), one row per manifest: `manifest_path`, `manifest_bytes`, `content`
//! (`data`/`deletes`), `spec_id`, `sequence_number`, `min_sequence_number`, `added_snapshot_id`, and, null
//! where the list does not say, `added_files`, `existing_files`, `deleted_files`, `added_rows`,
//! `existing_rows`, `deleted_rows`.
//!
//! `snapshots` ([`snapshots_batch`]), one row per snapshot, oldest first: `snapshot_id`, `parent_id?`,
//! `sequence_number`, `committed_at`, `operation`, `schema_id?`, `manifest_list`, `is_current`, `refs?`
//! (names of branches and tags, by comma), `summary` (a JSON object), and from the summary `added_files?`,
//! `deleted_files?`, `added_records?`, `deleted_records?`, `added_bytes?`, `removed_bytes?`, `total_files?`,
//! `total_records?`, `total_bytes?`.
//!
//! `offsets` ([`offsets_batch`]), one row per cursor of the ledger: `writer`, `branch`, `topic`, `partition`,
//! `start`, `next`, `rows`, `rejected`, `holes`, `gaps`, `commit_id`, `snapshot_id`.
//!
//! Numbers are `Int64` unless said otherwise, times are milliseconds in UTC; `?` marks what may be null.

mod columns;
mod deletes;
mod files;
mod lists;
mod offsets;
mod partition_key;
mod partitions;
mod read;

use std::sync::Arc;

use iceberg::spec::DataFile;

pub use deletes::{DeleteIndex, DeleteKey, DeleteScope, LiveDelete, is_global};
pub use files::{files_batch, files_schema};
pub use lists::{manifests_batch, manifests_schema, snapshots_batch, snapshots_schema};
pub use offsets::{offsets_batch, offsets_schema};
pub use partition_key::partition_key;
pub use partitions::{partitions_batch, partitions_schema};
pub(crate) use read::deletes_of;
pub use read::{Live, live, live_files, manifests};

/// One live data file.
#[derive(Debug, Clone)]
pub struct LiveFile {
    /// The entry's file, complete, with an inherited `first_row_id` where it has one.
    pub file: Arc<DataFile>,
    /// The id of the partition spec it was written with.
    pub spec_id: i32,
    /// The partition as readers know it: `day=2026-01-02/id_bucket=3`, empty where unpartitioned.
    pub partition_path: String,
    /// The data sequence number.
    pub sequence_number: i64,
    /// The file sequence number.
    pub file_sequence_number: i64,
    /// The snapshot that added the file.
    pub snapshot_id: i64,
    /// When that snapshot was committed, where it is still in the metadata. Milliseconds since the epoch.
    pub added_at_ms: Option<i64>,
    /// The manifest that holds the entry.
    pub manifest_path: Arc<str>,
}

#[cfg(test)]
mod tests;
