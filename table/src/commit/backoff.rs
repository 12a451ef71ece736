//! How long to wait before the next attempt: pure, the randomness is given.

use std::time::Duration;

use super::CommitLimits;

/// Beyond this exponent a wait no longer doubles; it has met its bound long before.
const MAX_DOUBLINGS: u32 = 20;

/// The wait after the `conflicts`th conflict: none after the first, then a random part of a bound that doubles, so
/// that committers who collided do not collide again.
pub(super) fn after_conflict(limits: &CommitLimits, conflicts: u32, random: f64) -> Duration {
    if conflicts <= 1 {
        return Duration::ZERO;
    }
    bound(limits, conflicts - 2).mul_f64(random.clamp(0.0, 1.0))
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
