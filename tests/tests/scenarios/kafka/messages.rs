//! What becomes of a message's values, from the topic to the table.

use anyhow::{Context, Result};
use firn_table::ledger::Ledger;
use firn_tests::checks::After;
use firn_tests::{canonical, rows};

use crate::stream::{Stream, TABLE, said};

const TYPES: &str = r#"{"type":"struct","schema-id":0,"fields":[
  {"id":1,"name":"n","required":false,"type":"int"},
  {"id":2,"name":"big","required":false,"type":"long"},
  {"id":3,"name":"f","required":false,"type":"float"},
  {"id":4,"name":"d","required":false,"type":"double"},
  {"id":5,"name":"amount","required":false,"type":"decimal(10, 2)"},
  {"id":6,"name":"ts","required":false,"type":"timestamp"},
  {"id":7,"name":"tz","required":false,"type":"timestamptz"},
  {"id":8,"name":"ok","required":false,"type":"boolean"},
  {"id":9,"name":"s","required":false,"type":"string"}]}"#;

/// The values of a column as canonical text, sorted, nulls left out.
async fn values(stream: &Stream, column: &str) -> Result<Vec<String>> {
    let (table, stores) = stream.warehouse.table(TABLE).await?;
    let schema = table.metadata().current_schema();
    let kind = schema.field_by_name(column).context("the column")?.field_type.as_ref().clone();
    let mut found = Vec::new();
    for batch in rows::batches(&table, &stores).await? {
        let array = batch.column_by_name(column).context("the column")?;
        for row in 0..batch.num_rows() {
            found.extend(canonical::text(&kind, array, row)?);
        }
    }
    found.sort();
    Ok(found)
}

/// Messages that the ledger counts as rejected.
async fn rejected(stream: &Stream) -> Result<u64> {
    let (table, _) = stream.warehouse.table(TABLE).await?;
    let ledgers = Ledger::read_all(table.metadata().properties())?;
    Ok(ledgers.iter().flat_map(|(_, _, ledger)| ledger.cursors.values()).map(|cursor| cursor.rejected).sum())
}

/// M1, M2, M3, M4: what does not fit is rejected and counted; what fits is exact.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn values_that_do_not_fit_are_rejected_and_those_that_fit_are_exact() -> Result<()> {
    let bad = [
        r#"{"n":4294967297}"#,
        r#"{"big":2.9}"#,
        r#"{"f":1e300}"#,
        r#"{"d":NaN}"#,
        r#"{"amount":123456789012345.675}"#,
        r#"{"amount":"99999999999.999"}"#,
        r#"{"amount":1.005}"#,
        r#"{"ok":"yes"}"#,
        r#"{"ts":1767323045}"#,
        r#"{"tz":"2026-01-02T03:04:05"}"#,
        r#"{"ts":"2026-01-02T23:59:60"}"#,
    ];
    let good = [
        r#"{"n":2147483647,"big":9007199254740993,"f":1.5,"d":1e300}"#,
        r#"{"amount":12345678.91}"#,
        r#"{"amount":-0.05}"#,
        r#"{"ts":"2026-01-02T03:04:05.123456"}"#,
        r#"{"tz":"2026-01-02T03:04:05.123456Z"}"#,
        r#"{"tz":"2026-01-02T05:04:05.123456+02:00"}"#,
        r#"{"ok":true}"#,
    ];
    let stream = Stream::with_schema("types", TYPES).await?;
    stream.produce_values(bad.into_iter().chain(good))?;
    stream.write(&["--on-bad-message", "skip"]).await?.success()?;

    assert_eq!(rejected(&stream).await?, bad.len() as u64);
    assert_eq!(values(&stream, "n").await?, ["2147483647"]);
    assert_eq!(values(&stream, "big").await?, ["9007199254740993"]);
    assert_eq!(values(&stream, "amount").await?, ["-0.05", "12345678.91"]);
    assert_eq!(values(&stream, "ts").await?, ["1767323045123456"]);
    assert_eq!(values(&stream, "tz").await?, ["1767323045123456", "1767323045123456"]);
    assert_eq!(values(&stream, "ok").await?, ["true"]);
    stream.warehouse.check(TABLE, After::GracefulStop).await
}

/// Without `skip` the writer stops at the first such message, commits what came before it, and names it.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_bad_message_stops_the_writer_with_its_place_and_reason() -> Result<()> {
    let stream = Stream::with_schema("bad-message", TYPES).await?;
    stream.produce_values([r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":2.5}"#, r#"{"n":4}"#])?;
    for _ in 0..2 {
        said(&stream.write(&[]).await?, 7, &[&stream.topic, "offset", "2", "`n`", "2.5"]);
        assert_eq!(values(&stream, "n").await?, ["1", "2"]);
    }
    stream.write(&["--on-bad-message", "skip"]).await?.success()?;
    assert_eq!(values(&stream, "n").await?, ["1", "2", "4"]);
    stream.warehouse.check(TABLE, After::GracefulStop).await
}

/// M10.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn columns_are_found_by_name_whatever_their_order() -> Result<()> {
    let schema = r#"{"type":"struct","schema-id":0,"fields":[
      {"id":5,"name":"b","required":false,"type":"string"},
      {"id":2,"name":"a","required":false,"type":"string"},
      {"id":9,"name":"c","required":false,"type":"string"}]}"#;
    let stream = Stream::with_schema("column-order", schema).await?;
    stream.produce_values([r#"{"a":"A","b":"B","c":"C"}"#, r#"{"c":"C","a":"A","b":"B"}"#])?;
    stream.write(&[]).await?.success()?;
    for (column, value) in [("a", "A"), ("b", "B"), ("c", "C")] {
        assert_eq!(values(&stream, column).await?, [value, value]);
    }
    stream.warehouse.check(TABLE, After::GracefulStop).await
}

/// K23: what a manifest could not carry is refused before anything is written.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_partition_field_that_manifests_cannot_carry_is_refused_before_anything_is_written() -> Result<()> {
    let schema = r#"{"type":"struct","schema-id":0,"fields":[
      {"id":1,"name":"a-b","required":false,"type":"string"},
      {"id":2,"name":"user","required":false,"type":{"type":"struct","fields":[
        {"id":3,"name":"id","required":false,"type":"long"}]}}]}"#;
    let stream = Stream::with_schema("field-names", schema).await?;
    stream.produce_values([r#"{"a-b":"x","user":{"id":7}}"#])?;
    for field in ["a-b", "bucket(4, user.id) as user.id_bucket"] {
        let ended = stream.write(&["--partition-by", field]).await?;
        assert_eq!(ended.code, Some(3), "{field}: {}", ended.stderr);
        assert!(stream.warehouse.table(TABLE).await.is_err(), "{field}: no table was created");
    }
    // The names are no obstacle elsewhere.
    stream.write(&["--partition-by", "bucket(4, user.id) as user_id_bucket"]).await?.success()?;
    assert_eq!(values(&stream, "a-b").await?, ["x"]);
    stream.warehouse.check(TABLE, After::GracefulStop).await
}
