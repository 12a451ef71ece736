//! What commits take from the world around them besides catalog and stores: the wall clock and randomness. Waiting is
//! by tokio's clock, which a test can pause.

use std::fmt;
use std::sync::Arc;

use uuid::{Builder, Uuid};

/// The wall clock and a source of random numbers. Cheap to clone.
#[derive(Clone)]
pub struct Surroundings {
    now_ms: Arc<dyn Fn() -> i64 + Send + Sync>,
    random: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").finish_non_exhaustive()
    }
}

impl Default for Surroundings {
    fn default() -> Self {
        Self::system()
    }
}

impl Surroundings {
    /// The machine's clock and randomness.
    #[must_use]
    pub fn system() -> Self {
        Self::new(|| chrono::Utc::now().timestamp_millis(), rand::random)
    }

    /// A clock (milliseconds since the epoch) and a source of random numbers of one's own.
    pub fn new(
        now_ms: impl Fn() -> i64 + Send + Sync + 'static,
        random: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self { now_ms: Arc::new(now_ms), random: Arc::new(random) }
    }

    /// The wall clock, in milliseconds since the epoch.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        (self.now_ms)()
    }

    /// A random number in `[0, 1)`.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        // The 53 bits that a float of this size holds exactly.
        ((self.random)() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A new identity: a UUID of version 7, so that names sort by time.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        let millis = u64::try_from(self.now_ms()).unwrap_or(0);
        let mut random = [0; 10];
        random[..8].copy_from_slice(&(self.random)().to_be_bytes());
        random[8..].copy_from_slice(&(self.random)().to_be_bytes()[..2]);
        Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn what_is_given_decides() {
        let count = AtomicU64::new(0);
        let random = move || count.fetch_add(1, Ordering::Relaxed) << 60;
        let world = Surroundings::new(|| 1_700_000_000_000, random);
        assert_eq!(world.now_ms(), 1_700_000_000_000);
        assert_eq!(world.fraction(), 0.0);
        assert_eq!(world.fraction(), 1.0 / 16.0);
        let (a, b) = (world.uuid(), world.uuid());
        assert_eq!((a.get_version_num(), a < b), (7, true), "{a} {b}");
        let seconds = a.get_timestamp().map(|at| at.to_unix().0);
        assert_eq!(seconds, Some(1_700_000_000));
    }

    #[test]
    fn the_system_gives_a_new_identity_each_time() {
        let system = Surroundings::system();
        assert_ne!(system.uuid(), system.uuid());
        assert!((0.0..1.0).contains(&system.fraction()));
    }
}
