//! File sizes as a histogram: bars of file counts, the bytes beside them.

use std::fmt::Write as _;

use firn_policies::{Bucket, Histogram};
use serde::Serialize;

use crate::render::bars;
use crate::units;

/// Sizes of files, counted and summed up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Sizes {
    /// How many files.
    pub files: u64,
    /// Their sizes together.
    pub bytes: u64,
    /// Bytes per file; zero without files.
    pub mean_bytes: u64,
    /// The size of the middle file; zero without files.
    pub median_bytes: u64,
    /// The smallest file; zero without files.
    pub min_bytes: u64,
    /// The largest file.
    pub max_bytes: u64,
    /// Files by size.
    #[serde(flatten)]
    pub histogram: Histogram,
}

impl Sizes {
    /// Counts sizes in bytes.
    pub(crate) fn of(sizes: impl IntoIterator<Item = u64>) -> Self {
        let mut sizes: Vec<u64> = sizes.into_iter().collect();
        sizes.sort_unstable();
        let files = sizes.len() as u64;
        let bytes: u64 = sizes.iter().sum();
        Self {
            files,
            bytes,
            mean_bytes: bytes.checked_div(files).unwrap_or(0),
            median_bytes: sizes.get(sizes.len() / 2).copied().unwrap_or(0),
            min_bytes: sizes.first().copied().unwrap_or(0),
            max_bytes: sizes.last().copied().unwrap_or(0),
            histogram: sizes.into_iter().collect(),
        }
    }

    /// One line: `1,234 files, 1.21 GiB, mean 1.00 MiB, median 900 KiB, 4.00 KiB to 12.0 MiB`.
    pub(crate) fn summary(&self) -> String {
        if self.files == 0 {
            return "no files".to_owned();
        }
        format!(
            "{} {}, {}, mean {}, median {}, {} to {}",
            units::format_count(self.files),
            if self.files == 1 { "file" } else { "files" },
            units::format_bytes(self.bytes),
            units::format_bytes(self.mean_bytes),
            units::format_bytes(self.median_bytes),
            units::format_bytes(self.min_bytes),
            units::format_bytes(self.max_bytes),
        )
    }
}

/// Lines of at most `width` characters: range, bar, files, bytes. Empty buckets at both ends are left out.
pub(crate) fn lines(histogram: &Histogram, width: usize) -> String {
    const LABELS: usize = 18;
    const NUMBERS: usize = 22;
    let buckets = filled(&histogram.buckets);
    let most = buckets.iter().map(|bucket| bucket.files).max().unwrap_or(0).max(1);
    let room = width.saturating_sub(LABELS + NUMBERS + 4).clamp(8, 60);
    let mut out = String::new();
    for bucket in buckets {
        let drawn = bars::bar(bucket.files as f64 / most as f64, room);
        let padding = " ".repeat(room - drawn.chars().count());
        let _ = writeln!(
            out,
            "  {:>LABELS$} {drawn}{padding} {:>9} {:>12}",
            range(bucket),
            units::format_count(bucket.files),
            units::format_bytes(bucket.bytes),
        );
    }
    out
}

/// From the first bucket with files to the last one.
fn filled(buckets: &[Bucket]) -> &[Bucket] {
    let has_files = |bucket: &Bucket| bucket.files > 0;
    match (buckets.iter().position(has_files), buckets.iter().rposition(has_files)) {
        (Some(first), Some(last)) => &buckets[first..=last],
        _ => &[],
    }
}

/// `64 to 256 KiB`, `2 GiB and more`.
fn range(bucket: &Bucket) -> String {
    let short = |bytes: u64| units::format_bytes(bytes).replace(".00", "").replace(".0", "");
    match bucket.to_bytes {
        Some(to) if bucket.from_bytes == 0 => format!("below {}", short(to)),
        Some(to) => format!("{} to {}", short(bucket.from_bytes), short(to)),
        None => format!("{} and more", short(bucket.from_bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    #[test]
    fn sizes_are_summed_up() {
        let sizes = Sizes::of([130 * KIB, 50 * KIB, 50 * KIB]);
        assert_eq!((sizes.files, sizes.bytes, sizes.mean_bytes), (3, 230 * KIB, 230 * KIB / 3));
        assert_eq!((sizes.median_bytes, sizes.min_bytes, sizes.max_bytes), (50 * KIB, 50 * KIB, 130 * KIB));
        assert_eq!(sizes.summary(), "3 files, 230 KiB, mean 76.7 KiB, median 50.0 KiB, 50.0 KiB to 130 KiB");
    }

    #[test]
    fn no_files_are_no_lines() {
        let sizes = Sizes::of([]);
        assert_eq!(lines(&sizes.histogram, 80), "");
        assert_eq!(sizes.summary(), "no files");
    }

    #[test]
    fn it_is_drawn_with_labels_bars_and_numbers() {
        let sizes = std::iter::repeat_n(50 * KIB, 8).chain([5 * MIB, 5 * MIB, 5 * MIB]);
        let expected = "
        below 64 KiB ████████████████         8      400 KiB
   64 KiB to 256 KiB                          0          0 B
    256 KiB to 1 MiB                          0          0 B
      1 MiB to 4 MiB                          0          0 B
     4 MiB to 16 MiB ██████                   3     15.0 MiB
";
        assert_eq!(format!("\n{}", lines(&Sizes::of(sizes).histogram, 60)), expected);
    }
}
