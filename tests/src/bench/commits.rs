//! What a commit costs at the tenth append and at the five thousandth, with the retention that firn gives to tables.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use firn_table::catalog::parse_table_ident;
use firn_table::commit::{ExpireOptions, TableHandle};
use firn_tests::appender::{Appender, create};
use firn_tests::warehouse::Warehouse;

use crate::{Length, print};

const TABLE: &str = "db.commits";

/// Appends at each of which a line is printed.
const MARKS: [i64; 6] = [10, 100, 500, 1_000, 2_500, 5_000];

/// Commits around a mark that are averaged.
const WINDOW: i64 = 10;

pub(crate) async fn run(length: Length) -> Result<()> {
    let last = if length == Length::Short { 1_000 } else { 5_000 };
    let warehouse = Warehouse::new("bench-commits")?;
    let opened = warehouse.create().await?;
    create(opened.catalog.as_ref(), TABLE).await?;
    let handle = TableHandle::open(opened.catalog, opened.stores, parse_table_ident(TABLE)?, "main").await?;
    let appender = Appender::new(handle, "bench")?;
    print(format_args!(
        "commits: one small file each, retention of firn's tables, expiry as a writer does it"
    ))?;
    let mut times: Vec<Duration> = Vec::new();
    for offset in 0..last + WINDOW {
        let flush = appender.flush(offset..offset + 1).await?;
        let began = Instant::now();
        appender.handle.append(flush).await?;
        times.push(began.elapsed());
        if offset % 100 == 99 {
            let schedule = ExpireOptions { max_snapshots: Some(100), ..ExpireOptions::default() };
            appender.handle.expire(&schedule).await?;
        }
        if MARKS.contains(&(offset + 1 - WINDOW)) {
            report(&appender, offset + 1 - WINDOW, &times).await?;
        }
    }
    Ok(())
}

/// The median of the commits after a mark, and what the last one wrote.
async fn report(appender: &Appender, mark: i64, times: &[Duration]) -> Result<()> {
    let mut window = times[usize::try_from(mark)?..].to_vec();
    window.sort();
    let median = window[window.len() / 2];
    let table = appender.handle.table();
    let metadata = table.metadata();
    let head = metadata.current_snapshot().context("a snapshot")?;
    let stores = appender.handle.stores();
    let metadata_bytes = stores.read(table.metadata_location_result()?).await?.len();
    let list_bytes = stores.read(head.manifest_list()).await?.len();
    let manifests = firn_table::layout::manifests(&table, head.snapshot_id()).await?;
    let own = manifests.iter().filter(|manifest| manifest.added_snapshot_id == head.snapshot_id());
    let manifest_bytes: i64 = own.map(|manifest| manifest.manifest_length).sum();
    print(format_args!(
        "  at {mark:>5} appends: {:6.2} ms a commit; it writes {:.1} KB (metadata {:.1}, list {:.1}, manifests {:.1}); \
         {} snapshots, {} manifests",
        median.as_secs_f64() * 1e3,
        (metadata_bytes + list_bytes) as f64 / 1e3 + manifest_bytes as f64 / 1e3,
        metadata_bytes as f64 / 1e3,
        list_bytes as f64 / 1e3,
        manifest_bytes as f64 / 1e3,
        metadata.snapshots().len(),
        manifests.len(),
    ))
}
