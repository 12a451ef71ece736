//! Prints the rate of a rewrite next to that of a bare loop that decodes the same files and encodes their rows with
//! the same settings, on one thread and in the same run. Rates are megabytes of input on storage per second.
//!
//! `cargo bench -p firn-compactor --bench rewrite -- [FILES] [ROWS_PER_FILE]`

// What a benchmark finds it prints, and it has no caller to hand an error to.
#![allow(clippy::panic, clippy::print_stdout, dead_code)]

#[path = "../tests/compaction/rows.rs"]
mod rows;
#[path = "../tests/compaction/support.rs"]
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use firn_compactor::{CompactOptions, PlanOptions, Silent, Verify, plan, run_plan};
use firn_table::files::{FileEncoder, FileFormat};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tokio_util::sync::CancellationToken;

use crate::support::{Lake, TestTable, schema};

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let (files, rows) = (numbers.next().unwrap_or(200), numbers.next().unwrap_or(10_000));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(run(files, rows));
}

async fn run(files: u64, rows: u64) {
    let lake = Lake::new().await;
    let table = lake.create(schema(), &[], &[]).await;
    let rows = usize::try_from(rows).expect("rows fit memory");
    for seed in 1..=files {
        table.append_random(rows, seed).await;
    }
    let bytes: u64 = table.sizes().await.iter().sum();
    println!("{files} files of {} bytes, {rows} rows each", bytes / files);

    let bare = bare_loop(&table).await;
    report("bare decode and encode, 1 thread", bytes, bare, bare);

    let started = Instant::now();
    let plan = plan(&table.table().await, &PlanOptions::default()).await.expect("a plan");
    println!("plan: {:.3} s for {} files", started.elapsed().as_secs_f64(), plan.input_files());
    let head = table.table().await.metadata().current_snapshot_id().expect("a snapshot");
    for (name, verify) in
        [("rewrite, verified by metadata", Verify::Metadata), ("rewrite, verified in full", Verify::Full)]
    {
        let options = CompactOptions { verify, ..CompactOptions::default() };
        let started = Instant::now();
        let run = run_plan(&table.handle, &plan, &options, Arc::new(Silent), CancellationToken::new()).await;
        let run = run.expect("a run");
        assert_eq!(run.groups_landed, plan.groups.len(), "{run:?}");
        report(name, bytes, started.elapsed(), bare);
        table.roll_back_to(head).await;
    }
}

/// Decodes every file and encodes its rows into one, with the table's settings.
async fn bare_loop(table: &TestTable) -> Duration {
    let format = FileFormat::of_table(&table.table().await).expect("a format");
    let inputs: Vec<Bytes> =
        table.data_files().iter().map(|path| std::fs::read(path).expect("a file").into()).collect();
    let started = Instant::now();
    let mut encoder = FileEncoder::new(&format);
    for input in inputs {
        let reader = ParquetRecordBatchReaderBuilder::try_new(input).expect("a Parquet file");
        for batch in reader.with_batch_size(8192).build().expect("a reader") {
            encoder.write(&batch.expect("a batch")).expect("rows are encoded");
        }
    }
    encoder.finish().expect("a file");
    started.elapsed()
}

fn report(name: &str, bytes: u64, elapsed: Duration, bare: Duration) {
    let rate = bytes as f64 / 1e6 / elapsed.as_secs_f64();
    let share = bare.as_secs_f64() / elapsed.as_secs_f64();
    println!("{name}: {rate:.1} MB/s in {:.3} s, {share:.2} of the bare loop", elapsed.as_secs_f64());
}
