//! What other engines read and write: Java, Maven and Python are needed for it.

mod demo;
mod lineage;
mod neighbours;
mod transforms;
mod types;

use std::process::Command;

use anyhow::{Context, Result, ensure};
use firn_tests::readers::python;
use firn_tests::warehouse::Warehouse;

/// PyIceberg at work: see `readers/neighbour.py`.
pub(crate) fn neighbour(
    command: &str,
    warehouse: &Warehouse,
    table: &str,
    numbers: &[u64],
) -> Result<Command> {
    let mut program = python("neighbour.py")?;
    program.arg(command).arg(warehouse.pyiceberg().to_string()).arg(table);
    program.args(numbers.iter().map(u64::to_string));
    Ok(program)
}

/// Runs it to its end and returns what it printed.
pub(crate) fn ran(mut command: Command) -> Result<serde_json::Value> {
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    serde_json::from_slice(&output.stdout).context("its answer")
}
