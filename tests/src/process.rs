//! The program as a process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// What a command that ended said.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ended {
    /// The result, where the exit code is 0.
    pub fn success(self) -> Result<Self> {
        ensure!(self.code == Some(0), "exit code {:?}: {}{}", self.code, self.stdout, self.stderr);
        Ok(self)
    }

    /// Standard output as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.stdout).with_context(|| format!("not JSON: {}", self.stdout))
    }
}

/// The program: `FIRN_BIN`, or the one that cargo built beside the tests.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("FIRN_BIN") {
        return Ok(path.into());
    }
    let test = std::env::current_exe()?;
    let path = test.ancestors().nth(2).context("tests are built in a folder of folders")?.join("firn");
    ensure!(path.exists(), "{} is not there: `cargo build --release` makes it", path.display());
    Ok(path)
}

/// A process that runs. Dropping it kills it, so that no test leaves one behind.
#[derive(Debug)]
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts the command; what it says goes to the file `log`.
    pub fn start(mut command: Command, log: &Path) -> Result<Self> {
        let file = File::create(log).with_context(|| log.display().to_string())?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| format!("{command:?}"))?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Kills it at once (SIGKILL) and waits for its end.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to stop (SIGTERM).
    pub fn terminate(&self) -> Result<()> {
        self.signal("TERM")
    }

    /// Stops its clock (SIGSTOP): it does nothing until [`Self::wake`].
    pub fn pause(&self) -> Result<()> {
        self.signal("STOP")
    }

    /// Lets it go on after [`Self::pause`].
    pub fn wake(&self) -> Result<()> {
        self.signal("CONT")
    }

    fn signal(&self, name: &str) -> Result<()> {
        let status =
            Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status()?;
        ensure!(status.success(), "process {} cannot be signalled", self.child.id());
        Ok(())
    }

    /// Whether it has ended, and how.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for its end.
    pub async fn wait(mut self, limit: Duration) -> Result<Ended> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(Ended { code: status.code(), stdout: String::new(), stderr: self.said()? });
            }
            if Instant::now() >= deadline {
                bail!("it still runs after {limit:?}: {}", self.said()?);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asks it to stop, and waits for an end in good order.
    pub async fn stop(self, limit: Duration) -> Result<Ended> {
        self.terminate()?;
        self.wait(limit).await?.success()
    }

    /// What it said until now.
    pub fn said(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(&self.log)?).into_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended long ago; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
