//! What the demo claims, counted again by others.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use firn_tests::checks::After;
use firn_tests::process::binary;
use firn_tests::readers::{Question, agree};
use firn_tests::warehouse::Warehouse;
use serde_json::Value;

#[tokio::test]
#[ignore = "needs Java and Python: tests/run engines"]
async fn the_demos_numbers_hold_when_others_count() -> Result<()> {
    let warehouse = Warehouse::new("demo")?;
    let mut demo = Command::new(binary()?);
    demo.args(["demo", "--seconds", "10", "--rate", "2000", "--format", "json", "--directory"]);
    let output = demo.arg(warehouse.folder()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let claims: Value = serde_json::from_slice(&output.stdout).context("one object on standard output")?;
    let number = |path: &str| {
        let found = claims.pointer(path).and_then(Value::as_f64);
        found.with_context(|| format!("{path} in {claims}"))
    };

    let question = Question { warehouse: &warehouse, table: "demo.events".to_owned(), filters: Vec::new() };
    let counted = agree(&[question]).await?;
    assert!(counted[0].rows > 10_000, "{claims}");
    assert_eq!(number("/rows_in_table")? as u64, counted[0].rows, "{claims}");
    assert_eq!(number("/rows_produced")? as u64, counted[0].rows, "{claims}");
    assert!(number("/after/files")? < number("/before/files")?, "{claims}");
    assert!(number("/after/mean_file_bytes")? > number("/before/mean_file_bytes")?, "{claims}");
    let latencies = ["p50", "p95", "p99", "max"].map(|name| number(&format!("/latency_ms/{name}")));
    let latencies = latencies.into_iter().collect::<Result<Vec<f64>>>()?;
    assert!(latencies.is_sorted() && latencies[0] > 0.0, "{claims}");
    warehouse.check("demo.events", After::GracefulStop).await
}
