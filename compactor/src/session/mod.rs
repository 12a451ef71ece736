//! The layout of a snapshot as SQL tables: `files`, `partitions`, `manifests`, `snapshots`, `offsets`.
//!
//! Their columns are those of the batches in [`firn_table::layout`]. Queries read only: statements that create,
//! change or set anything are refused.

use arrow_array::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::prelude::{SessionConfig, SessionContext};
use firn_table::layout;
use iceberg::table::Table;

use crate::{Error, ErrorKind, Result};

/// A session with the layout of a snapshot of `table` (the head of `main` where `None`) as SQL tables.
pub async fn layout_session(table: &Table, snapshot_id: Option<i64>) -> Result<SessionContext> {
    let head = table.metadata().current_snapshot().map(|snapshot| snapshot.snapshot_id());
    let (files, manifests) = match snapshot_id.or(head) {
        Some(id) => (layout::live(table, id).await?.files, layout::manifests(table, id).await?),
        None => (Vec::new(), Vec::new()),
    };
    session_over(&[
        ("files", layout::files_batch(table, &files)?),
        ("partitions", layout::partitions_batch(&files)?),
        ("manifests", layout::manifests_batch(&manifests)?),
        ("snapshots", layout::snapshots_batch(table)?),
        ("offsets", layout::offsets_batch(table)?),
    ])
}

/// Runs one query on a session. `Configuration` where the query is wrong.
pub async fn sql(session: &SessionContext, query: &str) -> Result<Vec<RecordBatch>> {
    let read_only =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let wrong = |cause| configuration(format!("the query `{query}` cannot be run"), cause);
    let rows = session.sql_with_options(query, read_only).await.map_err(wrong)?;
    let schema = rows.schema().as_arrow().clone();
    let batches = rows.collect().await.map_err(wrong)?;
    // A result without rows still has columns.
    Ok(if batches.is_empty() { vec![RecordBatch::new_empty(schema.into())] } else { batches })
}

/// A session with these batches as tables.
pub(crate) fn session_over(tables: &[(&str, RecordBatch)]) -> Result<SessionContext> {
    let session = SessionContext::new_with_config(SessionConfig::new().with_information_schema(true));
    for (name, batch) in tables {
        session.register_batch(name, batch.clone()).map_err(internal)?;
    }
    Ok(session)
}

/// The error for what a user wrote.
pub(crate) fn configuration(what: String, cause: DataFusionError) -> Error {
    // The message is all there is to tell: as a source it would be printed once more at each level.
    Error::new(ErrorKind::Configuration, format!("{what}: {}", cause.strip_backtrace()))
}

/// The error for what cannot happen.
pub(crate) fn internal(cause: DataFusionError) -> Error {
    Error::new(ErrorKind::Internal, cause.strip_backtrace())
}
