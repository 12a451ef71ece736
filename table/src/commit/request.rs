//! What depends on the parent, made anew on each attempt: the manifest list, the snapshot and the updates.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use iceberg::spec::{FormatVersion, ManifestFile, Operation, Snapshot, SnapshotRef};
use iceberg::table::Table;
use iceberg::{TableRequirement, TableUpdate};
use tokio::time::Instant;

use super::TableHandle;
use super::handle::within;
use super::protocol::Request;
use super::summary::Changes;
use crate::manifest::{ListTarget, MetadataNames, write_list};
use crate::{Error, ErrorKind, Result};

/// A clock that is further behind than this is worth a warning.
const SKEW_WARNING_MS: i64 = 1000;

/// A snapshot to be added to a branch.
#[derive(Debug)]
pub(super) struct NewSnapshot<'a> {
    pub(super) snapshot_id: i64,
    pub(super) operation: Operation,
    pub(super) changes: Changes,
    /// This commit's own entries of the summary.
    pub(super) summary: BTreeMap<String, String>,
    /// Table properties that are set with it.
    pub(super) properties: HashMap<String, String>,
    /// All manifests, those written by this commit with sequence numbers still unassigned.
    pub(super) manifests: Vec<ManifestFile>,
    pub(super) names: &'a MetadataNames,
}

/// A request, and the manifest list as it was written.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) request: Request,
    pub(super) list_location: String,
    pub(super) manifests: Arc<Vec<ManifestFile>>,
}

impl TableHandle {
    /// Writes the manifest list for a snapshot on top of `base`, and makes the request that adds it.
    pub(super) async fn prepare(&self, base: &Table, new: NewSnapshot<'_>) -> Result<Prepared> {
        let metadata = base.metadata();
        if metadata.snapshot_by_id(new.snapshot_id).is_some() {
            return Err(taken_out(self, new.snapshot_id));
        }
        let parent = metadata.snapshot_for_ref(self.branch());
        let target = ListTarget {
            location: new.names.list(new.snapshot_id),
            snapshot_id: new.snapshot_id,
            parent_id: parent.map(|snapshot| snapshot.snapshot_id()),
            sequence_number: metadata.next_sequence_number(),
            first_row_id: (metadata.format_version() >= FormatVersion::V3).then(|| metadata.next_row_id()),
        };
        let own: Vec<String> = own_manifests(&new).chain([target.location.clone()]).collect();
        let began = Instant::now();
        let write = write_list(base.file_io(), &target, new.manifests);
        let list = within(self.limits.request_timeout, "writing the manifest list", write).await??;
        let list_time = began.elapsed();
        let snapshot = Snapshot::builder()
            .with_snapshot_id(new.snapshot_id)
            .with_parent_snapshot_id(target.parent_id)
            .with_sequence_number(target.sequence_number)
            .with_timestamp_ms(timestamp(base, self.surroundings.now_ms()))
            .with_manifest_list(target.location.clone())
            .with_summary(new.changes.summary(new.operation, parent.map(AsRef::as_ref), &new.summary))
            .with_schema_id(metadata.current_schema_id());
        let snapshot = match target.first_row_id.zip(list.added_rows) {
            Some((first, added)) => snapshot.with_row_range(first, added).build(),
            None => snapshot.build(),
        };
        let request = Request {
            requirements: self.requirements(base, parent),
            updates: self.updates(base, snapshot, new.properties)?,
            files: own,
            list_time,
        };
        Ok(Prepared { request, list_location: target.location, manifests: Arc::new(list.manifests) })
    }

    /// The table is this one, and the branch's head is the base's.
    fn requirements(&self, base: &Table, head: Option<&SnapshotRef>) -> Vec<TableRequirement> {
        vec![
            TableRequirement::UuidMatch { uuid: base.metadata().uuid() },
            TableRequirement::RefSnapshotIdMatch {
                r#ref: self.branch().to_owned(),
                snapshot_id: head.map(|snapshot| snapshot.snapshot_id()),
            },
        ]
    }

    /// Adds the snapshot, makes it the branch's head with the retention that the branch has, and sets properties.
    /// The builder knows the branch's retention and checks what a catalog would.
    fn updates(
        &self,
        base: &Table,
        snapshot: Snapshot,
        properties: HashMap<String, String>,
    ) -> Result<Vec<TableUpdate>> {
        let builder = base.metadata().clone().into_builder(None);
        let built = builder
            .set_branch_snapshot(snapshot, self.branch())
            .and_then(|builder| builder.set_properties(properties))
            .and_then(iceberg::spec::TableMetadataBuilder::build)
            .map_err(|e| {
                let (ident, branch) = (self.ident(), self.branch());
                Error::from(e).context(format_args!("no snapshot can be added to `{ident}` on `{branch}`"))
            })?;
        if built.changes.iter().any(|change| matches!(change, TableUpdate::AddSnapshot { .. })) {
            return Ok(built.changes);
        }
        Err(Error::new(ErrorKind::Internal, "the updates of a commit do not add its snapshot"))
    }
}

/// A snapshot is added once: this one is in the table, and not in the history of the branch.
fn taken_out(handle: &TableHandle, snapshot_id: i64) -> Error {
    Error::new(
        ErrorKind::Ledger,
        format!(
            "snapshot {snapshot_id} of this commit landed and was rolled back on `{}` afterwards: it was not \
             committed again. Look at the table, and do the work again under a new commit",
            handle.branch()
        ),
    )
}

fn own_manifests<'a>(new: &'a NewSnapshot<'_>) -> impl Iterator<Item = String> + 'a {
    let own = new.manifests.iter().filter(|manifest| manifest.added_snapshot_id == new.snapshot_id);
    own.map(|manifest| manifest.manifest_path.clone())
}

/// Later than everything in the table, so that history is in order whatever the clocks of its writers say.
fn timestamp(base: &Table, now_ms: i64) -> i64 {
    let metadata = base.metadata();
    let logged = metadata.history().last().map_or(i64::MIN, |log| log.timestamp_ms);
    let last = metadata.last_updated_ms().max(logged);
    if last.saturating_sub(now_ms) > SKEW_WARNING_MS {
        tracing::warn!(
            table = %base.identifier(),
            behind_ms = last - now_ms,
            "this machine's clock is behind the table's last commit: the snapshot gets a later time"
        );
    }
    now_ms.max(last.saturating_add(1))
}
