//! The branches and tags of a table.

use std::collections::BTreeMap;

use iceberg::spec::{SnapshotReference, TableMetadata};
use serde::Deserialize;

use crate::{Error, ErrorKind, Result};

/// All refs of a table. `iceberg` 0.10.1 looks refs up by name but does not list them; they are taken from the
/// metadata's JSON.
pub(crate) fn refs(metadata: &TableMetadata) -> Result<BTreeMap<String, SnapshotReference>> {
    #[derive(Deserialize)]
    struct OnlyRefs {
        #[serde(default)]
        refs: BTreeMap<String, SnapshotReference>,
    }
    let failed = |error: serde_json::Error| {
        Error::new(ErrorKind::Internal, "the refs of the table metadata cannot be listed").with_source(error)
    };
    let json = serde_json::to_vec(metadata).map_err(failed)?;
    let mut refs = serde_json::from_slice::<OnlyRefs>(&json).map_err(failed)?.refs;
    // Format version 1 has no refs in its JSON: there is `main`, or nothing.
    if let (true, Some(head)) = (refs.is_empty(), metadata.current_snapshot_id()) {
        let retention = iceberg::spec::SnapshotRetention::branch(None, None, None);
        refs.insert("main".to_owned(), SnapshotReference::new(head, retention));
    }
    Ok(refs)
}
