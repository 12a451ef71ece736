//! Metadata as JSON, at a cost that does not grow with each snapshot that is kept.
//!
//! A table that takes a commit each second keeps thousands of snapshots, and `iceberg`'s own serialisation copies all
//! of them before it writes a byte. A snapshot never changes, so its text is kept ([`Texts`]) and put where it belongs;
//! everything else is serialised anew by the crate's own types. `iceberg` 0.10.1 does not list a table's refs, so they
//! are kept too: from the file that was read, and from the updates that were applied to it since.
//!
//! Format versions 2 and 3. What is not known for certain (version 1, refs that do not agree with the metadata) is
//! left to the crate.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use iceberg::TableUpdate;
use iceberg::spec::{
    EncryptedKey, FormatVersion, MetadataLog, PartitionSpec, PartitionStatisticsFile, Schema, Snapshot,
    SnapshotLog, SnapshotReference, SortOrder, StatisticsFile, Summary, TableMetadata,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const MAIN: &str = "main";

/// What is known of a table's metadata beside the metadata itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    refs: BTreeMap<String, SnapshotReference>,
    snapshots: HashMap<i64, Arc<str>>,
}

impl Texts {
    /// Those of metadata that was read from `json`; `None` where its refs are not all there.
    pub(super) fn read(json: &[u8], metadata: &TableMetadata) -> Option<Self> {
        #[derive(Deserialize)]
        struct OnlyRefs {
            #[serde(default)]
            refs: BTreeMap<String, SnapshotReference>,
        }
        let refs = serde_json::from_slice::<OnlyRefs>(json).ok()?.refs;
        Self { refs, snapshots: HashMap::new() }.checked(metadata)
    }

    /// Those of a table that was just made: it has no refs.
    pub(super) fn of_new_table(metadata: &TableMetadata) -> Option<Self> {
        Self::default().checked(metadata)
    }

    /// Those of `metadata`, which `updates` made of the metadata that these belong to.
    pub(super) fn after(mut self, updates: &[TableUpdate], metadata: &TableMetadata) -> Option<Self> {
        for update in updates {
            match update {
                TableUpdate::SetSnapshotRef { ref_name, reference } => {
                    self.refs.insert(ref_name.clone(), reference.clone());
                }
                TableUpdate::RemoveSnapshotRef { ref_name } => {
                    self.refs.remove(ref_name);
                }
                _ => {}
            }
        }
        // Removing a snapshot removes the refs that name it.
        self.refs.retain(|name, _| metadata.snapshot_for_ref(name).is_some());
        self.checked(metadata)
    }

    /// These, where they agree with the metadata as far as it can be asked.
    fn checked(self, metadata: &TableMetadata) -> Option<Self> {
        let agrees = |(name, reference): (&String, &SnapshotReference)| {
            metadata.snapshot_for_ref(name).is_some_and(|found| found.snapshot_id() == reference.snapshot_id)
        };
        let main = metadata.snapshot_for_ref(MAIN).is_some() == self.refs.contains_key(MAIN);
        let version = metadata.format_version() != FormatVersion::V1;
        (version && main && self.refs.iter().all(agrees)).then_some(self)
    }

    /// The metadata as JSON. Keeps the texts of its snapshots, and forgets those that are gone.
    pub(super) fn encode(&mut self, metadata: &TableMetadata) -> serde_json::Result<Vec<u8>> {
        let mut snapshots: Vec<_> = metadata.snapshots().collect();
        snapshots.sort_unstable_by_key(|snapshot| (snapshot.sequence_number(), snapshot.snapshot_id()));
        if self.snapshots.len() >= snapshots.len() {
            self.snapshots.retain(|id, _| metadata.snapshot_by_id(*id).is_some());
        }
        let mut json = serde_json::to_vec(&Frame::of(metadata, &self.refs))?;
        let closing = json.pop();
        debug_assert_eq!(closing, Some(b'}'), "an object ends with a brace");
        json.extend_from_slice(b",\"snapshots\":[");
        for (at, snapshot) in snapshots.into_iter().enumerate() {
            if at > 0 {
                json.push(b',');
            }
            let text = match self.snapshots.get(&snapshot.snapshot_id()) {
                Some(text) => text,
                None => {
                    let text: Arc<str> = serde_json::to_string(&SnapshotText::of(snapshot))?.into();
                    self.snapshots.entry(snapshot.snapshot_id()).or_insert(text)
                }
            };
            json.extend_from_slice(text.as_bytes());
        }
        json.extend_from_slice(b"]}");
        Ok(json)
    }
}

/// Metadata without its snapshots: the fields of the specification's table "Table Metadata Fields".
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Frame<'a> {
    format_version: u8,
    table_uuid: Uuid,
    location: &'a str,
    last_sequence_number: i64,
    last_updated_ms: i64,
    last_column_id: i32,
    schemas: Vec<&'a Schema>,
    current_schema_id: i32,
    partition_specs: Vec<&'a PartitionSpec>,
    default_spec_id: i32,
    last_partition_id: i32,
    properties: BTreeMap<&'a String, &'a String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_snapshot_id: Option<i64>,
    snapshot_log: &'a [SnapshotLog],
    metadata_log: &'a [MetadataLog],
    sort_orders: Vec<&'a SortOrder>,
    default_sort_order_id: i64,
    refs: &'a BTreeMap<String, SnapshotReference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    statistics: Vec<&'a StatisticsFile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    partition_statistics: Vec<&'a PartitionStatisticsFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_row_id: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    encryption_keys: Vec<&'a EncryptedKey>,
}

impl<'a> Frame<'a> {
    fn of(metadata: &'a TableMetadata, refs: &'a BTreeMap<String, SnapshotReference>) -> Self {
        let mut schemas: Vec<&Schema> = metadata.schemas_iter().map(AsRef::as_ref).collect();
        schemas.sort_unstable_by_key(|schema| schema.schema_id());
        let mut specs: Vec<&PartitionSpec> = metadata.partition_specs_iter().map(AsRef::as_ref).collect();
        specs.sort_unstable_by_key(|spec| spec.spec_id());
        let mut orders: Vec<&SortOrder> = metadata.sort_orders_iter().map(AsRef::as_ref).collect();
        orders.sort_unstable_by_key(|order| order.order_id);
        let version = metadata.format_version();
        Self {
            format_version: version as u8,
            table_uuid: metadata.uuid(),
            location: metadata.location(),
            last_sequence_number: metadata.last_sequence_number(),
            last_updated_ms: metadata.last_updated_ms(),
            last_column_id: metadata.last_column_id(),
            schemas,
            current_schema_id: metadata.current_schema_id(),
            partition_specs: specs,
            default_spec_id: metadata.default_partition_spec_id(),
            last_partition_id: metadata.last_partition_id(),
            properties: metadata.properties().iter().collect(),
            current_snapshot_id: metadata.current_snapshot_id(),
            snapshot_log: metadata.history(),
            metadata_log: metadata.metadata_log(),
            sort_orders: orders,
            default_sort_order_id: metadata.default_sort_order_id(),
            refs,
            statistics: metadata.statistics_iter().collect(),
            partition_statistics: metadata.partition_statistics_iter().collect(),
            next_row_id: (version == FormatVersion::V3).then(|| metadata.next_row_id()),
            encryption_keys: metadata.encryption_keys_iter().collect(),
        }
    }
}

/// A snapshot: the fields of the specification's section "Snapshots".
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct SnapshotText<'a> {
    snapshot_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_snapshot_id: Option<i64>,
    sequence_number: i64,
    timestamp_ms: i64,
    manifest_list: &'a str,
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_id: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_row_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    added_rows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<&'a str>,
}

impl<'a> SnapshotText<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot_id: snapshot.snapshot_id(),
            parent_snapshot_id: snapshot.parent_snapshot_id(),
            sequence_number: snapshot.sequence_number(),
            timestamp_ms: snapshot.timestamp_ms(),
            manifest_list: snapshot.manifest_list(),
            summary: snapshot.summary(),
            schema_id: snapshot.schema_id(),
            first_row_id: snapshot.first_row_id(),
            added_rows: snapshot.added_rows_count(),
            key_id: snapshot.encryption_key_id(),
        }
    }
}

#[cfg(test)]
mod tests;
