//! File sizes in buckets.

use serde::{Deserialize, Serialize};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Where buckets begin. Finer around the sizes that tables are compacted to.
const STARTS: [u64; 12] =
    [0, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, 512 * MIB, GIB, 2 * GIB];

/// Files whose size is in `[from_bytes, to_bytes)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The smallest size.
    pub from_bytes: u64,
    /// The first size above the bucket; `None` in the last one.
    pub to_bytes: Option<u64>,
    /// Files in it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// File sizes in buckets that are the same for every table, so that histograms can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// All buckets in ascending order, empty ones included.
    pub buckets: Vec<Bucket>,
}

impl Default for Histogram {
    fn default() -> Self {
        let ends = STARTS.iter().skip(1).copied().map(Some).chain([None]);
        let buckets = STARTS.iter().zip(ends);
        Self {
            buckets: buckets
                .map(|(&from_bytes, to_bytes)| Bucket { from_bytes, to_bytes, files: 0, bytes: 0 })
                .collect(),
        }
    }
}

impl Histogram {
    /// Adds a file.
    pub fn add(&mut self, bytes: u64) {
        let index = self.buckets.partition_point(|bucket| bucket.from_bytes <= bytes).saturating_sub(1);
        if let Some(bucket) = self.buckets.get_mut(index) {
            bucket.files += 1;
            bucket.bytes += bytes;
        }
    }

    /// Files in all buckets.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.files).sum()
    }

    /// Bytes in all buckets.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.bytes).sum()
    }
}

impl FromIterator<u64> for Histogram {
    fn from_iter<I: IntoIterator<Item = u64>>(sizes: I) -> Self {
        let mut histogram = Self::default();
        for bytes in sizes {
            histogram.add(bytes);
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_at_a_boundary_is_in_the_bucket_that_begins_there() {
        let histogram: Histogram = [0, 64 * KIB - 1, 64 * KIB, 512 * MIB, 5 * GIB].into_iter().collect();
        let filled: Vec<(u64, u64)> = histogram
            .buckets
            .iter()
            .filter(|bucket| bucket.files > 0)
            .map(|bucket| (bucket.from_bytes, bucket.files))
            .collect();
        assert_eq!(filled, [(0, 2), (64 * KIB, 1), (512 * MIB, 1), (2 * GIB, 1)]);
        assert_eq!(histogram.files(), 5);
        assert_eq!(histogram.bytes(), 128 * KIB - 1 + 512 * MIB + 5 * GIB);
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let histogram = Histogram::default();
        for pair in histogram.buckets.windows(2) {
            assert_eq!(pair[0].to_bytes, Some(pair[1].from_bytes));
        }
        assert_eq!(histogram.buckets.last().map(|bucket| bucket.to_bytes), Some(None));
    }
}
