//! Files through the proxy: uploads and reads of an S3 server.

use anyhow::{Context, Result};
use firn_tests::checks::After;

use super::fixture::Behind;

/// What stores and networks do to one request in some. Each is tried again by what sends it.
const FAULTS: [&str; 8] = [
    "slowdown",
    "status 500",
    "reset",
    "apply-then 500",
    "apply-then reset",
    "truncate 50",
    "duplicate",
    "delay 100ms",
];

#[tokio::test]
#[ignore = "needs an S3 server: tests/run servers"]
async fn a_store_that_fails_now_and_then_costs_time_and_no_row() -> Result<()> {
    for fault in FAULTS {
        a_stream_and_a_compaction(fault).await.with_context(|| fault.to_owned())?;
    }
    Ok(())
}

async fn a_stream_and_a_compaction(fault: &str) -> Result<()> {
    let behind = Behind::store("store", &[&format!("PUT|GET /firn/** : {fault} every 4")]).await?;
    let process = behind.process().await?;
    for at in 0..6 {
        process.append(at * 10..at * 10 + 10).await?;
    }
    let report = behind.compact(&process).await?;
    assert_eq!((report.groups_landed, report.dropped.len()), (1, 0), "{report:?}");
    process.append(60..70).await?;
    behind.holds(0..70, 7, After::Fault).await?;
    let touched = behind.chaos.touched()?;
    assert!(touched.len() >= 5, "{touched:?}");
    Ok(())
}
