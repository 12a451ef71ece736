//! One measurement: committers at work for a while, and what it came to.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use firn_table::catalog::{CatalogOptions, open_catalog, parse_table_ident};
use firn_table::commit::{FlushOutcome, TableHandle};
use firn_tests::appender::{Appender, create};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

/// Rows that arrive at a committer in a second.
const ROWS_PER_SECOND: f64 = 1_000.0;

/// Whether the committers share a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tables {
    Shared,
    Own,
}

/// What is wanted of the committers.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) tables: Tables,
    pub(super) committers: usize,
    /// The least time between the seals of two flushes; zero for one right after the other.
    pub(super) interval: Duration,
    pub(super) length: Duration,
}

/// A commit that landed.
#[derive(Debug, Clone, Copy)]
struct Landed {
    took: Duration,
    /// The age of its oldest row when it had landed.
    age: Duration,
    conflicts: u32,
    bytes: u64,
}

/// What it came to.
#[derive(Debug)]
pub(super) struct Measured {
    wish: Wish,
    by_committer: Vec<Vec<Landed>>,
    elapsed: Duration,
}

/// Lets the committers work and waits for all of them.
pub(super) async fn measure(uri: &str, wish: &Wish) -> Result<Measured> {
    let run = format!("bench{}", &Uuid::new_v4().simple().to_string()[..8]);
    let mut committers = JoinSet::new();
    for number in 0..wish.committers {
        let table = match wish.tables {
            Tables::Shared => format!("{run}.t"),
            Tables::Own => format!("{run}.t{number}"),
        };
        // Each has a session of its own, as a process has.
        let opened =
            open_catalog(&CatalogOptions { uri: uri.to_owned(), ..CatalogOptions::default() }, None).await?;
        if wish.tables == Tables::Own || number == 0 {
            create(opened.catalog.as_ref(), &table).await?;
        }
        let handle =
            TableHandle::open(opened.catalog, opened.stores, parse_table_ident(&table)?, "main").await?;
        let appender = Appender::new(handle, &format!("w{number}"))?;
        committers.spawn(work(appender, wish.clone()));
    }
    let began = Instant::now();
    let mut by_committer = Vec::new();
    while let Some(done) = committers.join_next().await {
        by_committer.push(done??);
    }
    Ok(Measured { wish: wish.clone(), by_committer, elapsed: began.elapsed() })
}

/// Commits what arrives, until time is up.
async fn work(appender: Appender, wish: Wish) -> Result<Vec<Landed>> {
    let began = Instant::now();
    let mut landed = Vec::new();
    let (mut sealed, mut offset) = (began, 0);
    while began.elapsed() < wish.length {
        // At least one row is there.
        sleep_until(sealed + wish.interval.max(Duration::from_millis(5))).await;
        let oldest = sealed;
        sealed = Instant::now();
        let next = (began.elapsed().as_secs_f64() * ROWS_PER_SECOND) as i64;
        let flush = appender.flush(offset..next).await?;
        let bytes = flush.files.iter().map(|file| file.file.file_size_in_bytes()).sum();
        let began_to_commit = Instant::now();
        match appender.handle.append(flush).await? {
            FlushOutcome::Committed(committed) => landed.push(Landed {
                took: began_to_commit.elapsed(),
                age: oldest.elapsed(),
                conflicts: committed.conflicts,
                bytes,
            }),
            other => bail!("nobody else writes these offsets: {other:?}"),
        }
        offset = next;
    }
    Ok(landed)
}

/// The value below which a share of the sorted values lies.
fn quantile(sorted: &[Duration], share: f64) -> f64 {
    let at = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(0.0, |value| value.as_secs_f64() * 1e3)
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = || self.by_committer.iter().flatten();
        let sorted = |value: fn(&Landed) -> Duration| {
            let mut values: Vec<Duration> = all().map(value).collect();
            values.sort();
            values
        };
        let (took, age) = (sorted(|landed| landed.took), sorted(|landed| landed.age));
        let commits = all().count().max(1) as f64;
        let rate = |commits: usize| commits as f64 / self.elapsed.as_secs_f64();
        let of_one = || self.by_committer.iter().map(|landed| rate(landed.len()));
        let wanted = match self.wish.interval.as_secs_f64() {
            0.0 => "most".to_owned(),
            seconds => format!("{:.0}", self.wish.committers as f64 / seconds),
        };
        write!(
            f,
            "  {:6}  {:10}  {wanted:>8}  {:6.1} ({:.1} to {:.1})  {:6.0} {:6.0} {:6.0}  {:6.2}  {:6.0} {:6.0} {:6.0}  {:6.1}",
            match self.wish.tables {
                Tables::Shared => "shared",
                Tables::Own => "own",
            },
            self.wish.committers,
            rate(all().count()),
            of_one().fold(f64::INFINITY, f64::min),
            of_one().fold(0.0, f64::max),
            quantile(&took, 0.5),
            quantile(&took, 0.99),
            quantile(&took, 1.0),
            all().map(|landed| f64::from(landed.conflicts)).sum::<f64>() / commits,
            quantile(&age, 0.5),
            quantile(&age, 0.99),
            quantile(&age, 1.0),
            all().map(|landed| landed.bytes as f64).sum::<f64>() / commits / 1e3,
        )
    }
}
