//! Folders outside the tree: what the setup fetched, and what a run leaves behind.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The folder of this package in the tree.
#[must_use]
pub fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where `tests/setup` puts what it fetches.
pub fn home() -> Result<PathBuf> {
    let cache = || std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let default = || Some(Path::new(&std::env::var_os("HOME")?).join(".cache"));
    match std::env::var_os("FIRN_TEST_HOME") {
        Some(home) => Ok(home.into()),
        None => {
            Ok(cache().or_else(default).context("neither FIRN_TEST_HOME nor HOME is set")?.join("firn-tests"))
        }
    }
}

/// What this run leaves behind: `tests/run` names the folder, and a run without it has one of its own.
pub fn run_folder() -> Result<PathBuf> {
    match std::env::var_os("FIRN_TEST_SCRATCH") {
        Some(folder) => Ok(folder.into()),
        None => Ok(home()?.join("runs").join(format!("cargo-{}", std::process::id()))),
    }
}

/// A new folder for a test, named after it.
pub fn folder(test: &str) -> Result<PathBuf> {
    let parent = run_folder()?;
    std::fs::create_dir_all(&parent)?;
    for number in 1..1_000 {
        let folder = parent.join(if number == 1 { test.to_owned() } else { format!("{test}-{number}") });
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).context(folder.display().to_string()),
        }
    }
    bail!("`{test}` has a thousand folders in {}", parent.display())
}

/// The seed of a test: `FIRN_TEST_SEED`, or one from the clock. Print it, so that a failure can be repeated.
pub fn seed() -> Result<u64> {
    let seed = match std::env::var("FIRN_TEST_SEED") {
        Ok(text) => text.parse().with_context(|| format!("FIRN_TEST_SEED is `{text}`, not a number"))?,
        Err(_) => std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(1, |since| u64::from(since.subsec_nanos()) ^ since.as_secs()),
    };
    Ok(seed)
}

/// Asks again and again until the answer is `Some`. `what` is waited for, for the message when time is up.
pub async fn eventually<T, F>(what: &str, limit: Duration, mut ask: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<Option<T>>>,
{
    let deadline = Instant::now() + limit;
    loop {
        let answer = ask().await;
        match answer {
            Ok(Some(answer)) => return Ok(answer),
            answer if Instant::now() >= deadline => {
                let last = answer.err().map(|error| format!(": {error:#}")).unwrap_or_default();
                bail!("waited {limit:?} for {what}{last}");
            }
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
