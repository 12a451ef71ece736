//! Kills at random moments.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use firn_tests::checks::After;
use firn_tests::kafka::KafkaCluster;
use firn_tests::process::Running;
use firn_tests::{rows, scratch};
use iceberg::spec::Operation;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::stream::{LIMIT, Stream, TABLE};

const KILLS: usize = 30;
const PARTITIONS: i32 = 4;

/// Produces events in small batches until it is told to stop; the number of events is the result.
fn produce_in_background(topic: &str, stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<Result<u64>> {
    let (topic, stop) = (topic.to_owned(), Arc::clone(stop));
    std::thread::spawn(move || {
        let mut next = 0;
        while !stop.load(Ordering::Relaxed) {
            KafkaCluster::shared()?.produce(&topic, rows::events(next..next + 200, PARTITIONS))?;
            next += 200;
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(next)
    })
}

/// Compacts again and again; every third run is killed. Whatever is left is orphaned files, never a wrong row.
async fn compact_until(stream: &Stream, stop: &AtomicBool, seed: u64) -> Result<(u32, u32)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0xC0);
    let (mut done, mut killed) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let run = ["compact", TABLE, "--target-file-size", "4 MiB", "--option", "min-input-files=3"];
        let mut running = stream.warehouse.start(&run, &format!("compact-{}.log", done + killed))?;
        if random.random_ratio(1, 3) {
            tokio::time::sleep(Duration::from_millis(random.random_range(50..1_500))).await;
            // It may have come to its end by itself.
            running.ended()?;
            running.kill()?;
            killed += 1;
        } else {
            let ended = running.wait(LIMIT).await?;
            ensure!(matches!(ended.code, Some(0 | 5 | 6)), "compact: {ended:?}");
            done += 1;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok((done, killed))
}

/// Starts a writer and kills it, many times; every second one is a static member, which takes its place at once.
async fn kill_writers(stream: &Stream, seed: u64) -> Result<()> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for number in 0..KILLS {
        let options = ["--flush-age", "50ms", "--kafka-property", "group.instance.id=one"];
        let options = if random.random() { &options[..] } else { &options[..2] };
        let mut writer: Running = stream.writer(options, &format!("writer-{number}.log"))?;
        tokio::time::sleep(Duration::from_millis(random.random_range(300..4_000))).await;
        let ended = writer.ended()?;
        ensure!(ended.is_none(), "writer {number} stopped by itself: {}", writer.said()?);
        writer.kill()?;
    }
    Ok(())
}

/// Processes that have commits in the table.
async fn writers_that_committed(stream: &Stream) -> Result<usize> {
    let (table, _) = stream.warehouse.table(TABLE).await?;
    let snapshots = table.metadata().snapshots();
    let appends = snapshots.filter(|snapshot| snapshot.summary().operation == Operation::Append);
    let commit_ids =
        appends.filter_map(|snapshot| snapshot.summary().additional_properties.get("firn.commit-id"));
    // A commit id is the process's own UUID and a number.
    let processes: BTreeSet<&str> = commit_ids.filter_map(|id| Some(id.rsplit_once('-')?.0)).collect();
    Ok(processes.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_writer_killed_thirty_times_beside_a_compactor_writes_each_message_once() -> Result<()> {
    let seed = scratch::seed()?;
    println!("FIRN_TEST_SEED={seed}");
    let stream = Stream::new("kills", PARTITIONS).await?;
    // The table is there before the compactor looks for it.
    stream.write(&[]).await?.success()?;
    let (stop_producing, stop_compacting) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    let producer = produce_in_background(&stream.topic, &stop_producing);
    let killing = async {
        let result = kill_writers(&stream, seed).await;
        stop_producing.store(true, Ordering::Relaxed);
        stop_compacting.store(true, Ordering::Relaxed);
        result
    };
    let (killed, compacted) = tokio::join!(killing, compact_until(&stream, &stop_compacting, seed));
    let produced = producer.join().map_err(|_| anyhow::anyhow!("the producer panicked"))??;
    killed.with_context(|| format!("seed {seed}"))?;
    let (compactions, killed_compactions) = compacted.with_context(|| format!("seed {seed}"))?;

    // A member that was killed holds its partitions until its session ends: a writer ends with those that it was given.
    let all_there = || async {
        stream.write(&[]).await?.success()?;
        let read: i64 = stream.cursors().await?.values().sum();
        Ok((read >= produced as i64).then_some(()))
    };
    scratch::eventually("all partitions to be read", Duration::from_secs(90), all_there).await?;
    let writers = writers_that_committed(&stream).await?;
    println!(
        "{produced} events; {writers} of {KILLS} writers committed before they were killed; {compactions} compactions, \
         {killed_compactions} more were killed"
    );
    ensure!(writers > KILLS / 4, "seed {seed}: too few writers came as far as a commit to show anything");
    stream.holds(0..produced, After::Fault).await.with_context(|| format!("seed {seed}"))?;
    stream.holds_each_offset_once().await.with_context(|| format!("seed {seed}"))?;
    let verified = stream.warehouse.run(&["verify", TABLE])?;
    assert_eq!(verified.code, Some(0), "seed {seed}: {verified:?}");
    Ok(())
}
