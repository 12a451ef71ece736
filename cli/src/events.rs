//! The events of a writer on standard output: one line each, or one JSON object each.
//!
//! Events come from the writer's own task, which must not wait for a terminal or a pipe. So they pass through a
//! bounded channel to a thread that prints; when the reader is slower than the writer, lines are left out and
//! counted, never the rows.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use firn_writer::observe::CommitEvent;
use firn_writer::{Event, Observer};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::latency::{Latencies, Latency};
use crate::output::Output;
use crate::progress::Visibility;
use crate::units;

/// Lines that may wait for a slow reader.
const CAPACITY: usize = 4_096;

/// Prints events until it is finished.
#[derive(Debug)]
pub(crate) struct EventPrinter {
    lines: SyncSender<Value>,
    thread: JoinHandle<()>,
    summary: Arc<Mutex<Summary>>,
}

/// What all events say together.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    latencies: Latencies,
    left_out: u64,
}

impl Summary {
    /// From produce to visible.
    pub(crate) fn latency(&self) -> Latency {
        self.latencies.percentiles()
    }
}

impl EventPrinter {
    /// Starts the thread. With `--quiet` events are summed up and not printed.
    pub(crate) fn start(context: &Context) -> Self {
        let (lines, received) = sync_channel(CAPACITY);
        let output = (context.visibility() == Visibility::Shown).then_some(context.output);
        let stop = context.stop.clone();
        let thread = std::thread::spawn(move || print(&received, output, &stop));
        Self { lines, thread, summary: Arc::default() }
    }

    /// What the writer talks to.
    pub(crate) fn observer(&self) -> EventObserver {
        EventObserver { lines: self.lines.clone(), summary: Arc::clone(&self.summary) }
    }

    /// Waits until everything is printed. The writer must be done: its observers keep the thread waiting.
    pub(crate) fn finish(self) -> Summary {
        drop(self.lines);
        let _ = self.thread.join();
        let summary = std::mem::take(&mut *lock(&self.summary));
        if summary.left_out > 0 {
            tracing::warn!(
                events = summary.left_out,
                "events were not printed: standard output was too slow"
            );
        }
        summary
    }
}

/// A reader that closes the pipe wants no more: the writer is asked to stop.
fn print(received: &Receiver<Value>, output: Option<Output>, stop: &CancellationToken) {
    for value in received {
        let printed = output.map_or(Ok(()), |output| output.event(&value, line));
        if printed.is_err() {
            stop.cancel();
            break;
        }
    }
}

/// Takes a writer's events.
#[derive(Debug)]
pub(crate) struct EventObserver {
    lines: SyncSender<Value>,
    summary: Arc<Mutex<Summary>>,
}

impl Observer for EventObserver {
    fn on_event(&self, event: &Event) {
        let mut summary = lock(&self.summary);
        if let Event::Committed(commit) = event {
            summary.latencies.record(commit);
        }
        // A thread that is gone has a reader that wants no more lines.
        if let Err(TrySendError::Full(_)) = self.lines.try_send(value(event)) {
            summary.left_out += 1;
        }
    }
}

/// A poisoned lock is as good as any: counters have no invariant that a panic could break.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An event as JSON: `event` names it, sizes in bytes, times in milliseconds.
fn value(event: &Event) -> Value {
    match event {
        Event::Started { instance } => json!({ "event": "started", "instance": instance }),
        Event::Assigned { starts } => json!({
            "event": "assigned",
            "starts": starts.iter().map(|(place, offset)| {
                json!({ "topic": place.topic, "partition": place.partition, "offset": offset })
            }).collect::<Vec<_>>(),
        }),
        Event::Revoked { partitions } => json!({ "event": "revoked", "partitions": partitions }),
        Event::Committed(commit) => committed(commit),
        Event::Overtaken { ranges, by } => json!({
            "event": "overtaken",
            "offsets": ranges.iter().map(|range| range.next - range.start).sum::<i64>(),
            "by": by.map(|by| by.to_string()),
        }),
        Event::Rejected(rejection) => json!({
            "event": "rejected",
            "topic": rejection.partition.topic,
            "partition": rejection.partition.partition,
            "offset": rejection.offset,
            "code": rejection.code,
            "path": rejection.path,
            "reason": rejection.reason,
        }),
        Event::Gap { partition, from, to } => json!({
            "event": "gap",
            "topic": partition.topic,
            "partition": partition.partition,
            "from": from,
            "to": to,
        }),
        Event::Expired { snapshots, files, elapsed } => json!({
            "event": "expired", "snapshots": snapshots, "files": files, "elapsed_ms": elapsed.as_millis() as u64,
        }),
        Event::TableChanged { schema_id, spec_id } => {
            json!({ "event": "table-changed", "schema_id": schema_id, "spec_id": spec_id })
        }
        Event::Shards { from, to, reason } => {
            json!({ "event": "shards", "from": from, "to": to, "reason": reason })
        }
        Event::Freshness(freshness) => json!({
            "event": if freshness.missed_by.is_some() { "freshness-missed" } else { "freshness-met" },
            "goal_permille": freshness.goal.permille,
            "goal_ms": freshness.goal.within.as_millis() as u64,
            "measured_ms": freshness.measured.as_millis() as u64,
            "constraint": freshness.missed_by.map(|by| by.constraint.as_str()),
            "constraint_ms": freshness.missed_by.map(|by| by.takes.as_millis() as u64),
        }),
        Event::Unhealthy { oldest_row_age, reason } => json!({
            "event": "unhealthy", "oldest_row_age_ms": oldest_row_age.as_millis() as u64, "reason": reason,
        }),
        Event::Healthy => json!({ "event": "healthy" }),
        Event::SourceTrouble { message } => json!({ "event": "source-trouble", "message": message }),
        Event::Stopping => json!({ "event": "stopping" }),
        _ => json!({ "event": "other" }),
    }
}

fn committed(commit: &CommitEvent) -> Value {
    let mut latencies = Latencies::default();
    latencies.record(commit);
    let phases = &commit.phases;
    json!({
        "event": "committed",
        "snapshot_id": commit.snapshot_id,
        "commit_id": commit.commit_id.to_string(),
        "rows": commit.rows,
        "rejected": commit.rejected,
        "files": commit.files,
        "bytes": commit.bytes,
        "visible_at_ms": commit.visible_at_ms,
        "latency_ms": latencies.percentiles(),
        "attempts": commit.attempts,
        "conflicts": commit.conflicts,
        "phases_ms": {
            "fetch": phases.fetch.as_millis() as u64,
            "decode": phases.decode.as_millis() as u64,
            "buffer": phases.buffer.as_millis() as u64,
            "encode": phases.encode.as_millis() as u64,
            "upload": phases.upload.as_millis() as u64,
            "queue": phases.queue.as_millis() as u64,
            "commit": phases.commit.as_millis() as u64,
            "manifest": phases.manifest.as_millis() as u64,
            "list": phases.list.as_millis() as u64,
            "catalog": phases.catalog.as_millis() as u64,
            "retry": phases.retry.as_millis() as u64,
        },
    })
}

/// An event for people: what it is, then what it says.
fn line(event: &Value) -> String {
    let number = |name: &str| event[name].as_u64().unwrap_or(0);
    match event["event"].as_str() {
        Some("committed") => format!(
            "committed  {:>9} rows  {:>3} files  {:>9}  p50 {:>7}  max {:>7}  commit {:>7}",
            units::format_count(number("rows")),
            number("files"),
            units::format_bytes(number("bytes")),
            units::format_millis(event["latency_ms"]["p50"].as_f64().unwrap_or(0.0)),
            units::format_millis(event["latency_ms"]["max"].as_f64().unwrap_or(0.0)),
            units::format_millis(event["phases_ms"]["commit"].as_f64().unwrap_or(0.0)),
        ),
        Some("assigned") => {
            let starts = event["starts"].as_array().map_or(0, Vec::len);
            format!("assigned   {starts} partitions")
        }
        Some(name) => {
            let mut rest = event.clone();
            if let Some(object) = rest.as_object_mut() {
                object.remove("event");
            }
            let rest = if rest.as_object().is_some_and(|object| !object.is_empty()) {
                rest.to_string()
            } else {
                String::new()
            };
            format!("{name:<10} {rest}").trim_end().to_owned()
        }
        None => event.to_string(),
    }
}

/// `p50 350 ms, p95 1.20 s, p99 1.90 s, max 2.10 s`.
pub(crate) fn latency_text(latency: &Latency) -> String {
    let Latency { p50, p95, p99, max } = *latency;
    let [p50, p95, p99, max] = [p50, p95, p99, max].map(|millis| units::format_millis(millis as f64));
    format!("p50 {p50}, p95 {p95}, p99 {p99}, max {max}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_for_people_is_one_line() {
        let commit = json!({
            "event": "committed", "rows": 4_000, "files": 2, "bytes": 819_200,
            "latency_ms": { "p50": 350, "max": 910 }, "phases_ms": { "commit": 21 },
        });
        assert_eq!(
            line(&commit),
            "committed      4,000 rows    2 files    800 KiB  p50  350 ms  max  910 ms  commit 21.0 ms"
        );
        assert_eq!(line(&json!({ "event": "healthy" })), "healthy");
        assert_eq!(
            line(&value(&Event::SourceTrouble { message: "broker down".to_owned() })),
            "source-trouble {\"message\":\"broker down\"}"
        );
    }
}
