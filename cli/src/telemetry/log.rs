//! One log line per event: with `--log-format json` one object, whose fields are those of the event.

use firn_writer::{Event, Observer};

/// Logs every event. Trouble is a warning; what happens all the time is told with `-v`, single messages with `-vv`.
#[derive(Debug)]
pub(super) struct LogLines;

impl Observer for LogLines {
    fn on_event(&self, event: &Event) {
        match event {
            Event::Started { instance } => tracing::info!(event = "started", %instance, "the writer runs"),
            Event::Assigned { starts } => {
                tracing::info!(event = "assigned", partitions = starts.len(), "partitions were assigned");
            }
            Event::Revoked { partitions } => {
                tracing::info!(event = "revoked", partitions = partitions.len(), "partitions were given up");
            }
            Event::Committed(commit) => {
                let phases = &commit.phases;
                tracing::info!(
                    event = "committed",
                    snapshot_id = commit.snapshot_id,
                    commit_id = %commit.commit_id,
                    rows = commit.rows,
                    rejected = commit.rejected,
                    files = commit.files,
                    bytes = commit.bytes,
                    attempts = commit.attempts,
                    conflicts = commit.conflicts,
                    commit_ms = phases.commit.as_millis() as u64,
                    catalog_ms = phases.catalog.as_millis() as u64,
                    "a commit landed"
                );
            }
            Event::Overtaken { ranges, by } => {
                let offsets: i64 = ranges.iter().map(|range| range.next - range.start).sum();
                let by = by.map(|by| by.to_string()).unwrap_or_default();
                tracing::warn!(event = "overtaken", offsets, by, "a flush was overtaken and is read again");
            }
            Event::Rejected(rejection) => tracing::debug!(
                event = "rejected",
                topic = rejection.partition.topic,
                partition = rejection.partition.partition,
                offset = rejection.offset,
                code = rejection.code,
                path = rejection.path,
                "a message was rejected"
            ),
            Event::Gap { partition, from, to } => tracing::warn!(
                event = "gap",
                topic = partition.topic,
                partition = partition.partition,
                from,
                to,
                "offsets were lost to retention and recorded as a gap"
            ),
            Event::Expired { snapshots, files, elapsed } => {
                let elapsed_ms = elapsed.as_millis() as u64;
                tracing::info!(event = "expired", snapshots, files, elapsed_ms, "snapshots were expired");
            }
            Event::TableChanged { schema_id, spec_id } => {
                tracing::info!(event = "table-changed", schema_id, spec_id, "the table was changed");
            }
            Event::Unhealthy { oldest_row_age, reason } => {
                let oldest_row_age_ms = oldest_row_age.as_millis() as u64;
                tracing::warn!(event = "unhealthy", oldest_row_age_ms, reason, "rows do not become visible");
            }
            Event::Healthy => tracing::info!(event = "healthy", "rows become visible again"),
            Event::SourceTrouble { message } => {
                tracing::warn!(event = "source-trouble", reason = message, "the source is in trouble");
            }
            Event::Stopping => tracing::info!(event = "stopping", "what is in hand is committed"),
            other => tracing::info!(event = ?other, "an event"),
        }
    }
}
