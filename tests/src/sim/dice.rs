//! Randomness under a seed. Each concern throws dice of its own, so that one more throw in one place changes nothing
//! in another.

use std::hash::Hasher;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Random numbers that are the same whenever the seed is. Clones share the state.
#[derive(Debug, Clone)]
pub struct Dice {
    random: Arc<Mutex<ChaCha8Rng>>,
    seed: u64,
}

impl Dice {
    /// The dice of a run.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(seed))), seed }
    }

    /// Other dice, for one concern of the run; the same for the same name, however often these were thrown.
    #[must_use]
    pub fn of(&self, concern: &str) -> Self {
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        hash.write(&self.seed.to_le_bytes());
        hash.write(concern.as_bytes());
        Self::new(hash.finish())
    }

    /// A number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.with(Rng::random)
    }

    /// A number of a range, which is not empty.
    #[must_use]
    pub fn within(&self, range: Range<u64>) -> u64 {
        self.with(|random| random.random_range(range))
    }

    /// A time of a range in milliseconds.
    #[must_use]
    pub fn millis(&self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.within(range))
    }

    /// Whether something happens that has this chance.
    #[must_use]
    pub fn chance(&self, share: f64) -> bool {
        self.with(|random| random.random_bool(share.clamp(0.0, 1.0)))
    }

    /// One of several; there is at least one.
    #[must_use]
    pub fn one_of<T: Copy>(&self, choices: &[T]) -> T {
        let index = self.within(0..choices.len() as u64);
        choices[usize::try_from(index).unwrap_or(0)]
    }

    fn with<T>(&self, throw: impl FnOnce(&mut ChaCha8Rng) -> T) -> T {
        throw(&mut self.random.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// FNV-1a: the standard library's hasher has keys that differ from process to process.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_concern_has_the_same_dice_however_often_others_were_thrown() {
        let (a, b) = (Dice::new(7), Dice::new(7));
        let _ = (a.number(), a.chance(0.5));
        assert_eq!(a.of("network").number(), b.of("network").number());
        assert_ne!(b.of("network").number(), b.of("actors").number());
        assert_ne!(Dice::new(8).of("network").number(), b.of("network").number());
    }
}
