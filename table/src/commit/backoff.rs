//! How long to wait before the next attempt: pure, the randomness is given.

use std::time::Duration;

use super::CommitLimits;

/// Beyond this exponent a wait no longer doubles; it has met its bound long before.
const MAX_DOUBLINGS: u32 = 20;

/// Doublings of the bound after conflicts. Who has just won needs no load before its next commit and meets no wait: a
/// loser that waits for many commits loses again, and starves. A bound of a few commits breaks the step of those who
/// collide, and no more is needed.
const MAX_CONFLICT_DOUBLINGS: u32 = 2;

/// The wait after the `conflicts`th conflict: none after the first, then a random part of a bound that doubles up to
/// four times the least wait, so that committers who collided do not collide again.
pub(super) fn after_conflict(limits: &CommitLimits, conflicts: u32, random: f64) -> Duration {
    if conflicts <= 1 {
        return Duration::ZERO;
    }
    bound(limits, (conflicts - 2).min(MAX_CONFLICT_DOUBLINGS)).mul_f64(random.clamp(0.0, 1.0))
}

/// The wait after the `failures`th failure in a row: at least what the server asks for, else between half and the
/// whole of a bound that doubles.
pub(super) fn after_failure(
    limits: &CommitLimits,
    failures: u32,
    retry_after: Option<Duration>,
    random: f64,
) -> Duration {
    let own = bound(limits, failures.saturating_sub(1)).mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
    retry_after.map_or(own, |asked| asked.max(own))
}

fn bound(limits: &CommitLimits, doublings: u32) -> Duration {
    limits.min_wait.saturating_mul(1 << doublings.min(MAX_DOUBLINGS)).min(limits.max_wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_wait_ms: u64) -> CommitLimits {
        CommitLimits {
            min_wait: Duration::from_millis(50),
            max_wait: Duration::from_millis(max_wait_ms),
            ..CommitLimits::default()
        }
    }

    #[test]
    fn who_loses_often_does_not_wait_for_long() {
        let waits = |max_wait_ms| {
            [1, 2, 3, 4, 5, 100]
                .map(|conflicts| after_conflict(&limits(max_wait_ms), conflicts, 1.0).as_millis())
        };
        assert_eq!(waits(10_000), [0, 50, 100, 200, 200, 200]);
        assert_eq!(waits(60), [0, 50, 60, 60, 60, 60]);
        assert_eq!(after_conflict(&limits(10_000), 100, 0.0), Duration::ZERO);
    }

    #[test]
    fn failures_wait_ever_longer_and_at_least_as_asked() {
        let waits =
            [1, 2, 3, 20].map(|failures| after_failure(&limits(10_000), failures, None, 1.0).as_millis());
        assert_eq!(waits, [50, 100, 200, 10_000]);
        assert_eq!(after_failure(&limits(10_000), 1, None, 0.0).as_millis(), 25);
        let asked = Some(Duration::from_secs(30));
        assert_eq!(after_failure(&limits(10_000), 20, asked, 1.0), Duration::from_secs(30));
    }
}
