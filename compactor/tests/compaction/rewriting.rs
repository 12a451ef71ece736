//! What comes out of a rewrite.

use std::sync::Arc;

use firn_compactor::{CompactOptions, Event, Observer, Verify, compact, plan};
use firn_policies::Sizes;
use iceberg::spec::{NestedField, Operation, PrimitiveType, Schema, Type};
use std::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::support::{Lake, TestTable, plan_options, schema};

/// Keeps what a run tells.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<Event>>);

impl Observer for Recorder {
    fn observe(&self, event: &Event) {
        self.0.lock().expect("not poisoned").push(event.clone());
    }
}

#[tokio::test]
async fn small_files_become_one_with_the_same_rows() {
    let lake = Lake::new().await;
    let table = lake.create(schema(), &[], &[]).await;
    for seed in 1..=12 {
        table.append_random(100, seed).await;
    }
    let before = table.rows().await;
    assert_eq!(before.len(), 1200);

    let report = table.compact(&[]).await;

    assert_eq!((report.groups_planned, report.groups_landed), (1, 1));
    assert_eq!((report.files_in, report.files_out, report.rows), (12, 1, 1200));
    assert_eq!(report.snapshot_ids.len(), 1);
    assert_eq!(table.sizes().await, [report.bytes_out]);
    assert_eq!(table.rows().await, before);
    let head = table.table().await;
    let snapshot = head.metadata().current_snapshot().expect("a snapshot");
    assert_eq!(snapshot.summary().operation, Operation::Replace);
    assert_eq!(
        snapshot.summary().additional_properties.get("firn.verified").map(String::as_str),
        Some("full")
    );
    let again = table.compact(&[]).await;
    assert_eq!(again.groups_planned, 0);
    assert_eq!(again.snapshot_ids, [0_i64; 0]);
}

#[tokio::test]
async fn an_empty_table_has_nothing_to_do() {
    let lake = Lake::new().await;
    let table = lake.create(schema(), &[], &[]).await;
    let report = table.compact(&[]).await;
    assert_eq!((report.groups_planned, report.planned_on), (0, None));
}

#[tokio::test]
async fn outputs_are_cut_at_the_target_size() {
    let lake = Lake::new().await;
    let table = lake.create(schema(), &[], &[("write.target-file-size-bytes", "1000000")]).await;
    for seed in 1..=20 {
        table.append_random(2000, seed).await;
    }
    let before = table.rows().await;
    let report = table.compact(&[("max-file-group-size-bytes", "100000000")]).await;
    let sizes = Sizes::of_target(1_000_000);
    let made = table.sizes().await;
    assert_eq!(report.files_out as usize, made.len());
    assert!(report.files_out <= sizes.outputs(report.bytes_in), "{made:?} from {} bytes", report.bytes_in);
    // What is left after the full files may be smaller.
    assert!(made.iter().filter(|bytes| **bytes < 850_000).count() <= 1, "{made:?}");
    assert!(made.iter().all(|bytes| (500_000..=1_610_000).contains(bytes)), "{made:?}");
    assert_eq!(table.rows().await, before);
    assert_nothing_left(&table, &[]).await;
}

/// A sum just below the target, of many string columns: writers that count what they buffer would cut it up.
#[tokio::test]
async fn a_hundred_string_columns_below_the_target_make_one_file() {
    let lake = Lake::new().await;
    let fields = (1..=100).map(|id| {
        Arc::new(NestedField::required(id, format!("c{id}"), Type::Primitive(PrimitiveType::String)))
    });
    let schema = Schema::builder().with_fields(fields).build().expect("a schema");
    let table = lake.create(schema, &[], &[("write.parquet.compression-codec", "zstd")]).await;
    for seed in 1..=10 {
        table.append_random(400, seed).await;
    }
    let sum: u64 = table.sizes().await.iter().sum();
    let target = sum + sum / 50;
    let report = table.compact(&[("target-file-size-bytes", &target.to_string())]).await;
    assert_eq!(report.files_out, 1);
    assert!(report.bytes_out * 100 >= target * 75, "{} bytes of a target of {target}", report.bytes_out);

    // The same rows with a fourth of that as target: as many files as planned, of the planned size.
    let quarter = report.bytes_out / 4;
    let report =
        table.compact(&[("target-file-size-bytes", &quarter.to_string()), ("rewrite-all", "true")]).await;
    let made = table.sizes().await;
    assert!((3..=4).contains(&report.files_out), "{made:?}");
    for bytes in made.iter().skip(1) {
        let [low, high] = [quarter * 85 / 100, quarter * 161 / 100];
        assert!((low..=high).contains(bytes), "{made:?} with a target of {quarter}");
    }
}

#[tokio::test]
async fn four_files_a_little_above_the_target_become_one_and_stay() {
    let lake = Lake::new().await;
    let table = lake.create(schema(), &[], &[]).await;
    for seed in 1..=4 {
        table.append_random(3000, seed).await;
    }
    let sum: u64 = table.sizes().await.iter().sum();
    let target = (sum * 512 / 580).to_string();
    let options = [("target-file-size-bytes", &*target)];
    let report = table.compact(&options).await;
    assert_eq!((report.files_in, report.files_out), (4, 1));
    assert_nothing_left(&table, &options).await;
}

#[tokio::test]
async fn a_large_file_and_many_small_ones_converge() {
    let lake = Lake::new().await;
    let table = lake.create(schema(), &[], &[]).await;
    table.append_random(14_000, 1).await;
    for seed in 2..=40 {
        table.append_random(100, seed).await;
    }
    let large = *table.sizes().await.last().expect("files");
    let target = (large * 512 / 700).to_string();
    let options = [("target-file-size-bytes", &*target)];
    let before = table.rows().await;
    let report = table.compact(&options).await;
    assert_eq!((report.files_in, report.files_out), (39, 1));
    assert_eq!(table.sizes().await.last(), Some(&large));
    assert_eq!(table.rows().await, before);
    assert_nothing_left(&table, &options).await;
}

#[tokio::test]
async fn metadata_alone_can_verify() {
    let lake = Lake::new().await;
    let table = lake.create(schema(), &[], &[]).await;
    for seed in 1..=6 {
        table.append_random(50, seed).await;
    }
    let before = table.rows().await;
    let options = CompactOptions { verify: Verify::Metadata, ..CompactOptions::default() };
    let recorder = Arc::new(Recorder::default());
    let report = compact(&table.handle, &options, recorder.clone(), CancellationToken::new()).await;
    let report = report.expect("a compaction");
    assert_eq!(report.groups_landed, 1);
    assert_eq!(table.rows().await, before);
    let head = table.table().await;
    let summary = &head.metadata().current_snapshot().expect("a snapshot").summary().additional_properties;
    assert_eq!(summary.get("firn.verified").map(String::as_str), Some("metadata"));
    let told = recorder.0.lock().expect("not poisoned").clone();
    let read: u64 = told
        .iter()
        .map(|event| match event {
            Event::Progress { bytes_read, .. } => *bytes_read,
            _ => 0,
        })
        .sum();
    assert_eq!(read, report.bytes_in);
    assert_eq!(
        told.first(),
        Some(&Event::Planned { groups: 1, files: 6, bytes: report.bytes_in, rows: 300 })
    );
    let committed = Event::Committed { snapshot_id: report.snapshot_ids[0], groups: vec![0], conflicts: 0 };
    assert_eq!(told.last(), Some(&committed));
}

#[tokio::test]
async fn a_stopped_run_leaves_the_table_and_no_file() {
    let lake = Lake::new().await;
    let table = lake.create(schema(), &[], &[]).await;
    for seed in 1..=6 {
        table.append_random(50, seed).await;
    }
    let files = table.files();
    let stop = CancellationToken::new();
    stop.cancel();
    let options = CompactOptions::default();
    let report =
        compact(&table.handle, &options, Arc::new(Recorder::default()), stop).await.expect("a report");
    assert!(report.stopped);
    assert_eq!((report.groups_planned, report.groups_landed), (1, 0));
    assert_eq!(table.files(), files);
}

#[tokio::test]
async fn a_file_that_is_gone_drops_its_group_and_leaves_no_output() {
    let lake = Lake::new().await;
    let table = lake.create(schema(), &[], &[]).await;
    for seed in 1..=6 {
        table.append_random(50, seed).await;
    }
    let victim = table.data_files().pop_first().expect("a file");
    std::fs::remove_file(&victim).expect("removed");
    let files = table.files();
    let report = table.compact(&[]).await;
    assert_eq!((report.groups_landed, report.dropped.len()), (0, 1));
    let name = victim.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(report.dropped[0].reason.contains(&name), "{}", report.dropped[0].reason);
    assert_eq!(table.files(), files);
}

#[tokio::test]
async fn too_little_memory_drops_the_group_and_says_so() {
    let lake = Lake::new().await;
    let table = lake.create(schema(), &[], &[]).await;
    for seed in 1..=6 {
        table.append_random(500, seed).await;
    }
    let files = table.files();
    let mut options = CompactOptions::default();
    options.resources.memory_bytes = 1000;
    let report =
        compact(&table.handle, &options, Arc::new(Recorder::default()), CancellationToken::new()).await;
    let report = report.expect("a report");
    assert_eq!(report.dropped.len(), 1);
    assert!(report.dropped[0].reason.contains("memory"), "{}", report.dropped[0].reason);
    assert_eq!(table.files(), files);
}

/// Planning right after a compaction yields nothing.
pub(crate) async fn assert_nothing_left(table: &TestTable, options: &[(&str, &str)]) {
    let plan = plan(&table.table().await, &plan_options(options)).await.expect("a plan");
    let left: Vec<_> =
        plan.groups.iter().map(|group| (&group.partition, group.files.len(), group.bytes)).collect();
    assert!(plan.is_empty(), "{left:?}");
}
