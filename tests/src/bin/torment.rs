//! Kills, pauses and outages for as long as one likes.
//!
//! ```text
//! torment [--minutes N] [--seed S] [--catalog sqlite|rest|chaos|postgres] [--brokers 1|3] [--longest-seconds N]
//! ```
//!
//! `chaos` is the REST catalog behind `firn chaos`. It needs what `tests/setup kafka` fetches, and `tests/setup rest` or `postgres` for these catalogs. The last line is
//! what the run came to. A failure prints its seed and what was done when, and leaves the logs and the table behind.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use firn_tests::kafka::Brokers;
use firn_tests::scratch;
use firn_tests::torment::{CatalogKind, Harms, Setting, run};

fn main() -> Result<()> {
    let setting = setting(std::env::args().skip(1))?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "seed {}; logs and tables: {}", setting.seed, scratch::run_folder()?.display())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(run("torment", setting))?;
    Ok(writeln!(out, "{outcome}")?)
}

fn setting(mut arguments: impl Iterator<Item = String>) -> Result<Setting> {
    let mut setting = Setting {
        seed: scratch::seed()?,
        catalog: CatalogKind::Sqlite,
        brokers: Brokers::One,
        harms: Harms::Any(Duration::from_secs(10 * 60)),
        lengths: (Duration::from_secs(4), Duration::from_secs(30)),
    };
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
        match (name.as_str(), value.as_str()) {
            ("--minutes", _) => setting.harms = Harms::Any(Duration::from_secs(60 * number(&value)?)),
            ("--seed", _) => setting.seed = number(&value)?,
            ("--longest-seconds", _) => {
                let longest = Duration::from_secs(number(&value)?);
                setting.lengths = (setting.lengths.0.min(longest), longest);
            }
            ("--catalog", "sqlite") => setting.catalog = CatalogKind::Sqlite,
            ("--catalog", "rest") => setting.catalog = CatalogKind::Rest,
            ("--catalog", "chaos") => setting.catalog = CatalogKind::Chaos,
            ("--catalog", "postgres") => setting.catalog = CatalogKind::Postgres,
            ("--brokers", "1") => setting.brokers = Brokers::One,
            ("--brokers", "3") => setting.brokers = Brokers::Three,
            _ => bail!("`{name} {value}` is not known: see the first lines of this program"),
        }
    }
    Ok(setting)
}

fn number(text: &str) -> Result<u64> {
    text.parse().with_context(|| format!("`{text}` is no number"))
}
