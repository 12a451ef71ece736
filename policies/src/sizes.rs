//! The arithmetic of output sizes, as Iceberg's planners define it.
//!
//! ```text
//! outputs     1 if sum < target; else with full = floor(sum / target):
//!             full + 1 if the rest > min; full if sum / full < min(1.1 × target, roll size); else full + 1
//! roll size   target + 0.5 × (max − target)
//! split size  clamp(sum / outputs + 5 KiB, target, roll size)
//! ```
//!
//! A writer that cuts by these numbers alone leaves a tiny file where the sum is a little above 1.1 × target, so
//! [`Sizes::cut`] lets the last file grow up to the roll size instead. That never makes more files than planned.

use serde::{Deserialize, Serialize};

/// What Iceberg adds to a split for the parts of a file that are not data.
const SPLIT_OVERHEAD_BYTES: u64 = 5 * 1024;

/// The sizes that decide. Always `min < target < max`; all are bytes on storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Files below it are rewritten.
    pub min_bytes: u64,
    /// What outputs should have.
    pub target_bytes: u64,
    /// Files above it are rewritten.
    pub max_bytes: u64,
}

impl Sizes {
    /// Iceberg's defaults for a target: `min = 0.75 × target`, `max = 1.8 × target`.
    #[must_use]
    pub fn of_target(target_bytes: u64) -> Self {
        Self { min_bytes: share(target_bytes, 75), target_bytes, max_bytes: share(target_bytes, 180) }
    }

    /// Whether a file of this size is left alone: `min <= bytes <= max`.
    #[must_use]
    pub fn is_right(&self, bytes: u64) -> bool {
        (self.min_bytes..=self.max_bytes).contains(&bytes)
    }

    /// The size at which a file ends at the latest: `target + 0.5 × (max − target)`.
    #[must_use]
    pub fn roll_bytes(&self) -> u64 {
        self.target_bytes + (self.max_bytes - self.target_bytes) / 2
    }

    /// The number of outputs that Iceberg expects of `sum_bytes`; at least 1.
    #[must_use]
    pub fn outputs(&self, sum_bytes: u64) -> u64 {
        if sum_bytes < self.target_bytes {
            return 1;
        }
        let full = sum_bytes / self.target_bytes;
        let rest = sum_bytes % self.target_bytes;
        let widest = share(self.target_bytes, 110).min(self.roll_bytes());
        if rest <= self.min_bytes && sum_bytes / full < widest { full } else { full + 1 }
    }

    /// The size at which a group is split: `clamp(sum / outputs + 5 KiB, target, roll size)`.
    #[must_use]
    pub fn split_bytes(&self, sum_bytes: u64) -> u64 {
        self.clamp_split(sum_bytes, self.outputs(sum_bytes))
    }

    /// Where to end an open file: the size at which it is full when `remaining_bytes`, its own included, are still to
    /// be written; `None` where all of it fits this file.
    #[must_use]
    pub fn cut(&self, remaining_bytes: u64) -> Option<u64> {
        match self.files(remaining_bytes) {
            1 => None,
            files => Some(self.clamp_split(remaining_bytes, files)),
        }
    }

    /// The sizes of the files that a writer makes of `sum_bytes` when it cuts by [`Self::cut`] and knows all sizes.
    #[must_use]
    pub fn output_sizes(&self, sum_bytes: u64) -> Vec<u64> {
        let mut sizes = Vec::new();
        let mut remaining = sum_bytes;
        while let Some(cut) = self.cut(remaining) {
            sizes.push(cut);
            remaining -= cut;
        }
        if remaining > 0 {
            sizes.push(remaining);
        }
        sizes
    }

    /// As [`Self::outputs`], but a rest that is too small for a file of its own joins the others up to the roll size.
    fn files(&self, bytes: u64) -> u64 {
        let full = bytes / self.target_bytes;
        let rest = bytes % self.target_bytes;
        if full > 0 && rest <= self.min_bytes && bytes.div_ceil(full) <= self.roll_bytes() {
            full
        } else {
            self.outputs(bytes)
        }
    }

    fn clamp_split(&self, bytes: u64, files: u64) -> u64 {
        (bytes / files + SPLIT_OVERHEAD_BYTES).clamp(self.target_bytes, self.roll_bytes())
    }
}

/// `bytes × percent / 100`, rounded down, without overflow for any size that storage has.
fn share(bytes: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
