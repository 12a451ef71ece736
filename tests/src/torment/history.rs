//! What was done when.

use std::fmt;
use std::time::{Duration, Instant};

/// How many of the last events are shown.
const SHOWN: usize = 50;

/// Events since the start.
#[derive(Debug)]
pub(super) struct History {
    began: Instant,
    events: Vec<(Duration, String)>,
}

impl History {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), events: Vec::new() }
    }

    pub(super) fn add(&mut self, event: impl Into<String>) {
        self.events.push((self.began.elapsed(), event.into()));
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self.events.len().saturating_sub(SHOWN);
        if skipped > 0 {
            writeln!(f, "  … {skipped} earlier events")?;
        }
        for (at, event) in &self.events[skipped..] {
            writeln!(f, "  {:>8.2} s  {event}", at.as_secs_f64())?;
        }
        Ok(())
    }
}
