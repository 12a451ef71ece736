//! A process that is started again when it ends.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::process::Running;

/// How long a process that ended stays away.
const AWAY: Duration = Duration::from_millis(300);

/// Exit codes after which a service manager starts it again: done, partly done, something did not answer.
const ALLOWED: [i32; 3] = [0, 5, 6];

type MakeCommand = Box<dyn Fn(u64) -> Result<Command> + Send>;

/// One process after the other.
pub(super) struct Supervised {
    name: &'static str,
    command: MakeCommand,
    folder: PathBuf,
    state: State,
    starts: u64,
    done: u64,
}

enum State {
    Runs(Running),
    /// It sleeps, and must not be waited for.
    Paused(Running),
    Away {
        since: Instant,
    },
}

impl Supervised {
    /// It starts when it is first tended. The command gets the number of the start.
    pub(super) fn new(
        name: &'static str,
        folder: PathBuf,
        command: impl Fn(u64) -> Result<Command> + Send + 'static,
    ) -> Self {
        let state = State::Away { since: Instant::now() - AWAY };
        Self { name, command: Box::new(command), folder, state, starts: 0, done: 0 }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn starts(&self) -> u64 {
        self.starts
    }

    /// How often it came to an end with all done.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Looks after it: starts it where it is away. What is worth a line of history is the result.
    pub(super) fn tend(&mut self) -> Result<Option<String>> {
        match &mut self.state {
            State::Paused(_) => Ok(None),
            State::Away { since } if since.elapsed() < AWAY => Ok(None),
            State::Away { .. } => {
                self.starts += 1;
                let log = self.folder.join(format!("{}-{}.log", self.name, self.starts));
                self.state = State::Runs(Running::start((self.command)(self.starts)?, &log)?);
                Ok(None)
            }
            State::Runs(running) => {
                let Some(status) = running.ended()? else { return Ok(None) };
                let said = running.said()?;
                self.state = State::Away { since: Instant::now() };
                match status.code() {
                    Some(0) => {
                        self.done += 1;
                        Ok(None)
                    }
                    Some(code) if ALLOWED.contains(&code) => {
                        let last = said.lines().last().unwrap_or_default().to_owned();
                        Ok(Some(format!("{} {} ended with {code}: {last}", self.name, self.starts)))
                    }
                    _ => bail!("{} {} ended with {status}: {said}", self.name, self.starts),
                }
            }
        }
    }

    /// Kills it, where it runs. Whether it did is the result.
    pub(super) fn kill(&mut self) -> Result<bool> {
        match std::mem::replace(&mut self.state, State::Away { since: Instant::now() }) {
            State::Runs(running) | State::Paused(running) => running.kill().map(|()| true),
            State::Away { .. } => Ok(false),
        }
    }

    /// Stops its clock, where it runs. Whether it did is the result.
    pub(super) fn pause(&mut self) -> Result<bool> {
        let State::Runs(running) = &mut self.state else { return Ok(false) };
        if running.ended()?.is_some() {
            return Ok(false);
        }
        running.pause()?;
        if let State::Runs(running) =
            std::mem::replace(&mut self.state, State::Away { since: Instant::now() })
        {
            self.state = State::Paused(running);
        }
        Ok(true)
    }

    /// Lets it go on.
    pub(super) fn wake(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.state, State::Away { since: Instant::now() }) {
            State::Paused(running) => {
                running.wake()?;
                self.state = State::Runs(running);
            }
            other => self.state = other,
        }
        Ok(())
    }

    /// Asks it to stop, and waits for it. It may end as it may end at any time.
    pub(super) async fn stop(&mut self, limit: Duration) -> Result<()> {
        let state = std::mem::replace(&mut self.state, State::Away { since: Instant::now() });
        let (State::Runs(mut running) | State::Paused(mut running)) = state else { return Ok(()) };
        if running.ended()?.is_none() {
            running.terminate()?;
        }
        let ended = running.wait(limit).await?;
        match ended.code {
            Some(code) if ALLOWED.contains(&code) => Ok(()),
            code => bail!("{} ended with {code:?} when it was asked to stop: {}", self.name, ended.stderr),
        }
    }
}

impl std::fmt::Debug for Supervised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervised")
            .field("name", &self.name)
            .field("starts", &self.starts)
            .finish_non_exhaustive()
    }
}
