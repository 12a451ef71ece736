//! The demo: a stream, a writer and a compactor on one table in one process, measured from outside.
//!
//! ```text
//! load → Kafka → writer ──→ TableHandle ←── compactor (continuous)
//!                  │ events     │ snapshots      │ events
//!                  └──────→ tally ──→ view ←─────┘
//! ```
//!
//! What it claims is counted, not assumed. *Produced* are messages that the broker acknowledged. *In the table* are
//! rows that a scan of the final snapshot counts. *Latency* runs, for each message, from the moment it was handed to
//! the producer to the moment the catalog acknowledged the commit that holds it. *Before* is the layout as the
//! writer made it: every file of every append snapshot, all of which are still on disk, since the table keeps its
//! snapshots for hours. *After* is the final snapshot. Both hold the same rows, and the same query is run on both.

pub(crate) mod layout;
pub(crate) mod report;
mod scan;
mod setup;
mod stream;
mod tally;
mod view;

use std::sync::Arc;
use std::time::{Duration, Instant};

use firn_compactor::compact;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::demo::layout::Layouts;
use crate::demo::report::{LayoutReport, Report};
use crate::demo::setup::Stage;
use crate::demo::tally::Tally;
use crate::demo::view::View;
use crate::exit::{ExitCode, Failure};

/// Runs the demo to its report.
pub(crate) async fn run(context: &Context) -> anyhow::Result<Report> {
    let stage = Stage::set(context).await?;
    let tally = Arc::new(Tally::default());
    let view = View::start(&stage, Arc::clone(&tally), context);
    let started = Instant::now();
    let streamed = stream::run(&stage, &tally, context).await;
    let seconds = started.elapsed().as_secs_f64();
    view.finish().await;
    let streamed = streamed?;

    // Also after an early stop: the report compares layouts, so the table is brought to its last one.
    let observer = Arc::clone(&tally) as _;
    let final_run = compact(&stage.handle, &stage.compaction, observer, CancellationToken::new()).await?;
    let report = measure(&stage, &tally, &streamed).await?;
    stage.clear().await;
    Ok(Report {
        seconds,
        compactions: streamed.compactions.runs.len() as u64 + u64::from(final_run.groups_landed > 0),
        files_compacted: streamed.compactions.totals.files_in + final_run.files_in,
        ..report
    })
}

/// Counts and scans what is in the table now.
async fn measure(stage: &Stage, tally: &Tally, streamed: &stream::Streamed) -> anyhow::Result<Report> {
    let table = stage.handle.refresh().await?;
    let layouts = Layouts::of(&table).await?;
    let scans = scan::both(&table, &layouts).await?;
    let counted = tally.snapshot();
    let layout = |files: &layout::Files, scan: &scan::Scan| LayoutReport {
        files: files.sizes.files,
        bytes: files.sizes.bytes,
        mean_file_bytes: files.sizes.mean_bytes,
        scan_ms: scan.millis,
        histogram: files.sizes.histogram.clone(),
    };
    agree(&layouts, &scans, stage)?;
    Ok(Report {
        rows_produced: streamed.deliveries.delivered,
        rows_in_table: scans.after.rows,
        latency_ms: counted.latency,
        before: layout(&layouts.before, &scans.before),
        after: layout(&layouts.after, &scans.after),
        seconds: 0.0,
        commits: counted.commits,
        compactions: 0,
        files_compacted: 0,
        query: scan::QUERY,
        directory: stage.directory.display().to_string(),
        catalog: stage.catalog_uri.clone(),
        table: table.identifier().to_string(),
    })
}

/// Both layouts hold as many rows as the scans counted and as their manifests say.
fn agree(layouts: &Layouts, scans: &scan::Scans, stage: &Stage) -> Result<(), Failure> {
    let counts = [scans.before.rows, scans.after.rows, layouts.before.rows, layouts.after.rows];
    if counts.iter().all(|count| *count == counts[0]) {
        return Ok(());
    }
    let message = format!(
        "the files of the writer hold {} rows (by their manifests {}) and those of the compacted table {} (by their \
         manifests {}): a rewrite changed the rows; everything in `{}` is left as it is",
        scans.before.rows,
        layouts.before.rows,
        scans.after.rows,
        layouts.after.rows,
        stage.directory.display()
    );
    Err(Failure::new(ExitCode::BadData, message))
}

/// How long to wait for rows that are produced and not yet in the table, without any progress.
const PATIENCE: Duration = Duration::from_secs(60);
