//! Time on the clock and on the cores.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Ticks of the kernel's process accounting in a second, on every Linux.
const TICKS_PER_SECOND: u64 = 100;

/// What some work took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// On the clock.
    pub(crate) wall: Duration,
    /// On the cores, of this process and of the children that it waited for.
    pub(crate) cpu: Duration,
}

impl Cost {
    /// Does the work and measures it.
    pub(crate) fn of<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Self)> {
        let (began, before) = (Instant::now(), cpu()?);
        let done = work()?;
        Ok((done, Self { wall: began.elapsed(), cpu: cpu()?.saturating_sub(before) }))
    }

    /// The rate at which `bytes` were worked off.
    pub(crate) fn rate(self, bytes: u64) -> Rate {
        let megabytes = bytes as f64 / 1e6;
        let per = |time: Duration| megabytes / time.as_secs_f64().max(0.01);
        Rate { per_second: per(self.wall), per_cpu_second: per(self.cpu) }
    }
}

/// Megabytes per second and per second of a core.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    per_second: f64,
    pub(crate) per_cpu_second: f64,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:6.0} MB/s, {:6.0} MB per CPU-second", self.per_second, self.per_cpu_second)
    }
}

/// CPU time of this process and of the children that it waited for (`proc(5)`, fields 14 to 17 of `stat`).
fn cpu() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("process accounting is Linux's")?;
    let after_name = stat.rsplit_once(')').context("a name in parentheses")?.1;
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}
