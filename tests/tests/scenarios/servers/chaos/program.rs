//! The program behind the proxy, on a real broker.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result};
use firn_table::catalog::CatalogOptions;
use firn_tests::chaos::Chaos;
use firn_tests::checks::After;
use firn_tests::kafka::KafkaCluster;
use firn_tests::server::Kind;
use firn_tests::stream::{LIMIT, Stream, said};
use firn_tests::warehouse::Warehouse;
use iceberg::spec::Operation;
use uuid::Uuid;

use super::fixture::COMMITS;

/// A stream into the REST catalog through the proxy. The program waits 1.5 s for each answer.
async fn stream(test: &str, partitions: i32, rules: &[&str]) -> Result<(Stream, Chaos)> {
    let uri = Kind::Rest.shared()?;
    let properties = HashMap::from([("rest.client.socket-timeout-ms".to_owned(), "1500".to_owned())]);
    let direct =
        Warehouse::on(test, CatalogOptions { uri: uri.clone(), properties, ..CatalogOptions::default() })?;
    let chaos = Chaos::before(&uri, direct.folder(), "chaos", rules).await?;
    let through = direct.by(chaos.address());
    let mut stream = Stream::between(KafkaCluster::shared()?, through, test, partitions).await?;
    stream.table = format!("{}_{}.events", test.replace('-', "_"), &Uuid::new_v4().simple().to_string()[..8]);
    Ok((stream, chaos))
}

/// Produces until `events` are there, a few at a time.
async fn produce_slowly(stream: &Stream, events: u64) -> Result<()> {
    for at in (0..events).step_by(100) {
        stream.produce(at..at + 100)?;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    Ok(())
}

/// K1, K21, with the program: replies are lost in every way there is while it streams and compacts.
#[tokio::test]
#[ignore = "needs Kafka and a REST catalog: tests/run servers"]
async fn a_stream_and_compactions_behind_a_catalog_whose_replies_get_lost_write_each_message_once()
-> Result<()> {
    let faults = ["apply-then 500", "apply-then 504", "apply-then reset", "duplicate", "late 100ms", "reset"];
    let rules: Vec<String> = faults.iter().map(|fault| format!("{COMMITS} : {fault} every 7")).collect();
    let (stream, chaos) =
        stream("lost-in-program", 2, &rules.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    stream.produce(0..100)?;
    let writer = stream.writer(&["--flush-age", "50ms"], "writer.log")?;
    stream.wait_for_offsets(100).await?;
    let produced = 4_000;
    let compacting = async {
        for round in 0..3 {
            let run =
                ["compact", &stream.table, "--target-file-size", "4 MiB", "--option", "min-input-files=3"];
            let log = format!("compact-{round}.log");
            let ended = stream.warehouse.start(&run, &log)?.wait(LIMIT).await?;
            anyhow::ensure!(matches!(ended.code, Some(0 | 5 | 6)), "compact: {ended:?}");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        Ok(())
    };
    let (produced_all, compacted) = tokio::join!(produce_slowly(&stream, produced), compacting);
    produced_all.and(compacted)?;
    // The first hundred were produced twice: offsets tell them apart.
    stream.wait_for_offsets(i64::try_from(produced)? + 100).await?;
    writer.stop(LIMIT).await?;
    stream.holds_each_offset_once().await?;
    stream.warehouse.check(&stream.table, After::Fault).await?;
    one_snapshot_per_flush(&stream).await?;
    let counts = chaos.stop().await?;
    println!("{counts:?}");
    assert!(counts.iter().map(|rule| rule.acted).sum::<u64>() >= 6, "{counts:?}");
    Ok(())
}

/// Commit ids of appends differ.
async fn one_snapshot_per_flush(stream: &Stream) -> Result<()> {
    let (table, _) = stream.warehouse.table(&stream.table).await?;
    let appends = table.metadata().snapshots().filter(|one| one.summary().operation == Operation::Append);
    let ids: Vec<&String> =
        appends.filter_map(|one| one.summary().additional_properties.get("firn.commit-id")).collect();
    let different: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(different.len(), ids.len(), "a flush landed twice");
    Ok(())
}

/// K2 with the program: a request is held back, its writer is killed, and the next one writes.
#[tokio::test]
#[ignore = "needs Kafka and a REST catalog: tests/run servers"]
async fn a_commit_held_back_while_its_writer_was_killed_and_restarted_is_there_once() -> Result<()> {
    let rule = format!("{COMMITS} : delay 3s once after 1");
    let (stream, chaos) = stream("held-program", 1, &[&rule]).await?;
    stream.produce(0..100)?;
    stream.write(&[]).await?.success()?;
    let writer = stream.writer(&[], "killed.log")?;
    stream.produce(100..200)?;
    // The commit is on its way for some of the three seconds.
    tokio::time::sleep(Duration::from_millis(2_000)).await;
    writer.kill()?;
    let writer = stream.writer(&[], "successor.log")?;
    stream.produce(200..300)?;
    stream.wait_for_offsets(300).await?;
    chaos.wait_for_touched(1).await?;
    stream.produce(300..400)?;
    stream.wait_for_offsets(400).await?;
    writer.stop(LIMIT).await?;
    stream.holds(0..400, After::Fault).await?;
    stream.holds_each_offset_once().await
}

/// K10, K11 with the program: it waits, catches up with larger files, and loses nothing.
#[tokio::test]
#[ignore = "needs Kafka and a REST catalog: tests/run servers"]
async fn an_outage_of_the_catalog_makes_the_next_files_larger_and_loses_nothing() -> Result<()> {
    for fault in ["status 429 retry-after 1s", "hang"] {
        let rule = format!("{COMMITS} : {fault} after 5 first 3");
        let (stream, _chaos) = stream("outage", 1, &[&rule]).await?;
        stream.produce(0..100)?;
        let writer = stream.writer(&["--flush-age", "100ms"], "writer.log")?;
        stream.wait_for_offsets(100).await?;
        produce_slowly(&stream, 1_500).await?;
        // The first hundred were produced twice: offsets tell them apart.
        stream.wait_for_offsets(1_600).await.with_context(|| fault.to_owned())?;
        writer.stop(LIMIT).await?;
        stream.holds_each_offset_once().await.with_context(|| fault.to_owned())?;
        stream.warehouse.check(&stream.table, After::Fault).await?;
        let largest = largest_append(&stream).await?;
        // A commit holds one hundred, or two: they come more slowly than they are flushed, but for about three seconds
        // there is no commit.
        assert!(largest >= 300, "{fault}: the largest commit has {largest} rows");
    }
    Ok(())
}

async fn largest_append(stream: &Stream) -> Result<u64> {
    let (table, _) = stream.warehouse.table(&stream.table).await?;
    let rows = table.metadata().snapshots().filter_map(|one| {
        one.summary().additional_properties.get("added-records").and_then(|rows| rows.parse().ok())
    });
    rows.max().context("appends")
}

/// K19 with the program.
#[tokio::test]
#[ignore = "needs Kafka and a REST catalog: tests/run servers"]
async fn the_program_stops_where_the_catalog_drops_its_properties_and_the_check_tells_so_before() -> Result<()>
{
    // Neither the check's own property nor the ledger is kept.
    let rule = "POST /v1/**/tables/* : drop-properties firn.";
    let (stream, _chaos) = stream("drops-program", 1, &[rule]).await?;
    stream.produce(0..100)?;
    said(&stream.write(&[]).await?, 7, &["propert"]);
    let (table, stores) = stream.warehouse.table(&stream.table).await?;
    let ids = firn_tests::rows::ids(&table, &stores).await?;
    assert!(ids.values().all(|count| *count == 1), "{ids:?}");
    let brokers = stream.cluster.bootstrap_servers();
    let check = ["check", &stream.table, "--connect", "--brokers", brokers, "--topic", &stream.topic];
    let checked = stream.warehouse.run(&check)?;
    assert_ne!(checked.code, Some(0), "{checked:?}");
    assert!(
        format!("{}{}", checked.stdout, checked.stderr).contains("dropped a table property"),
        "{checked:?}"
    );
    Ok(())
}
