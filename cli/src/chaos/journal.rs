//! What the proxy did: a line for each request that a rule acted on, and counts.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use chrono::{SecondsFormat, Utc};
use serde::Serialize;

use crate::output::Format;

/// Where lines go, and how many requests there were.
pub(crate) struct Journal {
    lines: Option<Mutex<Box<dyn Write + Send>>>,
    format: Format,
    requests: AtomicU64,
    unreachable: AtomicU64,
}

/// A request that a rule acted on.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Touched {
    /// The number of the rule, from 1; none where no rule acted and the upstream could not be reached.
    pub(super) rule: Option<usize>,
    /// The method.
    pub(super) method: String,
    /// The path and the query.
    pub(super) target: String,
    /// The fault, as in the rule.
    pub(super) did: String,
    /// What the upstream answered, where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) upstream_status: Option<u16>,
    /// What else is worth knowing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    #[serde(flatten)]
    touched: &'a Touched,
}

/// How many requests there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    /// All of them.
    pub requests: u64,
    /// Those that were to be forwarded and met no upstream.
    pub unreachable: u64,
}

impl Journal {
    /// Lines go to the file at `path`, to standard error for `-`, or nowhere.
    pub(crate) fn open(path: Option<&Path>, format: Format) -> io::Result<Self> {
        let lines: Option<Mutex<Box<dyn Write + Send>>> = match path {
            None => None,
            Some(path) if path == Path::new("-") => Some(Mutex::new(Box::new(io::stderr()))),
            Some(path) => Some(Mutex::new(Box::new(BufWriter::new(File::create(path)?)))),
        };
        Ok(Self { lines, format, requests: AtomicU64::new(0), unreachable: AtomicU64::new(0) })
    }

    /// A request came.
    pub(super) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// The upstream could not be reached.
    pub(super) fn unreachable(&self) {
        self.unreachable.fetch_add(1, Ordering::Relaxed);
    }

    /// A rule acted, and what it did has an end.
    pub(super) fn touched(&self, touched: &Touched) {
        let Some(lines) = &self.lines else { return };
        let time = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let line = match self.format {
            Format::Json => serde_json::to_string(&Line { time, touched }).unwrap_or_default(),
            Format::Human | Format::Csv => human(&time, touched),
        };
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written is no reason to change what the proxy does.
        let _ = writeln!(lines, "{line}").and_then(|()| lines.flush());
    }

    /// How many requests there were.
    pub(crate) fn totals(&self) -> Totals {
        Totals {
            requests: self.requests.load(Ordering::Relaxed),
            unreachable: self.unreachable.load(Ordering::Relaxed),
        }
    }
}

fn human(time: &str, touched: &Touched) -> String {
    let rule = touched.rule.map_or_else(|| "no rule".to_owned(), |rule| format!("rule {rule}"));
    let mut line = format!("{time} {rule} {} {}: {}", touched.method, touched.target, touched.did);
    if let Some(status) = touched.upstream_status {
        line.push_str(&format!("; upstream {status}"));
    }
    if let Some(note) = &touched.note {
        line.push_str(&format!("; {note}"));
    }
    line
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("totals", &self.totals()).finish_non_exhaustive()
    }
}
