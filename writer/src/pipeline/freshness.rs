//! Age and bytes of flushes that keep a freshness goal, and what stands in the way where they cannot. Pure: it sees what
//! each commit took.
//!
//! A message waits at most for: fetch, decoding, its flush (age), files (write), the commit before it, its own commit.
//! The age is what the goal leaves: files become as large as the goal allows. An age below what a commit takes without
//! the write beside it would buy nothing, since the flush would wait for that commit. Where the messages come too late
//! already, or decoding does not keep up, large flushes catch up soonest.

use std::time::Duration;

use crate::config::{FlushLimits, FreshnessGoal};
use crate::observe::{Bottleneck, Constraint, Freshness as Verdict};

/// What one commit took.
#[derive(Debug, Clone, Default)]
pub(crate) struct Taken {
    /// Decoding of one fetch, with the wait for it.
    pub decode: Duration,
    /// In the open flush.
    pub buffer: Duration,
    /// From the seal to the last file, and the share of encoding in it, in thousandths.
    pub write: Duration,
    pub encode_permille: u32,
    /// From the last file to the start of the commit.
    pub queue: Duration,
    pub commit: Duration,
    /// Bytes in memory that became files.
    pub bytes: usize,
    pub memory: Pressure,
    /// From produce to visible: (milliseconds, messages).
    pub latencies_ms: Vec<(u64, u64)>,
}

/// Whether the intake waited for memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Pressure {
    #[default]
    Free,
    Short,
}

/// The controller.
#[derive(Debug)]
pub(crate) struct Freshness {
    goal: FreshnessGoal,
    fetch: f64,
    decode: f64,
    write: f64,
    encode: f64,
    queue: f64,
    commit: f64,
    /// Bytes per second of writing.
    rate: f64,
    memory: Pressure,
    recent: Recent,
    /// The age of flushes, in seconds.
    age: f64,
    /// The part of the computed age that measurement leaves.
    trust: f64,
    /// Commits in a row for which the verdict would be the other one.
    against: u32,
    told: Option<Option<Constraint>>,
}

/// Commits in a row that change the verdict.
const PATIENCE: u32 = 4;
/// The part of the goal that is planned with; the rest is for what varies.
const PLANNED: f64 = 0.85;
const MIN_AGE_S: f64 = 0.02;
const MIN_BYTES: f64 = (1 << 20) as f64;

impl Freshness {
    pub(crate) fn new(goal: FreshnessGoal) -> Self {
        let zero = 0.0;
        Self {
            goal,
            fetch: zero,
            decode: zero,
            write: zero,
            encode: zero,
            queue: zero,
            commit: zero,
            rate: zero,
            memory: Pressure::Free,
            recent: Recent::default(),
            age: goal.within.as_secs_f64() / 4.0,
            trust: 1.0,
            against: 0,
            told: None,
        }
    }

    /// A commit landed. A verdict where it is another one than before.
    pub(crate) fn observe(&mut self, taken: &Taken) -> Option<Verdict> {
        self.learn(taken);
        let measured = self.recent.quantile(self.goal.permille)?;
        let goal = self.goal.within.as_secs_f64();
        self.trust = match measured / goal {
            share if share > 0.95 => (self.trust * 0.8).max(0.1),
            share if share < 0.8 => (self.trust * 1.1).min(1.0),
            _ => self.trust,
        };
        self.age = (self.age + self.planned_age()) / 2.0;
        self.judge(measured)
    }

    /// What flushes are sealed by.
    pub(crate) fn limits(&self, base: &FlushLimits) -> FlushLimits {
        let quarter = self.rate * self.goal.within.as_secs_f64() / 4.0;
        let bytes = if self.rate > 0.0 { quarter.max(MIN_BYTES) as usize } else { base.bytes };
        FlushLimits { age: Duration::from_secs_f64(self.age), bytes: bytes.min(base.bytes), rows: base.rows }
    }

    fn learn(&mut self, taken: &Taken) {
        let seconds = |d: Duration| d.as_secs_f64();
        let write = seconds(taken.write);
        let encode = write * f64::from(taken.encode_permille) / 1_000.0;
        let mut own = Recent::default();
        own.add(&taken.latencies_ms);
        self.recent.add(&taken.latencies_ms);
        // What is not ours is the way to us.
        if let Some(measured) = own.quantile(self.goal.permille) {
            let ours = taken.decode + taken.buffer + taken.write + taken.queue + taken.commit;
            follow(&mut self.fetch, (measured - seconds(ours)).max(0.0));
        }
        follow(&mut self.decode, seconds(taken.decode));
        follow(&mut self.write, write);
        follow(&mut self.encode, encode);
        follow(&mut self.queue, seconds(taken.queue));
        follow(&mut self.commit, seconds(taken.commit));
        if taken.bytes > 0 {
            follow(&mut self.rate, taken.bytes as f64 / write.max(1e-3));
        }
        self.memory = taken.memory;
    }

    fn planned_age(&self) -> f64 {
        let goal = self.goal.within.as_secs_f64();
        let floor = (self.commit - self.write).max(MIN_AGE_S);
        let left = goal * PLANNED - self.fetch - self.decode - self.write - self.commit;
        if self.fetch + self.decode > goal {
            return floor.max(goal / 2.0);
        }
        (left * self.trust).clamp(floor, goal.max(floor))
    }

    fn judge(&mut self, measured: f64) -> Option<Verdict> {
        let missed = measured > self.goal.within.as_secs_f64();
        let before = self.told.flatten();
        let bottleneck = missed.then(|| self.bottleneck());
        let now = bottleneck.map(|b| b.constraint);
        self.against = if self.told.is_none() || now != before { self.against + 1 } else { 0 };
        if self.against < PATIENCE {
            return None;
        }
        self.against = 0;
        self.told = Some(now);
        let measured = Duration::from_secs_f64(measured);
        Some(Verdict { goal: self.goal, measured, missed_by: bottleneck })
    }

    fn bottleneck(&self) -> Bottleneck {
        let fetch = if self.memory == Pressure::Short { Constraint::Memory } else { Constraint::Fetch };
        let stages = [
            (fetch, self.fetch),
            (Constraint::Decode, self.decode),
            (Constraint::Encode, self.encode),
            (Constraint::Upload, self.write - self.encode),
            (Constraint::Commit, self.queue + self.commit),
        ];
        let most = stages.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((fetch, self.fetch));
        Bottleneck { constraint: most.0, takes: Duration::from_secs_f64(most.1.max(0.0)) }
    }
}

/// Follows a rise at once by half and a fall slowly: a plan for the usual time is missed half of the time.
fn follow(usual: &mut f64, sample: f64) {
    let weight = if sample > *usual { 0.5 } else { 0.15 };
    *usual += (sample - *usual) * weight;
}

/// Latencies of the last commits by logarithmic steps; older ones count less and less.
#[derive(Debug, Default)]
struct Recent {
    weights: Vec<f64>,
}

const STEPS_PER_DOUBLING: f64 = 8.0;
const MAX_STEPS: usize = 400;
const FADE: f64 = 0.7;

impl Recent {
    fn add(&mut self, latencies_ms: &[(u64, u64)]) {
        if latencies_ms.is_empty() {
            return;
        }
        self.weights.iter_mut().for_each(|weight| *weight *= FADE);
        for &(ms, count) in latencies_ms {
            let step = ((ms.max(1) as f64).log2() * STEPS_PER_DOUBLING).ceil() as usize;
            let step = step.min(MAX_STEPS);
            if self.weights.len() <= step {
                self.weights.resize(step + 1, 0.0);
            }
            self.weights[step] += count as f64;
        }
    }

    /// In seconds, rounded up to the step.
    fn quantile(&self, permille: u16) -> Option<f64> {
        let all: f64 = self.weights.iter().sum();
        if all <= 0.0 {
            return None;
        }
        // What has faded below a thousandth of a message is over.
        let wanted = (all * f64::from(permille) / 1_000.0).min(all - 1e-3);
        let mut sum = 0.0;
        let step = self.weights.iter().position(|weight| {
            sum += weight;
            sum >= wanted
        })?;
        Some((step as f64 / STEPS_PER_DOUBLING).exp2() / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: FlushLimits = FlushLimits { age: Duration::from_secs(1), bytes: 128 << 20, rows: 1_000_000 };

    /// A pipeline with these times, in seconds; writing takes a fixed time and one for the bytes.
    #[derive(Clone, Copy)]
    struct Model {
        fetch: f64,
        decode: f64,
        fixed_write: f64,
        write_rate: f64,
        commit: f64,
        bytes_per_second: f64,
    }

    const QUICK: Model = Model {
        fetch: 0.01,
        decode: 0.005,
        fixed_write: 0.02,
        write_rate: 50e6,
        commit: 0.1,
        bytes_per_second: 5e6,
    };

    fn goal(ms: u64) -> FreshnessGoal {
        FreshnessGoal { permille: 990, within: Duration::from_millis(ms) }
    }

    /// Runs commits; the verdicts, and the 99th percentile of the last commit in seconds.
    fn run(control: &mut Freshness, model: Model, commits: usize) -> (Vec<Verdict>, f64) {
        let duration = Duration::from_secs_f64;
        let (mut verdicts, mut last) = (Vec::new(), 0.0);
        for _ in 0..commits {
            let age = control.limits(&BASE).age.as_secs_f64();
            let mut bytes = age * model.bytes_per_second;
            bytes = bytes.min(control.limits(&BASE).bytes as f64);
            let write = model.fixed_write + bytes / model.write_rate;
            let buffer = age.max(model.commit - write);
            let queue = (model.commit - buffer - write).max(0.0);
            let most = model.fetch + model.decode + buffer + write + queue + model.commit;
            let ms = |waited: u64| (((most - buffer * waited as f64 / 100.0) * 1e3) as u64, 10);
            let taken = Taken {
                decode: duration(model.decode),
                buffer: duration(buffer),
                write: duration(write),
                encode_permille: 100,
                queue: duration(queue),
                commit: duration(model.commit),
                bytes: bytes as usize,
                memory: Pressure::Free,
                latencies_ms: (0..=100).map(ms).collect(),
            };
            verdicts.extend(control.observe(&taken));
            last = most;
        }
        (verdicts, last)
    }

    #[test]
    fn files_become_as_large_as_the_goal_allows() {
        for within in [500, 1_000, 2_000, 10_000, 60_000] {
            let mut control = Freshness::new(goal(within));
            let (verdicts, latency) = run(&mut control, QUICK, 200);
            let within = within as f64 / 1e3;
            assert!(latency <= within && latency >= within * 0.6, "goal {within}: {latency}");
            assert_eq!(verdicts.len(), 1, "goal {within}: {verdicts:?}");
            assert_eq!(verdicts[0].missed_by, None);
        }
    }

    #[test]
    fn a_goal_that_cannot_be_met_names_what_stands_in_the_way() {
        let cases = [
            (Constraint::Commit, Model { commit: 1.5, ..QUICK }, 1_500),
            (Constraint::Upload, Model { fixed_write: 3.0, ..QUICK }, 2_700),
            (Constraint::Decode, Model { decode: 2.5, ..QUICK }, 2_500),
            (Constraint::Fetch, Model { fetch: 4.0, ..QUICK }, 4_000),
        ];
        for (constraint, model, ms) in cases {
            let (verdicts, _) = run(&mut Freshness::new(goal(2_000)), model, 100);
            let by = verdicts.last().and_then(|v| v.missed_by).unwrap();
            assert_eq!(by.constraint, constraint, "{verdicts:?}");
            let takes = by.takes.as_millis() as i64;
            assert!((takes - ms).abs() <= ms / 4, "{constraint:?} takes {takes} ms, not about {ms}");
            assert_eq!(verdicts.len(), 1, "told once: {verdicts:?}");
        }
    }

    #[test]
    fn a_slower_catalog_makes_flushes_no_smaller_than_a_commit_and_is_told_when_over() {
        let mut control = Freshness::new(goal(2_000));
        run(&mut control, QUICK, 50);
        let (verdicts, _) = run(&mut control, Model { commit: 4.0, ..QUICK }, 50);
        assert_eq!(verdicts.last().and_then(|v| v.missed_by).unwrap().constraint, Constraint::Commit);
        assert!(
            control.limits(&BASE).age >= Duration::from_secs(3),
            "files grow: {:?}",
            control.limits(&BASE)
        );
        let (verdicts, _) = run(&mut control, QUICK, 100);
        assert_eq!(verdicts.last().unwrap().missed_by, None);
        assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    }

    #[test]
    fn catching_up_is_done_in_large_flushes() {
        let mut control = Freshness::new(goal(2_000));
        run(&mut control, Model { fetch: 600.0, ..QUICK }, 50);
        assert!(control.limits(&BASE).age >= Duration::from_millis(900));
        assert!(control.limits(&BASE).bytes > 16 << 20);
    }

    #[test]
    fn quantiles_are_of_the_last_commits() {
        let mut recent = Recent::default();
        recent.add(&[(8_192, 100)]);
        assert_eq!(recent.quantile(500), Some(8.192));
        (0..40).for_each(|_| recent.add(&[(100, 100)]));
        let p99 = recent.quantile(990).unwrap();
        assert!((0.1..0.11).contains(&p99), "{p99}");
        assert_eq!(Recent::default().quantile(500), None);
    }
}
