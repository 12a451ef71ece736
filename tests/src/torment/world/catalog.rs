//! The catalog of a run, and how it is taken away.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use firn_table::catalog::CatalogOptions;

use crate::chaos::Chaos;
use crate::server::{Kind, Server};
use crate::warehouse::Warehouse;

/// Which catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogKind {
    /// A SQLite file.
    Sqlite,
    /// A REST catalog.
    Rest,
    /// A REST catalog behind a proxy that loses, repeats and delays some requests all the time.
    Chaos,
    /// Postgres.
    Postgres,
}

/// What that proxy does.
const RULES: [&str; 8] = [
    "POST /v1/**/tables/* : apply-then 500 share 0.03",
    "POST /v1/**/tables/* : apply-then reset share 0.03",
    "POST /v1/**/tables/* : duplicate share 0.03",
    "POST /v1/**/tables/* : late 300ms share 0.03",
    "POST /v1/**/tables/* : delay 1s share 0.01",
    "* /v1/** : status 503 share 0.02",
    "* /v1/** : status 429 retry-after 1s share 0.01",
    "* /v1/** : reset share 0.02",
];

/// The catalog.
#[derive(Debug)]
pub(in crate::torment) enum Catalog {
    Sqlite(std::path::PathBuf),
    Server(CatalogKind, Server, Option<Chaos>),
}

/// What keeps a catalog from answering; it goes on when this is given back.
#[derive(Debug)]
pub(in crate::torment) enum Paused {
    Asleep,
    Locked(Child),
}

/// Holds the lock of a SQLite file until its input ends.
const LOCK: &str = "import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
connection.execute('BEGIN EXCLUSIVE')
print('locked', flush=True)
sys.stdin.read()";

impl Catalog {
    /// Starts it, for tables below the local warehouse's place. The result says how it is reached past the proxy.
    pub(in crate::torment) async fn start(
        kind: CatalogKind,
        test: &str,
        local: &Warehouse,
    ) -> Result<(Self, CatalogOptions)> {
        let options = local.options();
        let data = options.warehouse.clone().context("a local warehouse")?;
        let (server, options) = match kind {
            CatalogKind::Sqlite => return Ok((Self::Sqlite(local.folder().join("catalog.db")), options)),
            CatalogKind::Rest | CatalogKind::Chaos => {
                let server = Server::start(Kind::Rest, test, &["--warehouse", &data])?;
                (server, CatalogOptions::default())
            }
            CatalogKind::Postgres => (Server::start(Kind::Postgres, test, &[])?, options),
        };
        let options = CatalogOptions { uri: server.reached_by().to_owned(), ..options };
        let chaos = match kind {
            CatalogKind::Chaos => Some(Chaos::before(&options.uri, local.folder(), "chaos", &RULES).await?),
            _ => None,
        };
        Ok((Self::Server(kind, server, chaos), options))
    }

    /// The warehouse as processes reach it: through the proxy, where there is one.
    pub(in crate::torment) fn through(&self, direct: &Warehouse) -> Warehouse {
        match self {
            Self::Server(_, _, Some(chaos)) => direct.by(chaos.address()),
            _ => direct.clone(),
        }
    }

    /// Why it cannot be paused, where it cannot.
    pub(in crate::torment) fn cannot_be_paused(&self) -> Option<&'static str> {
        match self {
            // It has a process for each connection.
            Self::Server(CatalogKind::Postgres, ..) => {
                Some("Postgres is many processes; it is killed instead")
            }
            Self::Sqlite(_) if Command::new("python3").arg("--version").output().is_err() => {
                Some("Python is needed to lock the file")
            }
            _ => None,
        }
    }

    /// Why it cannot be killed, where it cannot.
    pub(in crate::torment) fn cannot_be_killed(&self) -> Option<&'static str> {
        match self {
            Self::Sqlite(_) => Some("SQLite has no process"),
            Self::Server(..) => None,
        }
    }

    /// How many requests the proxy touched, where there is one.
    pub(in crate::torment) fn touched(&self) -> Result<Option<usize>> {
        match self {
            Self::Server(_, _, Some(chaos)) => Ok(Some(chaos.touched()?.len())),
            _ => Ok(None),
        }
    }

    pub(in crate::torment) fn pause(&self) -> Result<Paused> {
        match self {
            Self::Server(_, server, _) => server.pause().map(|()| Paused::Asleep),
            Self::Sqlite(file) => {
                let mut command = Command::new("python3");
                command.args(["-c", LOCK]).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
                let mut child = command.spawn().context("python3")?;
                let mut line = String::new();
                BufReader::new(child.stdout.take().context("its output")?).read_line(&mut line)?;
                ensure!(line.trim() == "locked", "the file could not be locked: `{line}`");
                Ok(Paused::Locked(child))
            }
        }
    }

    pub(in crate::torment) fn wake(&self, paused: Paused) -> Result<()> {
        match (self, paused) {
            (Self::Server(_, server, _), Paused::Asleep) => server.wake(),
            (_, Paused::Locked(mut child)) => {
                drop(child.stdin.take());
                let status = child.wait()?;
                ensure!(status.success(), "the lock ended with {status}");
                Ok(())
            }
            (Self::Sqlite(_), Paused::Asleep) => bail!("a file does not sleep"),
        }
    }

    pub(in crate::torment) fn kill(&self) -> Result<()> {
        match self {
            Self::Server(_, server, _) => server.kill(),
            Self::Sqlite(_) => bail!("a file has no process"),
        }
    }

    pub(in crate::torment) fn start_again(&self) -> Result<()> {
        match self {
            Self::Server(_, server, _) => server.start_again(),
            Self::Sqlite(_) => bail!("a file has no process"),
        }
    }
}
