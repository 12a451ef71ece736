//! A REST catalog, Postgres or an S3 server for the tests of a process.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use crate::scratch;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The reference implementation of Iceberg's REST catalog, tables in a folder of its own.
    Rest,
    /// Postgres with an empty database.
    Postgres,
    /// An S3 server with an empty bucket.
    S3,
}

/// A server that a test may harm. It stops when the process has ended.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    folder: PathBuf,
    reached_by: String,
}

impl Kind {
    fn script(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Postgres => "postgres",
            Self::S3 => "s3",
        }
    }

    /// How to reach the server of this process: what `FIRN_TEST_REST` and its like say, or one that is started at the
    /// first call. Nobody may harm it.
    pub fn shared(self) -> Result<String> {
        static SHARED: Mutex<Option<HashMap<Kind, Server>>> = Mutex::new(None);
        let variable = format!("FIRN_TEST_{}", self.script().to_uppercase());
        if let Ok(reached_by) = std::env::var(&variable) {
            return Ok(reached_by);
        }
        let mut servers = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let servers = servers.get_or_insert_default();
        let server = match servers.entry(self) {
            Entry::Occupied(server) => server.into_mut(),
            Entry::Vacant(place) => place.insert(Server::start(self, "shared", &[])?),
        };
        Ok(server.reached_by.clone())
    }
}

impl Server {
    /// Starts one, empty, with options of its script.
    pub fn start(kind: Kind, test: &str, options: &[&str]) -> Result<Self> {
        let folder = scratch::folder(&format!("{test}-{}", kind.script()))?;
        let process = std::process::id().to_string();
        let mut server = Self { kind, folder, reached_by: String::new() };
        let arguments = [&["start", "--while", &process][..], options].concat();
        server.reached_by = server.script(&arguments)?;
        Ok(server)
    }

    /// What its script prints: a URI, a URL, or S3 properties.
    #[must_use]
    pub fn reached_by(&self) -> &str {
        &self.reached_by
    }

    /// Kills it at once.
    pub fn kill(&self) -> Result<()> {
        self.script(&["kill"]).map(drop)
    }

    /// Starts what was killed, at the same address with the same data.
    pub fn start_again(&self) -> Result<()> {
        self.script(&["start"]).map(drop)
    }

    /// Stops its clock (SIGSTOP): it accepts connections and never answers, until [`Self::wake`].
    pub fn pause(&self) -> Result<()> {
        self.signal("STOP")
    }

    /// Lets it go on after [`Self::pause`].
    pub fn wake(&self) -> Result<()> {
        self.signal("CONT")
    }

    fn signal(&self, name: &str) -> Result<()> {
        let file = std::fs::read_to_string(self.folder.join("pid")).context("the server's process id")?;
        let pid = file.split_whitespace().next().context("a process id")?;
        let status = Command::new("kill").arg(format!("-{name}")).arg(pid).status()?;
        ensure!(status.success(), "server {pid} cannot be signalled");
        Ok(())
    }

    fn script(&self, arguments: &[&str]) -> Result<String> {
        let script = scratch::package().join(self.kind.script());
        let output = Command::new(&script).args(arguments).arg("--dir").arg(&self.folder).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} {arguments:?} failed: {said}", script.display());
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

/// The properties of `a=b,c=d`, as the script of the S3 server prints them.
pub fn properties(text: &str) -> HashMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
