//! Planning right after a compaction yields nothing, on random layouts and with real files.

use iceberg::spec::Transform;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::rewriting::assert_nothing_left;
use crate::support::{Lake, schema};

#[tokio::test]
async fn planning_after_a_compaction_of_a_random_layout_yields_nothing() {
    for seed in 1..=12 {
        compact_random_layout(seed).await;
    }
}

async fn compact_random_layout(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let lake = Lake::new().await;
    let partitions = random.random_range(1..4);
    let codec = ["zstd", "snappy", "uncompressed"][random.random_range(0..3)];
    let table = lake
        .create(
            schema(),
            &[("id", Transform::Bucket(partitions))],
            &[("write.parquet.compression-codec", codec)],
        )
        .await;
    for append in 0..random.random_range(2..20) {
        let rows = if random.random_range(0..6) == 0 { 12_000 } else { random.random_range(1..3000) };
        table.append_random(rows, append + 1).await;
    }
    let target = random.random_range(200_000_u64..800_000);
    let target = target.to_string();
    let min_input_files = random.random_range(2..7).to_string();
    let options = [("target-file-size-bytes", &*target), ("min-input-files", &*min_input_files)];
    let (rows, before) = (table.rows().await, table.sizes().await);

    let report = table.compact(&options).await;

    println!(
        "seed {seed}: {codec}, target {target}, {partitions} partitions: {before:?} became {:?}",
        table.sizes().await
    );
    assert_eq!(report.dropped, [], "seed {seed}");
    assert_eq!(report.groups_landed, report.groups_planned, "seed {seed}");
    assert_eq!(table.rows().await, rows, "seed {seed}");
    assert_nothing_left(&table, &options).await;
}
