//! The same query on both layouts, timed.

use std::time::Instant;

use anyhow::Context as _;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::Schema;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use firn_table::files::FileFormat;
use firn_table::storage::Location;
use iceberg::table::Table;

use crate::demo::layout::{Files, Layouts};
use crate::exit::Failure;

/// Reads four of the twelve columns of every row, as most questions do: whether small files hurt depends on what is
/// read. A count alone would be answered from the files' footers.
pub(crate) const QUERY: &str = "select country, kind, count(*) as events, avg(duration_ms), max(ts) from events \
                                group by country, kind";

/// Runs of each layout; the median counts.
const RUNS: usize = 3;

/// What a scan of one layout found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    /// Rows that the query counted.
    pub rows: u64,
    /// The median of the runs, in milliseconds.
    pub millis: f64,
}

/// Scans of both layouts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scans {
    /// Of the writer's files.
    pub before: Scan,
    /// Of the current snapshot.
    pub after: Scan,
}

/// Runs the query on both layouts in turns, so that neither has the warmer cache.
pub(crate) async fn both(table: &Table, layouts: &Layouts) -> anyhow::Result<Scans> {
    let format = FileFormat::of_table(table)?;
    let schema = format.arrow_schema().as_ref();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    // The first round warms the cache and is not counted.
    for round in 0..=RUNS {
        let pair = (run(&layouts.before, schema).await?, run(&layouts.after, schema).await?);
        if round > 0 {
            before.push(pair.0);
            after.push(pair.1);
        }
    }
    Ok(Scans { before: median(before)?, after: median(after)? })
}

async fn run(files: &Files, schema: &Schema) -> anyhow::Result<Scan> {
    if files.paths.is_empty() {
        return Ok(Scan { rows: 0, millis: 0.0 });
    }
    let paths: Vec<String> = files.paths.iter().map(|path| local_url(path)).collect::<anyhow::Result<_>>()?;
    let session = SessionContext::new();
    let started = Instant::now();
    let events = session.read_parquet(paths, ParquetReadOptions::default().schema(schema)).await?;
    session.register_table("events", events.into_view())?;
    let batches = session.sql(QUERY).await?.collect().await?;
    let millis = started.elapsed().as_secs_f64() * 1_000.0;
    let mut rows = 0;
    for batch in &batches {
        let counts = batch.column_by_name("events").context("the demo's query counts events")?;
        rows += counts.as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
    }
    Ok(Scan { rows: u64::try_from(rows)?, millis })
}

/// The location of a local file as a URL, in which DataFusion wants special characters encoded.
fn local_url(location: &str) -> anyhow::Result<String> {
    let path = Location::parse(location)?.path()?;
    let url = url::Url::from_file_path(format!("/{}", path.as_ref()))
        .map_err(|()| Failure::internal(format!("`{location}` is no local file")))?;
    Ok(url.to_string())
}

fn median(mut scans: Vec<Scan>) -> anyhow::Result<Scan> {
    scans.sort_by(|a, b| a.millis.total_cmp(&b.millis));
    scans.get(scans.len() / 2).copied().context("nothing was scanned")
}
