//! Prints how long the plan of a table with many files takes, and the memory that it took at most.
//!
//! `cargo bench -p firn-compactor --bench plan -- [FILES]` (100,000 by default, in appends of 1,000). The files exist
//! in manifests only: planning opens none.

// What a benchmark finds it prints, and it has no caller to hand an error to.
#![allow(clippy::panic, clippy::print_stdout, dead_code)]

#[path = "../tests/compaction/rows.rs"]
mod rows;
#[path = "../tests/compaction/support.rs"]
mod support;

use std::time::Instant;

use firn_compactor::{PlanOptions, plan};
use firn_table::files::NewFile;
use iceberg::spec::{DataContentType, DataFileBuilder, DataFileFormat, Datum, Literal, Struct, Transform};

use crate::support::{Lake, schema};

const FILES_OF_AN_APPEND: u64 = 1000;
const BUCKETS: u64 = 16;

fn main() {
    let files = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(100_000);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(run(files));
}

async fn run(files: u64) {
    let lake = Lake::new().await;
    let buckets = u32::try_from(BUCKETS).expect("few buckets");
    let table = lake.create(schema(), &[("id", Transform::Bucket(buckets))], &[]).await;
    for first in (0..files).step_by(FILES_OF_AN_APPEND as usize) {
        let append = first..(first + FILES_OF_AN_APPEND).min(files);
        table.append_files(append.map(imagined_file).collect()).await;
    }
    let head = table.table().await;
    for (name, filter) in [("plan", None), ("plan with a condition", Some("file_size_bytes < 1500000"))] {
        let options = PlanOptions { filter: filter.map(str::to_owned), ..PlanOptions::default() };
        let started = Instant::now();
        let plan = plan(&head, &options).await.expect("a plan");
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{name} of {files} files: {seconds:.3} s, {} groups, {} files",
            plan.groups.len(),
            plan.input_files()
        );
    }
    println!("peak memory: {}", peak_memory().unwrap_or_else(|| "unknown".to_owned()));
}

/// A file of a mean size of 1.5 MB, with the metrics that a file of firn has.
fn imagined_file(number: u64) -> NewFile {
    let bucket = i32::try_from(number % BUCKETS).expect("few buckets");
    let first_id = i64::try_from(number * 1000).expect("a small id");
    let counts = |value: u64| (1..=6).map(|id| (id, value)).collect();
    let file = DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(format!("file:///imagined/data/id_bucket={bucket}/writer-00000000-{number:08}-0.parquet"))
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::from_iter([Some(Literal::int(bucket))]))
        .partition_spec_id(0)
        .record_count(1000)
        .file_size_in_bytes(1_000_000 + number * 7919 % 1_000_000)
        .column_sizes(counts(100_000))
        .value_counts(counts(1000))
        .null_value_counts(counts(100))
        .lower_bounds([(1, Datum::long(first_id))].into())
        .upper_bounds([(1, Datum::long(first_id + 999))].into())
        .build()
        .expect("a data file");
    NewFile { file, spec_id: 0 }
}

/// As Linux counts it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(line.trim_start_matches("VmHWM:").trim().to_owned())
}
