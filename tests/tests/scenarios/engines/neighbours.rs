//! Other engines at work on the same tables.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use firn_tests::checks::After;
use firn_tests::readers::{Filter, Question, agree};
use firn_tests::rows;
use firn_tests::warehouse::Warehouse;

use super::{neighbour, ran};
use crate::stream::{LIMIT, Stream, TABLE};

/// PyIceberg appends and reads through the same SQLite file while the writer and the compactor run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Kafka and Python: tests/run engines"]
async fn another_engine_appends_and_reads_while_writer_and_compactor_run() -> Result<()> {
    const THEIRS: u64 = 1_000_000;
    let stream = Stream::new("neighbour", 2).await?;
    stream.produce(0..100)?;
    let writer = stream.writer(&[], "writer.log")?;
    stream.wait_for_offsets(100).await?;
    let mut program = neighbour("append", &stream.warehouse, TABLE, &[THEIRS, 25, 40])?;
    let child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let theirs = tokio::task::spawn_blocking(move || child.wait_with_output());
    let done = AtomicBool::new(false);
    let compacting = async {
        let mut compactions = 0;
        while !done.load(Ordering::Relaxed) {
            let run = ["compact", TABLE, "--target-file-size", "1 MiB", "--option", "min-input-files=3"];
            let log = format!("compact-{compactions}.log");
            let ended = stream.warehouse.start(&run, &log)?.wait(LIMIT).await?;
            ensure!(matches!(ended.code, Some(0 | 5 | 6)), "compact: {ended:?}");
            compactions += 1;
        }
        Ok(compactions)
    };
    let producing = async {
        let mut produced = 100;
        while !theirs.is_finished() {
            stream.produce(produced..produced + 50)?;
            produced += 50;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        done.store(true, Ordering::Relaxed);
        anyhow::Ok(produced)
    };
    let (produced, compactions) = tokio::join!(producing, compacting);
    let (produced, compactions) = (produced?, compactions?);
    let output = theirs.await??;
    ensure!(output.status.success(), "PyIceberg failed: {}", String::from_utf8_lossy(&output.stderr));
    println!(
        "{produced} events, {compactions} compactions, {}",
        String::from_utf8_lossy(&output.stdout).trim()
    );
    stream.wait_for_offsets(i64::try_from(produced)?).await?;
    writer.stop(LIMIT).await?;

    let (table, stores) = stream.warehouse.table(TABLE).await?;
    let ids = rows::ids(&table, &stores).await?;
    let expected = (0..produced).chain(THEIRS..THEIRS + 1_000).map(|id| (i64::try_from(id).unwrap(), 1));
    assert_eq!(ids, expected.collect());
    // Their aborted attempts may have left files; nothing that is needed is gone.
    stream.warehouse.check(TABLE, After::Fault).await?;
    let filters = vec![Filter::new("id", "gteq", THEIRS, 1_000), Filter::new("id", "lt", 10, 10)];
    agree(&[Question { warehouse: &stream.warehouse, table: TABLE.to_owned(), filters }]).await.map(drop)
}

/// A table that PyIceberg made, partitioned, is planned, compacted and read by all.
#[tokio::test]
#[ignore = "needs Java and Python: tests/run engines"]
async fn a_table_of_another_engine_is_compacted() -> Result<()> {
    let warehouse = Warehouse::new("theirs")?;
    ran(neighbour("create", &warehouse, "db.theirs", &[6, 500])?)?;
    let question = || Question {
        warehouse: &warehouse,
        table: "db.theirs".to_owned(),
        filters: vec![
            Filter::new("user", "eq", "user-5", 31),
            Filter::is_null("ts", 273),
            Filter::new("id", "lt", 600, 600),
        ],
    };
    let before = agree(&[question()]).await?;
    let run = ["compact", "db.theirs", "--option", "min-input-files=2", "--require-work"];
    warehouse.run(&run)?.success()?;
    let after = agree(&[question()]).await?;
    assert_eq!(before[0].columns, after[0].columns);
    let (table, _) = warehouse.table("db.theirs").await?;
    let head = table.metadata().current_snapshot_id().context("a snapshot")?;
    let files = firn_table::layout::live_files(&table, head).await?;
    let partitions: std::collections::BTreeSet<_> = files.iter().map(|f| &f.partition_path).collect();
    assert_eq!(files.len(), partitions.len(), "one file is left of each partition");
    assert_eq!(warehouse.run(&run)?.code, Some(4), "a table that was just compacted has nothing to do");
    Ok(())
}

const R16_EVENTS: &str = r#"{"type":"struct","schema-id":0,"fields":[
  {"id":1,"name":"id","required":true,"type":"long"},
  {"id":2,"name":"small","required":false,"type":"int"},
  {"id":3,"name":"ts","required":false,"type":"timestamptz"},
  {"id":4,"name":"user","required":false,"type":"string"},
  {"id":5,"name":"note","required":false,"type":"string"}]}"#;

/// R16: columns were added, dropped, renamed, promoted and moved; files of all ages are compacted together.
#[tokio::test]
#[ignore = "needs Kafka, Java and Python: tests/run engines"]
async fn files_of_all_schemas_are_compacted_into_the_current_one() -> Result<()> {
    let stream = Stream::with_schema("evolved", R16_EVENTS).await?;
    for first in [0, 10, 20] {
        let old = |id: u64| {
            format!(r#"{{"id":{id},"small":{id},"ts":"2026-01-01T00:00:00Z","user":"u{id}","note":"n"}}"#)
        };
        stream.produce_values((first..first + 10).map(old))?;
        stream.write(&[]).await?.success()?;
    }
    let evolved = ran(neighbour("evolve", &stream.warehouse, TABLE, &[])?)?;
    assert_eq!(evolved["columns"][0], "ts");
    let new = |id: u64| format!(r#"{{"id":{id},"small":{},"who":"w{id}","extra":"e"}}"#, (1_u64 << 40) + id);
    stream.produce_values((30..40).map(new))?;
    stream.write(&[]).await?.success()?;
    let question = || Question {
        warehouse: &stream.warehouse,
        table: TABLE.to_owned(),
        filters: vec![
            Filter::new("small", "gt", 1_i64 << 40, 10),
            Filter::is_null("extra", 30),
            Filter::new("who", "eq", "u7", 1),
        ],
    };
    let before = agree(&[question()]).await?;
    let run = ["compact", TABLE, "--option", "min-input-files=2", "--require-work"];
    stream.warehouse.run(&run)?.success()?;
    let after = agree(&[question()]).await?;
    assert_eq!(before[0].columns, after[0].columns);
    stream.warehouse.check(TABLE, After::GracefulStop).await
}

/// M10: field ids that are not in column order (1, 3, 2).
#[tokio::test]
#[ignore = "needs Kafka, Java and Python: tests/run engines"]
async fn columns_whose_ids_are_out_of_order_hold_their_own_values() -> Result<()> {
    let stream = Stream::new("unordered", 1).await?;
    let made = ran(neighbour("unordered", &stream.warehouse, TABLE, &[])?)?;
    assert_eq!(made["ids"], serde_json::json!([1, 3, 2]));
    stream.produce_values([r#"{"a":"A","b":"B","x":"X"}"#])?;
    let arguments =
        ["write", TABLE, "--brokers", stream.cluster.bootstrap_servers(), "--topic", &stream.topic];
    stream.warehouse.run(&[&arguments[..], &["--until-end"]].concat())?.success()?;
    let filters =
        vec![Filter::new("a", "eq", "A", 1), Filter::new("b", "eq", "B", 1), Filter::new("x", "eq", "X", 1)];
    agree(&[Question { warehouse: &stream.warehouse, table: TABLE.to_owned(), filters }]).await.map(drop)
}
