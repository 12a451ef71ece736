//! Engines that share no code with firn, compared with firn's own reading and with each other.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use firn_table::storage::Stores;
use iceberg::table::Table;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::canonical::{Checksums, ColumnSummary};
use crate::warehouse::Warehouse;
use crate::{rows, scratch};

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// PyIceberg, through the catalog.
    PyIceberg,
    /// DuckDB's extension, from the metadata file that the catalog names.
    DuckDb,
    /// Iceberg's own Java library, through its JDBC catalog.
    Java,
}

/// All of them.
pub const ENGINES: [Engine; 3] = [Engine::PyIceberg, Engine::DuckDb, Engine::Java];

/// What one reader saw of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Rows.
    pub rows: u64,
    /// By name.
    pub columns: BTreeMap<String, ColumnSummary>,
    /// One for each filter that was asked.
    #[serde(default)]
    pub filters: Vec<Filtered>,
}

/// What a filter found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filtered {
    /// Rows.
    pub rows: u64,
    /// Files that the engine planned to read, where it tells.
    pub files: Option<u64>,
}

/// A comparison of a column with a value, and how many rows it must find.
#[derive(Debug, Clone)]
pub struct Filter {
    column: String,
    op: &'static str,
    value: Value,
    rows: u64,
    /// Engines that answer it wrongly, or fail, on tables of any writer.
    not_asked: Vec<Engine>,
}

impl Filter {
    /// `op` is one of `eq`, `lt`, `lteq`, `gt`, `gteq`; `value` a number, or text for every other type.
    pub fn new(column: &str, op: &'static str, value: impl Into<Value>, rows: u64) -> Self {
        Self { column: column.to_owned(), op, value: value.into(), rows, not_asked: Vec::new() }
    }

    /// The column is null.
    #[must_use]
    pub fn is_null(column: &str, rows: u64) -> Self {
        Self::new(column, "is_null", Value::Null, rows)
    }

    /// The engine answers this filter wrongly, or fails, on tables of any writer.
    #[must_use]
    pub fn not_asked_of(mut self, engine: Engine) -> Self {
        self.not_asked.push(engine);
        self
    }

    fn is_for(&self, engine: Engine) -> bool {
        !self.not_asked.contains(&engine)
    }
}

/// A table with filters.
#[derive(Debug)]
pub struct Question<'a> {
    /// Where it is.
    pub warehouse: &'a Warehouse,
    /// `namespace.name`.
    pub table: String,
    /// The filters.
    pub filters: Vec<Filter>,
}

/// Lets all engines read every table: see [`agree_of`].
pub async fn agree(questions: &[Question<'_>]) -> Result<Vec<Answer>> {
    agree_of(&ENGINES, questions).await
}

/// Lets these engines read every table, and compares the answers with firn's own reading, with the rows that the
/// filters must find, and with each other. Returns firn's answers, with the files that PyIceberg planned per filter.
pub async fn agree_of(engines: &[Engine], questions: &[Question<'_>]) -> Result<Vec<Answer>> {
    let mut expected = Vec::new();
    for question in questions {
        let (table, stores) = question.warehouse.table(&question.table).await?;
        let mut answer = read_with_firn(&table, &stores).await.with_context(|| question.table.clone())?;
        answer.filters = question.filters.iter().map(|f| Filtered { rows: f.rows, files: None }).collect();
        expected.push(answer);
    }
    let mut problems = Vec::new();
    for &engine in engines {
        for ((question, expected), answer) in questions.iter().zip(&mut expected).zip(ask(engine, questions)?)
        {
            match answer {
                Ok(answer) => problems.extend(differences(engine, question, expected, &answer)),
                Err(error) => {
                    let first = error.lines().next().unwrap_or_default();
                    problems
                        .push(format!("{engine:?} on {}: {first}", question.warehouse.folder().display()));
                }
            }
        }
    }
    ensure!(problems.is_empty(), "engines disagree:\n  {}", problems.join("\n  "));
    Ok(expected)
}

fn differences(
    engine: Engine,
    question: &Question<'_>,
    expected: &mut Answer,
    answer: &Answer,
) -> Vec<String> {
    let place = format!("{engine:?} on {} in {}", question.table, question.warehouse.folder().display());
    let mut problems = Vec::new();
    if answer.rows != expected.rows {
        problems.push(format!("{place}: {} rows, expected {}", answer.rows, expected.rows));
    }
    for (name, column) in &expected.columns {
        match answer.columns.get(name) {
            Some(other) if other == column => {}
            other => problems.push(format!("{place}: column {name} is {other:?}, expected {column:?}")),
        }
    }
    let asked =
        question.filters.iter().zip(&mut expected.filters).filter(|(filter, _)| filter.is_for(engine));
    for ((filter, expected), found) in asked.zip(&answer.filters) {
        if found.rows != expected.rows {
            problems.push(format!("{place}: {filter:?} found {}", found.rows));
        }
        if engine == Engine::PyIceberg {
            expected.files = found.files;
        }
    }
    problems
}

/// Reads a table's head through firn.
pub async fn read_with_firn(table: &Table, stores: &Stores) -> Result<Answer> {
    let mut sums = Checksums::of(table.metadata().current_schema());
    for batch in rows::batches(table, stores).await? {
        sums.add(&batch)?;
    }
    let (rows, columns) = sums.finish();
    Ok(Answer { rows, columns, filters: Vec::new() })
}

/// Has Iceberg's Java library commit these properties to a table, which it makes, with a column `id`, where it is not
/// there yet.
pub fn java_sets(warehouse: &Warehouse, table: &str, properties: &[(&str, &str)]) -> Result<()> {
    let set: BTreeMap<&str, &str> = properties.iter().copied().collect();
    let request = json!({ "catalog": warehouse.pyiceberg(), "table": table, "set": set, "filters": [] });
    let answers = exchange(Engine::Java, &format!("{request}\n"))?;
    match answers.into_iter().next() {
        Some(Ok(_)) => Ok(()),
        other => bail!("Java on {table}: {other:?}"),
    }
}

/// Asks one engine about all tables; an engine's refusal is the error of that table.
pub fn ask(engine: Engine, questions: &[Question<'_>]) -> Result<Vec<Result<Answer, String>>> {
    let mut requests = String::new();
    for question in questions {
        let filter = |f: &Filter| json!({ "column": f.column, "op": f.op, "value": f.value });
        let filters: Vec<Value> = question.filters.iter().filter(|f| f.is_for(engine)).map(filter).collect();
        let request = json!({
            "catalog": question.warehouse.pyiceberg(),
            "table": question.table,
            "filters": filters,
        });
        requests.push_str(&format!("{request}\n"));
    }
    let answers = exchange(engine, &requests)?;
    ensure!(answers.len() == questions.len(), "{engine:?} gave {} answers", answers.len());
    Ok(answers)
}

/// Hands an engine its requests, a line each, and takes its answers.
fn exchange(engine: Engine, requests: &str) -> Result<Vec<Result<Answer, String>>> {
    let mut command = command(engine)?;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("a pipe was asked for")?.write_all(requests.as_bytes())?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{engine:?} failed: {said}");
    String::from_utf8(output.stdout)?.lines().map(parse).collect()
}

fn parse(line: &str) -> Result<Result<Answer, String>> {
    let value: Value = serde_json::from_str(line)?;
    match value.get("error").and_then(Value::as_str) {
        Some(error) => Ok(Err(error.to_owned())),
        None => Ok(Ok(serde_json::from_value(value)?)),
    }
}

/// The Python of the tests, and the program to run in it.
pub fn python(program: &str) -> Result<Command> {
    let python = scratch::home()?.join("python/bin/python");
    if !python.exists() {
        bail!("{} is not there: `tests/setup python` makes it", python.display());
    }
    let mut command = Command::new(python);
    command.arg(scratch::package().join("readers").join(program));
    Ok(command)
}

fn command(engine: Engine) -> Result<Command> {
    Ok(match engine {
        Engine::PyIceberg | Engine::DuckDb => {
            let mut command = python("read.py")?;
            command.arg(if engine == Engine::DuckDb { "duckdb" } else { "pyiceberg" });
            command
        }
        Engine::Java => {
            let (jars, more) = (scratch::home()?.join("readers-jars"), scratch::home()?.join("rest-jars"));
            ensure!(jars.exists(), "{} is not there: `tests/setup readers` makes it", jars.display());
            let mut command = Command::new("java");
            command.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error");
            // Those of the REST server can read S3.
            let path = format!("{}/*:{}/*", jars.display(), more.display());
            command.arg("-cp").arg(path).arg(scratch::package().join("readers/ReadTable.java"));
            command
        }
    })
}
