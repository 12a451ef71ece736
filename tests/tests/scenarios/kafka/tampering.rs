//! What others do to a table behind a writer's back: drop it, roll it back, replace it, remove its ledger.

use anyhow::Result;
use firn_tests::checks::After;

use crate::stream::{LIMIT, Stream, TABLE, said};
use crate::tables;

/// Three commits of 100 events each, made by three runs; the writer is down.
async fn three_commits(test: &str) -> Result<Stream> {
    let stream = Stream::new(test, 1).await?;
    for first in [0, 100, 200] {
        stream.produce(first..first + 100)?;
        stream.write(&[]).await?.success()?;
    }
    Ok(stream)
}

/// Rolls back to the first commit of the three.
async fn roll_back_two(stream: &Stream) -> Result<()> {
    let ancestry = tables::ancestry(&stream.warehouse, TABLE).await?;
    tables::roll_back(&stream.warehouse, TABLE, ancestry[ancestry.len() - 1]).await
}

/// K17, while the writer is down.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn after_a_rollback_the_writer_stops_and_names_what_left_the_table() -> Result<()> {
    let stream = three_commits("rollback-stop").await?;
    roll_back_two(&stream).await?;
    stream.produce(300..310)?;
    said(&stream.write(&[]).await?, 7, &["100", "300", "--after-rollback"]);
    stream.holds(0..100, After::Fault).await
}

/// K17.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn replay_brings_back_once_what_a_rollback_removed() -> Result<()> {
    let stream = three_commits("rollback-replay").await?;
    roll_back_two(&stream).await?;
    stream.produce(300..310)?;
    stream.write(&["--after-rollback", "replay"]).await?.success()?;
    stream.holds(0..310, After::Fault).await?;
    stream.write(&["--after-rollback", "replay"]).await?.success()?;
    stream.holds(0..310, After::Fault).await
}

/// K17.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn keep_goes_on_and_leaves_out_what_a_rollback_removed() -> Result<()> {
    let stream = three_commits("rollback-keep").await?;
    roll_back_two(&stream).await?;
    stream.produce(300..310)?;
    stream.write(&["--after-rollback", "keep"]).await?.success()?;
    let (table, stores) = stream.warehouse.table(TABLE).await?;
    let ids: Vec<i64> = firn_tests::rows::ids(&table, &stores).await?.into_keys().collect();
    assert_eq!(ids, (0..100).chain(300..310).collect::<Vec<i64>>());
    stream.warehouse.check(TABLE, After::Fault).await
}

/// K17, while it runs.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_rollback_under_a_running_writer_stops_it() -> Result<()> {
    let stream = three_commits("rollback-running").await?;
    let writer = stream.writer(&[], "writer.log")?;
    stream.produce(300..310)?;
    stream.wait_for_offsets(310).await?;
    roll_back_two(&stream).await?;
    stream.produce(310..320)?;
    said(&writer.wait(LIMIT).await?, 7, &["--after-rollback"]);
    stream.holds(0..100, After::Fault).await
}

/// K18.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_replaced_table_stops_the_writer_and_replay_fills_it_again() -> Result<()> {
    let stream = three_commits("replaced").await?;
    tables::replace_table(&stream.warehouse, TABLE).await?;
    stream.produce(300..310)?;
    said(&stream.write(&[]).await?, 7, &["--after-rollback"]);
    stream.write(&["--after-rollback", "replay"]).await?.success()?;
    stream.holds(0..310, After::Fault).await
}

/// K19.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_ledger_that_was_removed_stops_the_writer_before_a_row_is_doubled() -> Result<()> {
    let stream = three_commits("unset").await?;
    tables::unset(&stream.warehouse, TABLE, "firn.cursor.firn").await?;
    stream.produce(300..310)?;
    said(&stream.write(&[]).await?, 7, &["firn.cursor.firn", "offsets"]);
    stream.holds(0..300, After::Fault).await
}

/// K15.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_table_that_is_dropped_stops_the_running_writer() -> Result<()> {
    let stream = three_commits("dropped").await?;
    let writer = stream.writer(&[], "writer.log")?;
    stream.produce(300..310)?;
    stream.wait_for_offsets(310).await?;
    let committed = stream.cluster.committed(stream.group(), &stream.topic, 0)?;
    tables::drop_table(&stream.warehouse, TABLE).await?;
    stream.produce(310..320)?;
    said(&writer.wait(LIMIT).await?, 3, &["db.events"]);
    let after = stream.cluster.committed(stream.group(), &stream.topic, 0)?;
    assert!(committed <= after && after <= Some(310), "nothing is acknowledged: {committed:?} {after:?}");
    Ok(())
}

/// K15.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_table_that_is_dropped_and_created_again_stops_the_running_writer() -> Result<()> {
    let stream = three_commits("recreated").await?;
    let writer = stream.writer(&[], "writer.log")?;
    stream.produce(300..310)?;
    stream.wait_for_offsets(310).await?;
    let opened = stream.warehouse.open().await?;
    let ident = firn_table::catalog::parse_table_ident(TABLE)?;
    let schema = stream.warehouse.table(TABLE).await?.0.metadata().current_schema().as_ref().clone();
    tables::drop_table(&stream.warehouse, TABLE).await?;
    let creation = iceberg::TableCreation::builder().name(ident.name().to_owned()).schema(schema).build();
    iceberg::Catalog::create_table(opened.catalog.as_ref(), ident.namespace(), creation).await?;
    stream.produce(310..320)?;
    said(&writer.wait(LIMIT).await?, 7, &["uuid"]);
    let (table, _) = stream.warehouse.table(TABLE).await?;
    assert!(table.metadata().current_snapshot().is_none(), "the new table is as it was");
    Ok(())
}

/// The way out of every stop: cursors are set by hand.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn offsets_that_are_set_by_hand_are_where_the_writer_goes_on() -> Result<()> {
    let stream = three_commits("offsets-set").await?;
    roll_back_two(&stream).await?;
    let offset = format!("{}:0=100", stream.topic);
    stream.warehouse.run(&["offsets", "set", TABLE, "--cursor", &offset])?.success()?;
    stream.write(&[]).await?.success()?;
    stream.holds(0..300, After::Fault).await
}
