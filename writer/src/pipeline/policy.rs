//! When to seal a flush. Pure: it sees a [`Situation`] and returns a [`Decision`].
//!
//! | trigger | fixed, auto, grouped | low latency |
//! | --- | --- | --- |
//! | age of the oldest row | yes, unless a sealed flush waits already | the same |
//! | the commit before it is about to end | no | yes |
//! | bytes, rows | yes, a few sealed flushes may wait | the same |
//! | memory short | seals, or writes the largest buffers early | the same |
//!
//! A slow catalog therefore makes files larger instead of more: while a sealed flush waits for the commit before it,
//! rows collect in the open one.

use std::time::Duration;

use tokio::time::Instant;

use crate::config::{FlushLimits, Mode};

/// Sealed flushes that may wait for a commit. They are committed together.
pub(crate) const MAX_WAITING_FLUSHES: usize = 4;
/// Files that one open flush may hold before the intake has to wait for the catalog.
pub(crate) const MAX_OPEN_FILES: usize = 20_000;

/// What the policy sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation {
    pub now: Instant,
    pub open: OpenStats,
    /// Sealed flushes that are not in a commit yet.
    pub waiting: usize,
    /// Files being encoded or uploaded.
    pub writes_in_flight: usize,
    /// When the commit in flight began.
    pub committing_since: Option<Instant>,
    /// How long commits take of late.
    pub usual_commit: Duration,
    /// How long writing the files of a flush takes of late.
    pub usual_write: Duration,
    pub last_seal: Option<Instant>,
    pub memory: Memory,
    pub urgency: Urgency,
}

/// The open flush.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OpenStats {
    pub rows: u64,
    /// Rows and rejected messages: what makes a commit worth it. Holes alone wait for the next rows.
    pub messages: u64,
    /// Whether it covers any offset.
    pub covers: Covers,
    pub bytes: usize,
    pub files: usize,
    pub oldest: Option<Instant>,
}

/// What a flush covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Covers {
    #[default]
    Nothing,
    Offsets,
}

/// The budget, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub used: usize,
    pub limit: usize,
}

impl Memory {
    /// Short: the intake has to wait, or soon will.
    pub(crate) fn is_short(self) -> bool {
        self.used > self.limit / 4 * 3
    }
}

/// Whether something waits for the open flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    Usual,
    /// A revoke, a stop or the end waits for it: even holes are committed.
    Drain,
}

/// What to do with the open flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nothing; look again at this time, or when something changed.
    Wait(Option<Instant>),
    /// Seal it.
    Seal,
    /// Write its largest buffers to files now, and keep it open.
    Spill,
}

/// Decides.
pub(crate) fn decide(mode: Mode, limits: &FlushLimits, at: &Situation) -> Decision {
    if at.urgency == Urgency::Drain && at.open.covers == Covers::Offsets {
        return Decision::Seal;
    }
    if at.open.messages == 0 {
        return Decision::Wait(None);
    }
    if at.open.bytes >= limits.bytes || at.open.rows >= limits.rows {
        if at.waiting < MAX_WAITING_FLUSHES {
            return Decision::Seal;
        }
    } else if at.waiting == 0 {
        let due = due(mode, limits, at);
        if at.now >= due {
            return Decision::Seal;
        }
        if !needs_memory(at) {
            return Decision::Wait(Some(due));
        }
    }
    match needs_memory(at) {
        false => Decision::Wait(None),
        true if at.waiting == 0 => Decision::Seal,
        true if at.open.files < MAX_OPEN_FILES && at.open.bytes > 0 => Decision::Spill,
        true => Decision::Wait(None),
    }
}

/// Memory is short and nothing on its way to the store will give it back soon.
fn needs_memory(at: &Situation) -> bool {
    at.memory.is_short() && at.writes_in_flight == 0
}

fn due(mode: Mode, limits: &FlushLimits, at: &Situation) -> Instant {
    let by_age = at.open.oldest.unwrap_or(at.now) + limits.age;
    match mode {
        Mode::Fixed { .. } | Mode::Auto { .. } | Mode::Grouped { .. } => by_age,
        Mode::LowLatency { min_interval } => {
            let spaced = at.last_seal.map_or(at.now, |last| last + min_interval);
            let in_time = at.committing_since.map_or(at.now, |since| {
                // Its files should be ready just when the commit before it ends.
                since + at.usual_commit.saturating_sub(at.usual_write + at.usual_write / 4)
            });
            by_age.min(spaced.max(in_time))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: FlushLimits = FlushLimits { age: Duration::from_secs(1), bytes: 1000, rows: 100 };
    const FIXED: Mode = Mode::Fixed { shards: 1 };
    const LOW: Mode = Mode::LowLatency { min_interval: Duration::from_millis(50) };

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(now: Instant) -> Situation {
        let covers = Covers::Offsets;
        Situation {
            now,
            open: OpenStats { rows: 10, messages: 10, covers, bytes: 100, files: 0, oldest: Some(now) },
            waiting: 0,
            writes_in_flight: 0,
            committing_since: None,
            usual_commit: ms(100),
            usual_write: ms(20),
            last_seal: None,
            memory: Memory { used: 100, limit: 10_000 },
            urgency: Urgency::Usual,
        }
    }

    #[test]
    fn a_flush_without_messages_is_never_sealed_unless_something_waits() {
        let now = Instant::now();
        let open = OpenStats { covers: Covers::Offsets, ..OpenStats::default() };
        let holes = Situation { open, ..at(now) };
        assert_eq!(decide(FIXED, &LIMITS, &holes), Decision::Wait(None));
        let drain = Situation { urgency: Urgency::Drain, ..holes };
        assert_eq!(decide(FIXED, &LIMITS, &drain), Decision::Seal);
        let empty = Situation { open: OpenStats::default(), ..drain };
        assert_eq!(decide(FIXED, &LIMITS, &empty), Decision::Wait(None));
    }

    #[test]
    fn age_seals_when_nothing_waits() {
        let now = Instant::now();
        assert_eq!(decide(FIXED, &LIMITS, &at(now)), Decision::Wait(Some(now + ms(1000))));
        let old = Situation { now: now + ms(1000), ..at(now) };
        assert_eq!(decide(FIXED, &LIMITS, &old), Decision::Seal);
        let waiting = Situation { waiting: 1, ..old };
        assert_eq!(decide(FIXED, &LIMITS, &waiting), Decision::Wait(None));
    }

    #[test]
    fn size_seals_up_to_a_bound() {
        let now = Instant::now();
        let mut large = at(now);
        large.open.bytes = 1000;
        large.waiting = MAX_WAITING_FLUSHES - 1;
        assert_eq!(decide(FIXED, &LIMITS, &large), Decision::Seal);
        large.waiting += 1;
        assert_eq!(decide(FIXED, &LIMITS, &large), Decision::Wait(None));
        let mut rows = at(now);
        rows.open.rows = 100;
        assert_eq!(decide(FIXED, &LIMITS, &rows), Decision::Seal);
    }

    #[test]
    fn short_memory_seals_or_spills_but_waits_for_files_on_their_way() {
        let mut short = at(Instant::now());
        short.memory.used = 8000;
        assert_eq!(decide(FIXED, &LIMITS, &short), Decision::Seal);
        short.waiting = 1;
        assert_eq!(decide(FIXED, &LIMITS, &short), Decision::Spill);
        short.writes_in_flight = 1;
        assert_eq!(decide(FIXED, &LIMITS, &short), Decision::Wait(None));
        short.writes_in_flight = 0;
        short.open.files = MAX_OPEN_FILES;
        assert_eq!(decide(FIXED, &LIMITS, &short), Decision::Wait(None));
    }

    #[test]
    fn low_latency_is_ready_when_the_commit_before_it_ends() {
        let now = Instant::now();
        assert_eq!(decide(LOW, &LIMITS, &at(now)), Decision::Seal);
        let busy = Situation { committing_since: Some(now), ..at(now) };
        assert_eq!(decide(LOW, &LIMITS, &busy), Decision::Wait(Some(now + ms(75))));
        let spaced = Situation { last_seal: Some(now), ..at(now) };
        assert_eq!(decide(LOW, &LIMITS, &spaced), Decision::Wait(Some(now + ms(50))));
        let slow = Situation { usual_commit: ms(5000), ..busy };
        assert_eq!(decide(LOW, &LIMITS, &slow), Decision::Wait(Some(now + ms(1000))));
    }
}
