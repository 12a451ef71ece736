//! Many partitions in little memory, and many commits.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use firn_tests::checks::After;

use crate::stream::{LIMIT, Stream, TABLE};

/// L1, smaller: 400 day partitions in one batch.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn many_partitions_in_one_batch_fit_a_small_memory() -> Result<()> {
    let stream = Stream::new("many-partitions", 1).await?;
    let day = |id: u64| chrono::DateTime::from_timestamp(i64::try_from(id % 400).unwrap_or(0) * 86_400, 0);
    let event = |id: u64| {
        let ts = day(id).unwrap_or_default().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        serde_json::json!({ "id": id, "ts": ts, "user": "u", "note": "x".repeat(500) }).to_string()
    };
    stream.produce_values((0..20_000).map(event))?;
    let writer = ["--partition-by", "day(ts)", "--memory", "64 MiB", "--flush-age", "5s"];
    stream.write(&writer).await?.success()?;
    stream.holds(0..20_000, After::GracefulStop).await?;
    let (table, _) = stream.warehouse.table(TABLE).await?;
    let head = table.metadata().current_snapshot_id().context("a snapshot")?;
    let files = firn_table::layout::live_files(&table, head).await?;
    let partitions: std::collections::BTreeSet<_> = files.iter().map(|f| f.partition_path.clone()).collect();
    assert_eq!(partitions.len(), 400);
    Ok(())
}

/// L5, smaller: the compactor is off, the writer expires, and the metadata stays as small as it was.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn metadata_stays_small_because_the_writer_expires() -> Result<()> {
    let stream = Stream::new("many-commits", 1).await?;
    let retention = "history.expire.max-snapshot-age-ms=2000,history.expire.min-snapshots-to-keep=1";
    let options = ["--set", "write.expire-every=1s", "--table-property", retention, "--flush-age", "50ms"];
    let writer = stream.writer(&options, "writer.log")?;
    // Longer than the snapshots may live, and often enough to show something.
    const COMMITS: usize = 80;
    let began = Instant::now();
    let mut produced = 0;
    let mut sizes = Vec::new();
    while sizes.len() < COMMITS || began.elapsed() < Duration::from_secs(8) {
        stream.produce(produced..produced + 20)?;
        produced += 20;
        stream.wait_for_offsets(i64::try_from(produced)?).await?;
        let (table, _) = stream.warehouse.table(TABLE).await?;
        sizes.push((table.metadata().snapshots().len(), table.metadata().metadata_log().len()));
    }
    writer.stop(LIMIT).await?;
    let (snapshots, former) = sizes.iter().fold((0, 0), |max, size| (max.0.max(size.0), max.1.max(size.1)));
    println!("{} commits: at most {snapshots} snapshots and {former} former metadata files", sizes.len());
    assert!(snapshots < sizes.len() * 2 / 3, "{snapshots} snapshots of {} commits", sizes.len());
    stream.holds(0..produced, After::GracefulStop).await
}
