//! Benchmarks that are printed and not judged: each beside the bare loop that does the same work, in the same run.
//!
//! ```text
//! firn-bench [--short] [catalog] [commits] [decode] [stream]
//! ```

mod catalog;
mod commits;
mod cpu;
mod decode;
mod stream;

use std::fmt::Display;
use std::io::Write as _;

use anyhow::{Result, bail};

/// How much work a benchmark does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    /// Enough to see that it works and about where it stands.
    Short,
    /// Enough for numbers that hold.
    Full,
}

fn main() -> Result<()> {
    let (mut length, mut named) = (Length::Full, Vec::new());
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--short" => length = Length::Short,
            "catalog" | "commits" | "decode" | "stream" => named.push(argument),
            _ => bail!("no benchmark `{argument}`: catalog, commits, decode, stream, and --short"),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let is_named = |name: &str| named.is_empty() || named.iter().any(|given| given == name);
    if is_named("catalog") {
        runtime.block_on(catalog::run(length))?;
    }
    if is_named("commits") {
        runtime.block_on(commits::run(length))?;
    }
    if is_named("decode") {
        decode::run(length)?;
    }
    if is_named("stream") {
        runtime.block_on(stream::run(length))?;
    }
    Ok(())
}

/// Prints a line of results.
fn print(line: impl Display) -> Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}
