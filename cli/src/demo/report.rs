//! What the demo ends with: one object for programs, one table for people.

use std::fmt::Write as _;

use firn_policies::Histogram;
use serde::Serialize;

use crate::commands::inspect::WIDTH;
use crate::events::latency_text;
use crate::latency::Latency;
use crate::render::histogram;
use crate::units;

/// The result of a demo.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Messages that the broker acknowledged.
    pub rows_produced: u64,
    /// Rows that a scan of the final snapshot counted.
    pub rows_in_table: u64,
    /// From produce to visible, over all messages.
    pub latency_ms: Latency,
    /// All files that the writer appended.
    pub before: LayoutReport,
    /// The files of the final snapshot, which hold the same rows.
    pub after: LayoutReport,
    /// How long the stream ran.
    pub seconds: f64,
    /// Append commits.
    pub commits: u64,
    /// Runs of the compactor that changed something.
    pub compactions: u64,
    /// Files that they replaced, their own outputs included.
    pub files_compacted: u64,
    /// The query that was timed.
    pub query: &'static str,
    /// Where everything is.
    pub directory: String,
    /// The catalog's URI.
    pub catalog: String,
    /// The table.
    pub table: String,
}

/// One layout of the rows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LayoutReport {
    /// Data files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes per file.
    pub mean_file_bytes: u64,
    /// The same query on these files, in milliseconds: the median of three warm runs.
    pub scan_ms: f64,
    /// Files by size.
    pub histogram: Histogram,
}

impl Report {
    /// Whether every message is in the table once.
    pub(crate) fn complete(&self) -> bool {
        self.rows_produced == self.rows_in_table
    }
}

/// The table, the two pictures, and where to look further.
pub(crate) fn human(report: &Report) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "\n{:<24} {:>14} {:>14}", "", "before", "after");
    let mut row = |name: &str, value: &dyn Fn(&LayoutReport) -> String| {
        let _ = writeln!(out, "{name:<24} {:>14} {:>14}", value(&report.before), value(&report.after));
    };
    row("files", &|layout| units::format_count(layout.files));
    row("bytes", &|layout| units::format_bytes(layout.bytes));
    row("bytes per file", &|layout| units::format_bytes(layout.mean_file_bytes));
    row("the same query", &|layout| units::format_millis(layout.scan_ms));
    let _ = writeln!(out, "  ({})", report.query);
    let _ = write!(
        out,
        "\nbefore: every file as the writer made it\n{}\nafter: the table as it is now\n{}\n",
        histogram::lines(&report.before.histogram, WIDTH),
        histogram::lines(&report.after.histogram, WIDTH),
    );
    let _ = writeln!(out, "latency, produce to visible: {}", latency_text(&report.latency_ms));
    let _ = writeln!(
        out,
        "commits of the writer: {}; compactions beside it: {}",
        units::format_count(report.commits),
        units::format_count(report.compactions),
    );
    let _ = writeln!(
        out,
        "rows produced {} {} rows in the table {}",
        units::format_count(report.rows_produced),
        if report.complete() { "=" } else { "≠" },
        units::format_count(report.rows_in_table),
    );
    out.push_str("\nlook further:\n");
    for command in commands(report) {
        let _ = writeln!(out, "  {command}");
    }
    out
}

/// Three commands that work as they are pasted.
fn commands(report: &Report) -> [String; 3] {
    let program =
        std::env::current_exe().map_or_else(|_| "firn".to_owned(), |path| path.display().to_string());
    let program = shell_word(&program);
    let place = format!("{} --catalog {}", report.table, shell_word(&report.catalog));
    [
        format!("{program} inspect histogram {place}"),
        format!(
            "{program} inspect sql 'select operation, count(*) as snapshots from snapshots group by operation' {place}"
        ),
        format!("{program} verify {place}"),
    ]
}

/// A text as one word of a POSIX shell.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:+@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(sizes: &[u64], scan_ms: f64) -> LayoutReport {
        let bytes = sizes.iter().sum();
        let files = sizes.len() as u64;
        let histogram = sizes.iter().copied().collect();
        LayoutReport { files, bytes, mean_file_bytes: bytes / files, scan_ms, histogram }
    }

    fn report() -> Report {
        Report {
            rows_produced: 240_000,
            rows_in_table: 240_000,
            latency_ms: Latency { p50: 210, p95: 380, p99: 520, max: 910 },
            before: layout(&[300 << 10; 300], 400.0),
            after: layout(&[30 << 20, 30 << 20, 20 << 20], 90.0),
            seconds: 60.5,
            commits: 300,
            compactions: 6,
            files_compacted: 305,
            query: "select 1",
            directory: "/data/a b".to_owned(),
            catalog: "sqlite:/data/a b/catalog.db".to_owned(),
            table: "demo.events".to_owned(),
        }
    }

    #[test]
    fn the_object_has_the_promised_fields() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["rows_produced"], 240_000);
        assert_eq!(json["rows_in_table"], 240_000);
        for name in ["p50", "p95", "p99", "max"] {
            assert!(json["latency_ms"][name].is_u64(), "{name}");
        }
        for side in ["before", "after"] {
            for name in ["files", "bytes", "mean_file_bytes"] {
                assert!(json[side][name].is_u64(), "{side}.{name}");
            }
            assert!(json[side]["scan_ms"].is_f64(), "{side}.scan_ms");
        }
        assert_eq!(json["before"]["files"], 300);
    }

    #[test]
    fn a_row_more_or_less_is_not_complete() {
        assert!(report().complete());
        assert!(!Report { rows_in_table: 239_999, ..report() }.complete());
        assert!(
            human(&Report { rows_in_table: 240_001, ..report() })
                .contains("240,000 ≠ rows in the table 240,001")
        );
    }

    #[test]
    fn commands_can_be_pasted() {
        for command in commands(&report()) {
            assert!(command.contains("demo.events --catalog 'sqlite:/data/a b/catalog.db'"), "{command}");
        }
        assert_eq!(shell_word("a'b"), r"'a'\''b'");
        assert_eq!(shell_word("/usr/bin/firn"), "/usr/bin/firn");
    }
}
