//! How many shards the mode `auto` writes. Pure: it sees what each written flush took and returns a change.
//!
//! *Pressure* is the share of the time between two flushes that writing one takes, or the share that writing the
//! backlog would take, whichever is more. High pressure raises the number at once, low pressure lowers it slowly, and
//! between both thresholds there is more than a factor of two, so that a change does not bring about the next one.
//! A raise is a trial: where the bytes per second do not rise with it, the store or the cores are the limit, the number
//! goes back, and the next trial comes much later; files grow instead.

use std::time::Duration;

/// A flush whose files are written, and what is left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Bytes of the flush in memory.
    pub flush_bytes: usize,
    /// From its seal until its last file was stored.
    pub write: Duration,
    /// From the seal before it to its own.
    pub interval: Duration,
    /// Bytes that are decoded and not yet written.
    pub backlog_bytes: usize,
}

/// A new number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub from: u32,
    pub to: u32,
    pub reason: String,
}

/// The controller.
#[derive(Debug)]
pub(crate) struct Shards {
    min: u32,
    max: u32,
    current: u32,
    /// Bytes per second of writing, smoothed.
    rate: f64,
    high: u32,
    low: u32,
    trial: Option<Trial>,
    /// Flushes until a raise may be tried again.
    hold: u32,
    next_hold: u32,
}

/// A raise that has to show its worth.
#[derive(Debug, Clone, Copy)]
struct Trial {
    from: u32,
    rate: f64,
    left: u32,
}

const HIGH: f64 = 0.8;
const LOW: f64 = 0.35;
/// Where a raise aims.
const AIM: f64 = 0.6;
/// Flushes in a row above or below, after which the number is changed: files have grown by then as far as they will.
const HIGH_FLUSHES: u32 = 5;
const LOW_FLUSHES: u32 = 8;
/// Flushes after which a raise is judged, and the growth of the rate that it needs.
const TRIAL_FLUSHES: u32 = 6;
const WORTH: f64 = 1.15;
const FIRST_HOLD: u32 = 64;
const MAX_HOLD: u32 = 1_024;
/// Bytes in memory that a file should have at least: more shards would only make small files.
const MIN_FILE_BYTES: usize = 256 << 10;

impl Shards {
    pub(crate) fn new(min: u32, max: u32) -> Self {
        let (current, hold, next_hold) = (min, 0, FIRST_HOLD);
        Self { min, max, current, rate: 0.0, high: 0, low: 0, trial: None, hold, next_hold }
    }

    pub(crate) fn current(&self) -> u32 {
        self.current
    }

    /// One flush was written.
    pub(crate) fn observe(&mut self, load: &Load) -> Option<Change> {
        let seconds = load.write.as_secs_f64().max(1e-3);
        let rate = load.flush_bytes as f64 / seconds;
        self.rate = if self.rate == 0.0 { rate } else { self.rate * 0.6 + rate * 0.4 };
        let pressure = self.pressure(load);
        self.hold = self.hold.saturating_sub(1);
        self.high = if pressure >= HIGH { self.high + 1 } else { 0 };
        self.low = if pressure <= LOW { self.low + 1 } else { 0 };
        if let Some(change) = self.judge_trial(pressure) {
            return Some(change);
        }
        if self.high >= HIGH_FLUSHES && self.hold == 0 && self.trial.is_none() {
            return self.raise(load, pressure);
        }
        if self.low >= LOW_FLUSHES {
            return self.lower(pressure);
        }
        None
    }

    fn pressure(&self, load: &Load) -> f64 {
        let interval = load.interval.as_secs_f64().max(1e-3);
        let backlog = load.backlog_bytes as f64 / self.rate.max(1.0);
        load.write.as_secs_f64().max(backlog) / interval
    }

    fn judge_trial(&mut self, pressure: f64) -> Option<Change> {
        let mut trial = self.trial?;
        trial.left -= 1;
        self.trial = Some(trial).filter(|t| t.left > 0);
        if trial.left > 0 {
            return None;
        }
        if self.rate >= trial.rate * WORTH || pressure < HIGH {
            self.next_hold = FIRST_HOLD;
            return None;
        }
        self.hold = self.next_hold;
        self.next_hold = (self.next_hold * 2).min(MAX_HOLD);
        let rate = mib(self.rate);
        Some(self.change(
            trial.from,
            format!("more shards do not write faster than {rate} MiB/s: store or cores are the limit"),
        ))
    }

    fn raise(&mut self, load: &Load, pressure: f64) -> Option<Change> {
        let wanted = f64::from(self.current) * (pressure / AIM).min(2.0);
        let useful = u32::try_from(load.flush_bytes / MIN_FILE_BYTES).unwrap_or(u32::MAX);
        let to = (wanted.ceil() as u32).min(useful).min(self.max);
        if to <= self.current {
            return None;
        }
        self.trial = Some(Trial { from: self.current, rate: self.rate, left: TRIAL_FLUSHES });
        let reason = format!(
            "writing takes {:.0} % of the time between flushes, {:.1} MiB wait, at {:.1} MiB/s",
            pressure * 100.0,
            mib(load.backlog_bytes as f64),
            mib(self.rate)
        );
        Some(self.change(to, reason))
    }

    fn lower(&mut self, pressure: f64) -> Option<Change> {
        // As if writing scaled with the shards; where it does not, the pressure stays lower than this.
        let enough = (f64::from(self.current) * pressure / AIM).ceil() as u32;
        let to =
            enough.max(self.current - self.current / 4).min(self.current.saturating_sub(1)).max(self.min);
        if to >= self.current {
            return None;
        }
        self.trial = None;
        Some(self.change(to, format!("writing takes {:.0} % of the time between flushes", pressure * 100.0)))
    }

    fn change(&mut self, to: u32, reason: String) -> Change {
        let from = std::mem::replace(&mut self.current, to);
        (self.high, self.low) = (0, 0);
        Change { from, to, reason }
    }
}

fn mib(bytes: f64) -> f64 {
    (bytes / f64::from(1 << 20) * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store and cores: a file takes a fixed time and a time for its bytes; so many run at once.
    struct Model {
        fixed_s: f64,
        bytes_per_second: f64,
        lanes: f64,
    }

    const CORES: Model = Model { fixed_s: 0.02, bytes_per_second: 4e6, lanes: 8.0 };

    /// Runs flushes of one second, whose bytes wait where writing takes longer; the numbers of shards over time.
    fn run(
        shards: &mut Shards,
        model: &Model,
        flushes: usize,
        bytes_in_second: impl Fn(usize) -> f64,
    ) -> Vec<u32> {
        let (mut interval, mut now) = (1.0_f64, 0.0_f64);
        (0..flushes)
            .map(|_| {
                let bytes = bytes_in_second(now as usize) * interval;
                let lanes = f64::from(shards.current()).min(model.lanes);
                let write = model.fixed_s + bytes / (lanes * model.bytes_per_second);
                let load = Load {
                    flush_bytes: bytes as usize,
                    write: Duration::from_secs_f64(write),
                    interval: Duration::from_secs_f64(interval),
                    backlog_bytes: (bytes_in_second(now as usize) * write) as usize,
                };
                shards.observe(&load);
                now += interval;
                interval = write.clamp(1.0, 60.0);
                shards.current()
            })
            .collect()
    }

    fn changes(numbers: &[u32]) -> usize {
        numbers.windows(2).filter(|w| w[0] != w[1]).count()
    }

    #[test]
    fn a_steady_load_settles_and_stays() {
        for mb in 1..24 {
            let numbers = run(&mut Shards::new(1, 16), &CORES, 400, |_| f64::from(mb) * 1e6);
            let last = *numbers.last().unwrap();
            assert!(f64::from(last) * 4.0 > f64::from(mb), "{mb} MB/s: {last} shards do not keep up");
            assert!(
                f64::from(last) <= f64::from(mb) / 4.0 * 3.0 + 1.0,
                "{mb} MB/s: {last} shards are too many"
            );
            assert_eq!(changes(&numbers[100..]), 0, "{mb} MB/s: {numbers:?}");
        }
    }

    #[test]
    fn a_load_that_swings_a_little_changes_nothing_after_it_settled() {
        for period in 2..40 {
            let swing =
                |t: usize| 9e6 * (1.0 + 0.2 * f64::sin(t as f64 * std::f64::consts::TAU / f64::from(period)));
            let numbers = run(&mut Shards::new(1, 16), &CORES, 600, swing);
            assert!(changes(&numbers[100..]) <= 1, "period {period}: {numbers:?}");
        }
    }

    #[test]
    fn it_follows_a_step_up_and_down_within_bounds() {
        let mut shards = Shards::new(2, 6);
        let up = run(&mut shards, &CORES, 60, |_| 19e6);
        assert_eq!(*up.last().unwrap(), 6);
        let down = run(&mut shards, &CORES, 200, |_| 1e6);
        assert_eq!(*down.last().unwrap(), 2);
        assert!(up.iter().chain(&down).all(|n| (2..=6).contains(n)));
        assert!(down.is_sorted_by(|a, b| a >= b), "down without a step up: {down:?}");
    }

    #[test]
    fn a_store_that_more_shards_do_not_help_is_left_alone() {
        let slow = Model { fixed_s: 3.0, bytes_per_second: 1e9, lanes: 8.0 };
        let numbers = run(&mut Shards::new(1, 16), &slow, 500, |_| 2e6);
        assert_eq!(*numbers.last().unwrap(), 1, "{numbers:?}");
        let raised = numbers.iter().filter(|n| **n > 1).count();
        assert!(raised < 50, "{raised} of 500 flushes had more shards for nothing");
    }

    #[test]
    fn small_flushes_are_not_cut_into_smaller_files() {
        let numbers = run(&mut Shards::new(1, 16), &Model { fixed_s: 0.9, ..CORES }, 100, |_| 100e3);
        assert!(numbers.iter().all(|n| *n == 1), "{numbers:?}");
    }
}
