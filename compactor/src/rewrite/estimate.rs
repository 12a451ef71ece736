//! When an open file is full: its size, which its writer estimates, against the rows that are still to come.

use firn_policies::Sizes;

/// A file is looked at this often before it is full.
const LOOKS_PER_FILE: f64 = 64.0;

/// Bytes and rows, of an open file or of several that were closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) bytes: u64,
    pub(super) rows: u64,
}

/// What the rows of a group take on storage, as far as known.
#[derive(Debug, Clone, Copy)]
pub(super) struct SizeEstimate {
    inputs: Volume,
    closed: Volume,
}

impl SizeEstimate {
    /// Begins with what the inputs have: many small files hold more bytes per row than few large ones.
    pub(super) fn of_inputs(inputs: Volume) -> Self {
        Self { inputs, closed: Volume::default() }
    }

    /// Learns from an output that was closed.
    pub(super) fn closed(&mut self, file: Volume) {
        self.closed.bytes += file.bytes;
        self.closed.rows += file.rows;
    }

    /// Whether an open file is full, with `rest_rows` still to come after it.
    pub(super) fn is_full(&self, sizes: &Sizes, open: Volume, rest_rows: u64) -> bool {
        let rest_bytes = whole(self.bytes_per_row(open) * float(rest_rows));
        let remaining = open.bytes.saturating_add(rest_bytes);
        sizes.cut(remaining).is_some_and(|cut| open.bytes >= cut)
    }

    /// Rows to write before the next look at the size.
    pub(super) fn rows_between_looks(&self, target_bytes: u64) -> usize {
        let bytes_per_row = self.bytes_per_row(Volume::default()).max(1e-3);
        let rows = whole(float(target_bytes) / LOOKS_PER_FILE / bytes_per_row);
        usize::try_from(rows.max(1)).unwrap_or(usize::MAX)
    }

    /// By what was written so far; before the first row, by the inputs.
    fn bytes_per_row(&self, open: Volume) -> f64 {
        let rows = self.closed.rows + open.rows;
        if rows > 0 {
            float(self.closed.bytes + open.bytes) / float(rows)
        } else {
            float(self.inputs.bytes) / float(self.inputs.rows.max(1))
        }
    }
}

// Sizes and row counts are far below 2^53; an estimate needs no more.
#[allow(clippy::cast_precision_loss)]
fn float(value: u64) -> f64 {
    value as f64
}

// The cast saturates, and no estimate is negative.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn volume(mebibytes: u64, rows: u64) -> Volume {
        Volume { bytes: mebibytes * MIB, rows }
    }

    #[test]
    fn a_file_is_full_at_its_share_of_what_remains() {
        let sizes = Sizes::of_target(100 * MIB);
        let estimate = SizeEstimate::of_inputs(volume(1000, 1));
        assert!(!estimate.is_full(&sizes, volume(100, 100), 0));
        assert!(!estimate.is_full(&sizes, volume(100, 100), 40));
        assert!(estimate.is_full(&sizes, volume(101, 101), 45));
        assert!(!estimate.is_full(&sizes, volume(104, 104), 211));
        assert!(!estimate.is_full(&sizes, volume(99, 99), 1000));
        assert!(estimate.is_full(&sizes, volume(101, 101), 1000));
    }

    #[test]
    fn rows_to_come_are_taken_to_be_like_those_written() {
        let sizes = Sizes::of_target(100 * MIB);
        let mut estimate = SizeEstimate::of_inputs(volume(1000, 1000));
        // The inputs had a MiB per row, the open file has a tenth of that: the rest fits it.
        assert!(!estimate.is_full(&sizes, volume(101, 1010), 100));
        estimate.closed(volume(1000, 1000));
        assert!(estimate.is_full(&sizes, volume(120, 1200), 1000));
    }

    #[test]
    fn sizes_are_looked_at_often_enough() {
        let mut estimate = SizeEstimate::of_inputs(Volume { bytes: 6400, rows: 100 });
        assert_eq!(estimate.rows_between_looks(MIB), 256);
        estimate.closed(Volume { bytes: 3200, rows: 100 });
        assert_eq!(estimate.rows_between_looks(MIB), 512);
        assert_eq!(SizeEstimate::of_inputs(Volume { bytes: 100, rows: 1 }).rows_between_looks(64), 1);
        assert!(SizeEstimate::of_inputs(Volume::default()).rows_between_looks(MIB) > 1_000_000);
    }
}
