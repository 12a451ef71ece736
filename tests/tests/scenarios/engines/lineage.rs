//! Deletes and row lineage as other engines see them: those of the tests' own foreign engine, and what a compaction
//! makes of them.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use firn_compactor::plan::PlanOptions;
use firn_compactor::{CompactOptions, Silent, compact};
use firn_table::catalog::{NewTable, PartitionColumn, create_table, parse_table_ident};
use firn_table::commit::TableHandle;
use firn_tests::canonical::ColumnSummary;
use firn_tests::checks::After;
use firn_tests::foreign::{
    Append, Clock, DeletionVectors, Engine as Foreign, LiveRow, PositionDelete, Scope, Victims,
};
use firn_tests::readers::{Answer, ENGINES, Question, ask, python};
use firn_tests::warehouse::Warehouse;
use iceberg::spec::{FormatVersion, NestedField, PrimitiveType, Schema, Transform, Type};
use tokio_util::sync::CancellationToken;

const TABLE: &str = "db.t";
const LINEAGE: [&str; 2] = ["_row_id", "_last_updated_sequence_number"];

/// `(id long, part int)`, partitioned by `part`, which is `id % 3`; four files of each partition.
async fn lake(test: &str, version: FormatVersion) -> Result<(Warehouse, Foreign, TableHandle)> {
    let warehouse = Warehouse::new(test)?;
    let opened = warehouse.create().await?;
    let id = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into();
    let part = NestedField::optional(2, "part", Type::Primitive(PrimitiveType::Int)).into();
    let schema = Schema::builder().with_fields([id, part]).build()?;
    let ident = parse_table_ident(TABLE)?;
    let partition = PartitionColumn { source: "part".to_owned(), transform: Transform::Identity, name: None };
    let new = NewTable {
        format_version: version,
        partition: vec![partition],
        ..NewTable::new(ident.clone(), schema)
    };
    create_table(opened.catalog.as_ref(), new).await?;
    let clock: Clock = Arc::new(|| chrono::Utc::now().timestamp_millis());
    let mut foreign = Foreign::new(opened.catalog.clone(), opened.stores.clone(), ident.clone(), 5, clock);
    for file in 0..4 {
        foreign.must(&Append { ids: file * 30..file * 30 + 30 }).await?;
    }
    let handle = TableHandle::open(opened.catalog, opened.stores, ident, "main").await?;
    Ok((warehouse, foreign, handle))
}

async fn live(foreign: &mut Foreign) -> Result<Vec<LiveRow>> {
    let table = foreign.table().await?;
    let head = table.metadata().current_snapshot_id().context("a snapshot")?;
    foreign.reader.live(&table, head).await
}

fn ids(rows: &[LiveRow]) -> ColumnSummary {
    ColumnSummary::of(rows.iter().map(|row| row.id.map(|id| id.to_string())))
}

/// Fails unless every engine sees these rows.
fn all_see(warehouse: &Warehouse, rows: &[LiveRow]) -> Result<()> {
    let question = Question { warehouse, table: TABLE.to_owned(), filters: Vec::new() };
    let expected = ids(rows);
    for engine in ENGINES {
        let answers = ask(engine, std::slice::from_ref(&question))?;
        let answer = answers[0].as_ref().map_err(|error| anyhow::anyhow!("{engine:?}: {error}"))?;
        ensure!(answer.columns.get("id") == Some(&expected), "{engine:?}: {answer:?}, expected {expected:?}");
    }
    Ok(())
}

/// Row ids and sequence numbers of last updates, as DuckDB reads them.
fn lineage(warehouse: &Warehouse) -> Result<BTreeMap<String, ColumnSummary>> {
    let request = serde_json::json!({
        "catalog": warehouse.pyiceberg(),
        "table": TABLE,
        "hidden_columns": LINEAGE,
    });
    let mut command = python("read.py")?;
    let mut child = command.arg("duckdb").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().context("a pipe was asked for")?.write_all(format!("{request}\n").as_bytes())?;
    let output = child.wait_with_output()?;
    let answer: Answer = serde_json::from_slice(&output.stdout)
        .context(String::from_utf8_lossy(&output.stdout).into_owned())?;
    Ok(answer.columns.into_iter().filter(|(name, _)| LINEAGE.contains(&name.as_str())).collect())
}

fn expected_lineage(rows: &[LiveRow]) -> BTreeMap<String, ColumnSummary> {
    let text = |value: Option<i64>| value.map(|value| value.to_string());
    BTreeMap::from([
        (LINEAGE[0].to_owned(), ColumnSummary::of(rows.iter().map(|row| text(row.row_id)))),
        (LINEAGE[1].to_owned(), ColumnSummary::of(rows.iter().map(|row| text(row.last_updated)))),
    ])
}

async fn compact_all(handle: &TableHandle) -> Result<u64> {
    handle.refresh().await?;
    let overrides = [("min-input-files".to_owned(), "2".to_owned())].into();
    let plan = PlanOptions { overrides, ..PlanOptions::default() };
    let options = CompactOptions { plan, ..CompactOptions::default() };
    let report = compact(handle, &options, Arc::new(Silent), CancellationToken::new()).await?;
    ensure!(report.dropped.is_empty() && report.groups_landed == 3, "{report:?}");
    Ok(report.deleted_rows)
}

/// Position deletes of files and of partitions, before and after a compaction that applies them.
#[tokio::test]
#[ignore = "needs Java and Python: tests/run engines"]
async fn engines_read_the_rows_that_position_deletes_leave_before_and_after_compaction() -> Result<()> {
    let (warehouse, mut foreign, handle) = lake("positions", FormatVersion::V2).await?;
    for (scope, victims) in
        [(Scope::Partition, 3..17), (Scope::FileByBounds, 40..45), (Scope::FileByReference, 70..72)]
    {
        foreign.must(&PositionDelete { victims: Victims::ids(victims), scope }).await?;
    }
    let rows = live(&mut foreign).await?;
    all_see(&warehouse, &rows)?;
    assert_eq!((compact_all(&handle).await?, rows.len()), (21, 99));
    let after = live(&mut foreign).await?;
    assert_eq!(ids(&after), ids(&rows));
    all_see(&warehouse, &after)?;
    warehouse.check(TABLE, After::GracefulStop).await
}

/// R18: deletion vectors are applied, and the pairs of row id and row stay, as an engine reads both.
#[tokio::test]
#[ignore = "needs Java and Python: tests/run engines"]
async fn engines_read_the_rows_and_the_lineage_that_vectors_leave_before_and_after_compaction() -> Result<()>
{
    let (warehouse, mut foreign, handle) = lake("vectors", FormatVersion::V3).await?;
    foreign.must(&DeletionVectors { victims: Victims::ids(3..17) }).await?;
    foreign.must(&DeletionVectors { victims: Victims::ids([1, 40, 41, 99]) }).await?;
    let rows = live(&mut foreign).await?;
    all_see(&warehouse, &rows)?;
    assert_eq!(lineage(&warehouse)?, expected_lineage(&rows));
    assert_eq!((compact_all(&handle).await?, rows.len()), (18, 102));
    let after = live(&mut foreign).await?;
    let pairs = |rows: &[LiveRow]| -> BTreeMap<Option<i64>, (Option<i64>, Option<i64>)> {
        rows.iter().map(|row| (row.row_id, (row.id, row.last_updated))).collect()
    };
    assert_eq!(pairs(&after), pairs(&rows));
    all_see(&warehouse, &after)?;
    assert_eq!(lineage(&warehouse)?, expected_lineage(&rows));
    // What is appended afterwards gets ids that were never given.
    foreign.must(&Append { ids: 120..130 }).await?;
    let more = live(&mut foreign).await?;
    assert_eq!(pairs(&more).len(), 112);
    assert_eq!(lineage(&warehouse)?, expected_lineage(&more));
    all_see(&warehouse, &more)?;
    warehouse.check(TABLE, After::GracefulStop).await
}
