//! What a recording says: percentiles by phase, and which phase makes the slowest commits slow.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Serialize;

use super::{OUTSIDE, PHASES, Record, older};
use crate::latency::Latency;

/// The lines of a recording.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// Commits, oldest first.
    pub records: Vec<Record>,
    /// Lines that are no record.
    pub unreadable: usize,
}

/// What a recording says.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Explanation {
    /// Commits with messages.
    pub commits: usize,
    /// From produce to visible: the slowest message of each commit.
    pub latency_ms: Latency,
    /// Commits whose slowest message is at P99 or above.
    pub slowest_commits: usize,
    /// Each phase.
    pub phases: Vec<PhaseShare>,
    /// The phase that took most of the slowest commits; absent where they took no time.
    pub binding: Option<Binding>,
    /// Lines that are no record.
    pub unreadable_lines: usize,
}

/// One phase over all commits.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct PhaseShare {
    /// Its name.
    pub phase: &'static str,
    /// Half of the commits took at most this, in milliseconds.
    pub p50_ms: f64,
    /// 95 of 100.
    pub p95_ms: f64,
    /// 99 of 100.
    pub p99_ms: f64,
    /// All.
    pub max_ms: f64,
    /// Its part of the slowest commits' time, 0 to 1.
    pub share_of_slowest: f64,
}

/// What makes the slowest commits slow.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Binding {
    /// The phase.
    pub phase: &'static str,
    /// Its part of the slowest commits' time, 0 to 1.
    pub share: f64,
    /// What it means, and what to do.
    pub advice: &'static str,
}

/// Reads a recording, the older part first.
pub(crate) fn read(path: &Path) -> io::Result<Recording> {
    let mut recording = Recording::default();
    match File::open(older(path)) {
        Ok(file) => read_lines(file, &mut recording)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    read_lines(File::open(path)?, &mut recording)?;
    Ok(recording)
}

fn read_lines(file: File, into: &mut Recording) -> io::Result<()> {
    for line in BufReader::new(file).split(b'\n') {
        match serde_json::from_slice(&line?) {
            Ok(record) => into.records.push(record),
            Err(_) => into.unreadable += 1,
        }
    }
    Ok(())
}

/// Commits without messages say nothing about latency and are left out; `None` where there are no others.
pub(crate) fn explain(recording: &Recording) -> Option<Explanation> {
    let mut commits: Vec<&Record> =
        recording.records.iter().filter(|record| record.rows + record.rejected > 0).collect();
    commits.sort_by_key(|record| record.latency_ms.max);
    let slowest = commits.get(rank(commits.len(), 99)?..)?;
    let totals: Vec<u64> =
        PHASES.iter().map(|(phase, _)| slowest.iter().map(|record| time_us(record, phase)).sum()).collect();
    let all: u64 = totals.iter().sum();
    let share = |total: u64| if all == 0 { 0.0 } else { total as f64 / all as f64 };
    let phases: Vec<PhaseShare> = PHASES
        .iter()
        .zip(&totals)
        .map(|((phase, _), total)| of_phase(phase, &commits, share(*total)))
        .collect();
    let largest = PHASES.iter().zip(&totals).max_by_key(|(_, total)| **total).filter(|_| all > 0);
    let latencies: Vec<u64> = commits.iter().map(|record| record.latency_ms.max).collect();
    Some(Explanation {
        commits: commits.len(),
        latency_ms: Latency {
            p50: percentile(&latencies, 50),
            p95: percentile(&latencies, 95),
            p99: percentile(&latencies, 99),
            max: percentile(&latencies, 100),
        },
        slowest_commits: slowest.len(),
        phases,
        binding: largest.map(|((phase, advice), total)| Binding { phase, share: share(*total), advice }),
        unreadable_lines: recording.unreadable,
    })
}

fn of_phase(phase: &'static str, commits: &[&Record], share_of_slowest: f64) -> PhaseShare {
    let mut times: Vec<u64> = commits.iter().map(|record| time_us(record, phase)).collect();
    times.sort_unstable();
    let millis = |percent| percentile(&times, percent) as f64 / 1_000.0;
    PhaseShare {
        phase,
        p50_ms: millis(50),
        p95_ms: millis(95),
        p99_ms: millis(99),
        max_ms: millis(100),
        share_of_slowest,
    }
}

/// The time of a phase; outside of all of them, what the slowest message took beyond their sum.
fn time_us(record: &Record, phase: &str) -> u64 {
    if phase == OUTSIDE {
        let inside: u64 = record.phases_us.values().sum();
        return (record.latency_ms.max * 1_000).saturating_sub(inside);
    }
    record.phases_us.get(phase).copied().unwrap_or(0)
}

/// Where the nearest rank of a percentile stands among `count` sorted values.
fn rank(count: usize, percent: usize) -> Option<usize> {
    (count * percent).div_ceil(100).max(1).checked_sub(1).filter(|_| count > 0)
}

fn percentile(sorted: &[u64], percent: usize) -> u64 {
    rank(sorted.len(), percent).and_then(|at| sorted.get(at)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;

    /// A hundred commits of 100 ms, most of it buffering; the last one waited 900 ms for the catalog.
    fn recording() -> Recording {
        let mut records: Vec<Record> = (0..100).map(|n| record(n, 100)).collect();
        for record in &mut records {
            record.phases_us.insert("buffer".to_owned(), 80_000);
            record.phases_us.insert("catalog".to_owned(), 20_000);
        }
        records[99].latency_ms.max = 1_000;
        records[99].phases_us.insert("catalog".to_owned(), 900_000);
        records[98].latency_ms.max = 990;
        records[98].phases_us.insert("catalog".to_owned(), 820_000);
        Recording { records, unreadable: 0 }
    }

    #[test]
    fn the_binding_phase_is_that_of_the_slowest_commits_not_of_most() {
        let said = explain(&recording()).unwrap();
        assert_eq!((said.commits, said.slowest_commits), (100, 2));
        assert_eq!(said.latency_ms, Latency { p50: 100, p95: 100, p99: 990, max: 1_000 });
        let binding = said.binding.unwrap();
        assert_eq!(binding.phase, "catalog");
        // 820 and 900 of 990 and 1,000 ms; 90 and 20 are outside or in the buffer.
        assert!((binding.share - 1_720.0 / 1_990.0).abs() < 1e-9, "{}", binding.share);
        let of = |name: &str| said.phases.iter().find(|phase| phase.phase == name).unwrap();
        assert_eq!((of("buffer").p50_ms, of("buffer").max_ms), (80.0, 80.0));
        assert_eq!((of("catalog").p50_ms, of("catalog").p99_ms, of("catalog").max_ms), (20.0, 820.0, 900.0));
        let shares: f64 = said.phases.iter().map(|phase| phase.share_of_slowest).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    }

    #[test]
    fn time_before_the_fetch_is_outside() {
        let mut late = record(1, 60_000);
        late.phases_us.insert("buffer".to_owned(), 1_000_000);
        let said = explain(&Recording { records: vec![late], unreadable: 0 }).unwrap();
        let binding = said.binding.unwrap();
        assert_eq!(binding.phase, OUTSIDE);
        assert!((binding.share - 59.0 / 60.0).abs() < 1e-9, "{}", binding.share);
    }

    #[test]
    fn commits_without_messages_say_nothing() {
        let mut empty = record(1, 10);
        (empty.rows, empty.rejected) = (0, 0);
        assert_eq!(explain(&Recording { records: vec![empty], unreadable: 0 }), None);
    }

    #[test]
    fn ranks_are_the_nearest() {
        assert_eq!([1, 2, 99, 100, 101, 200].map(|n| rank(n, 99)), [0, 1, 98, 98, 99, 197].map(Some));
        assert_eq!(rank(0, 99), None);
    }
}
