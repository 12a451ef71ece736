//! Messages whose rows are known, and how often each is in a table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use firn_table::files::DataFileReader;
use firn_table::layout::live_files;
use firn_table::storage::Stores;
use futures::TryStreamExt;
use iceberg::table::Table;
use serde_json::json;

use crate::kafka::Produced;

/// The schema of [`event`]s, as Iceberg's JSON.
const EVENTS: &str = r#"{"type":"struct","schema-id":0,"fields":[
  {"id":1,"name":"id","required":true,"type":"long"},
  {"id":2,"name":"ts","required":false,"type":"timestamptz"},
  {"id":3,"name":"user","required":false,"type":"string"},
  {"id":4,"name":"amount","required":false,"type":"decimal(12, 2)"},
  {"id":5,"name":"note","required":false,"type":"string"}]}"#;

/// Writes the schema of events to a file, for `firn write --schema`.
pub fn events_schema(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("events.json");
    std::fs::write(&path, EVENTS)?;
    Ok(path)
}

/// The event with this id: the same whenever it is asked for. A few hours of 2026, 97 users, some nulls.
#[must_use]
pub fn event(id: u64) -> String {
    let (minute, second) = (id / 60 % 60, id % 60);
    let note = (!id.is_multiple_of(7)).then(|| format!("note {}", id.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    json!({
        "id": id,
        "ts": format!("2026-01-{:02}T{:02}:{minute:02}:{second:02}.{:06}Z", id % 4 + 1, id / 3600 % 24, id % 1_000_000),
        "user": format!("user-{}", id * 31 % 97),
        "amount": (id % 100_000) as f64 + (id % 4) as f64 / 4.0,
        "note": note,
    })
    .to_string()
}

/// The events of a range of ids, spread over partitions by id.
pub fn events(ids: std::ops::Range<u64>, partitions: i32) -> impl Iterator<Item = Produced> {
    ids.map(move |id| Produced {
        partition: i32::try_from(id % partitions.unsigned_abs() as u64).unwrap_or(0),
        key: Some(format!("user-{}", id * 31 % 97).into_bytes()),
        value: Some(event(id).into_bytes()),
    })
}

/// All rows of a table's head, read through firn.
pub async fn batches(table: &Table, stores: &Stores) -> Result<Vec<RecordBatch>> {
    let Some(snapshot) = table.metadata().current_snapshot() else { return Ok(Vec::new()) };
    let schema = table.metadata().current_schema().clone();
    let mut all = Vec::new();
    let reader = DataFileReader::new(stores, table, &schema)?;
    for live in live_files(table, snapshot.snapshot_id()).await? {
        let batches = reader.read(&live.file, live.spec_id, 8192).await?;
        all.extend(batches.try_collect::<Vec<_>>().await?);
    }
    Ok(all)
}

/// How often each id is in the table.
pub async fn ids(table: &Table, stores: &Stores) -> Result<BTreeMap<i64, u64>> {
    let mut counts = BTreeMap::new();
    for batch in batches(table, stores).await? {
        let column = batch.column_by_name("id").context("a column `id`")?;
        for id in column.as_primitive::<Int64Type>().values() {
            *counts.entry(*id).or_default() += 1;
        }
    }
    Ok(counts)
}

/// Fails unless the ids in the table are exactly these, each once.
pub async fn each_once(table: &Table, stores: &Stores, expected: std::ops::Range<u64>) -> Result<()> {
    let counts = ids(table, stores).await?;
    let expected = i64::try_from(expected.start)?..i64::try_from(expected.end)?;
    let missing: Vec<i64> = expected.clone().filter(|id| !counts.contains_key(id)).collect();
    let twice: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    let foreign: Vec<_> = counts.keys().filter(|id| !expected.contains(id)).collect();
    ensure!(
        missing.is_empty() && twice.is_empty() && foreign.is_empty(),
        "of {expected:?}: {} missing {:?}, {} more than once {:?}, {} foreign {:?}",
        missing.len(),
        &missing[..missing.len().min(10)],
        twice.len(),
        &twice[..twice.len().min(10)],
        foreign.len(),
        &foreign[..foreign.len().min(10)],
    );
    Ok(())
}

/// The offsets of each topic partition that the column `_kafka` holds, with how often each is there.
pub async fn offsets(table: &Table, stores: &Stores) -> Result<BTreeMap<(String, i32), BTreeMap<i64, u64>>> {
    let mut found: BTreeMap<(String, i32), BTreeMap<i64, u64>> = BTreeMap::new();
    for batch in batches(table, stores).await? {
        let kafka = batch.column_by_name("_kafka").context("a column `_kafka`")?.as_struct();
        let column = |name: &str| kafka.column_by_name(name).with_context(|| format!("_kafka.{name}"));
        let (topics, partitions, offsets) = (column("topic")?, column("partition")?, column("offset")?);
        for row in 0..batch.num_rows() {
            let topic = topics.as_string::<i32>().value(row).to_owned();
            let partition = partitions.as_primitive::<Int32Type>().value(row);
            let offset = offsets.as_primitive::<Int64Type>().value(row);
            *found.entry((topic, partition)).or_default().entry(offset).or_default() += 1;
        }
    }
    Ok(found)
}

/// Fails unless every offset below the ends is in the table once.
pub async fn each_offset_once(
    table: &Table,
    stores: &Stores,
    ends: &BTreeMap<(String, i32), i64>,
) -> Result<()> {
    let found = offsets(table, stores).await?;
    for (partition, end) in ends {
        let counts = found.get(partition).cloned().unwrap_or_default();
        let wrong: Vec<i64> = (0..*end).filter(|offset| counts.get(offset) != Some(&1)).collect();
        ensure!(
            wrong.is_empty() && counts.len() == usize::try_from(*end)?,
            "{partition:?}: {} offsets are not there once, among them {:?}; {} offsets in all of {end}",
            wrong.len(),
            &wrong[..wrong.len().min(10)],
            counts.len(),
        );
    }
    Ok(())
}
