//! Writes records on a thread of its own, so that a slow disk does not hold up the writer.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use firn_writer::{Event, Observer};

use super::{Record, older};

/// Records that may wait for a slow disk.
const CAPACITY: usize = 1_024;

/// Appends a line per commit until it is finished.
#[derive(Debug)]
pub(crate) struct FlightRecorder {
    records: SyncSender<Record>,
    left_out: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

/// Takes a writer's events.
#[derive(Debug)]
pub(crate) struct RecordingObserver {
    records: SyncSender<Record>,
    left_out: Arc<AtomicU64>,
}

impl FlightRecorder {
    /// Opens the file and starts the thread. A file that would exceed `limit_bytes` is put aside first.
    pub(crate) fn start(path: &Path, limit_bytes: u64) -> io::Result<Self> {
        let lines = Lines::open(path, limit_bytes)?;
        let (records, received) = sync_channel(CAPACITY);
        let thread = std::thread::spawn(move || write_all(lines, &received));
        Ok(Self { records, left_out: Arc::default(), thread })
    }

    /// What the writer talks to.
    pub(crate) fn observer(&self) -> RecordingObserver {
        RecordingObserver { records: self.records.clone(), left_out: Arc::clone(&self.left_out) }
    }

    /// Waits until everything is written. All observers must be gone: they keep the thread waiting.
    pub(crate) fn finish(self) {
        drop(self.records);
        let _ = self.thread.join();
        let commits = self.left_out.load(Ordering::Relaxed);
        if commits > 0 {
            tracing::warn!(commits, "commits were not recorded: the disk was too slow");
        }
    }
}

impl Observer for RecordingObserver {
    fn on_event(&self, event: &Event) {
        if let Event::Committed(commit) = event
            && let Err(TrySendError::Full(_)) = self.records.try_send(Record::of(commit))
        {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A disk that fails ends the recording, not the stream.
fn write_all(mut lines: Lines, received: &Receiver<Record>) {
    for record in received {
        if let Err(error) = lines.append(&record) {
            tracing::warn!(path = %lines.path.display(), %error, "the flight recorder stops: it cannot be written");
            break;
        }
    }
}

/// A file of lines with a bound.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    file: File,
    bytes: u64,
    limit_bytes: u64,
}

impl Lines {
    fn open(path: &Path, limit_bytes: u64) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes, limit_bytes })
    }

    /// Appends a line in one write, so that a crash leaves at most one that is cut.
    fn append(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        if self.bytes > 0 && self.bytes + line.len() as u64 > self.limit_bytes {
            std::fs::rename(&self.path, older(&self.path))?;
            *self = Self::open(&self.path, self.limit_bytes)?;
        }
        self.file.write_all(&line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::explain::read;
    use super::super::tests::record;
    use super::*;

    #[test]
    fn a_recording_keeps_the_newest_commits_within_two_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flight.jsonl");
        let length = serde_json::to_vec(&record(0, 10)).unwrap().len() as u64 + 1;
        let mut lines = Lines::open(&path, 4 * length).unwrap();
        (0..10).for_each(|n| lines.append(&record(n, 10)).unwrap());
        let found = read(&path).unwrap();
        let ids: Vec<i64> = found.records.iter().map(|record| record.snapshot_id).collect();
        assert_eq!(ids, [4, 5, 6, 7, 8, 9]);
        let size = |path: &Path| std::fs::metadata(path).unwrap().len();
        assert_eq!((size(&older(&path)), size(&path)), (4 * length, 2 * length));
    }

    #[test]
    fn a_restart_goes_on_where_the_recording_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flight.jsonl");
        for n in 0..2 {
            Lines::open(&path, u64::MAX).unwrap().append(&record(n, 10)).unwrap();
        }
        assert_eq!(read(&path).unwrap().records, [record(0, 10), record(1, 10)]);
    }

    #[test]
    fn a_line_that_a_crash_cut_is_counted_and_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flight.jsonl");
        let line = serde_json::to_string(&record(3, 10)).unwrap();
        std::fs::write(&path, format!("{line}\n{}", &line[..line.len() / 2])).unwrap();
        let found = read(&path).unwrap();
        assert_eq!((found.records, found.unreadable), (vec![record(3, 10)], 1));
    }
}
