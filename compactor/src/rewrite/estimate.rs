//! How large an open file will be, and the rows that are still to come.
//!
//! A Parquet writer knows the size of closed row groups exactly, but counts what it still buffers uncompressed: with
//! many columns and a small target that is several times the truth. So bytes per row are measured: first on a sample
//! that is encoded apart, then on every file that was closed. The writer's own count bounds what they say.

use firn_policies::Sizes;

/// What one leaf column buffers uncompressed at most: a page and a dictionary.
const BUFFERED_COLUMN_BYTES: u64 = 2 << 20;
/// What a file has beside its rows: footer and headers of a narrow table.
const FOOTER_BYTES: u64 = 64 << 10;
/// A file is looked at this often before it is full.
const LOOKS_PER_FILE: f64 = 64.0;

/// Bytes per row of the outputs, as far as known.
#[derive(Debug, Clone)]
pub(super) struct SizeEstimate {
    bytes_per_row: f64,
    closed_bytes: u64,
    closed_rows: u64,
    buffered_bytes: u64,
}

impl SizeEstimate {
    /// Begins with what the inputs have: many small files hold more bytes per row than few large ones.
    pub(super) fn of_inputs(bytes: u64, rows: u64, leaf_columns: usize) -> Self {
        Self {
            bytes_per_row: ratio(bytes, rows),
            closed_bytes: 0,
            closed_rows: 0,
            buffered_bytes: BUFFERED_COLUMN_BYTES.saturating_mul(leaf_columns as u64),
        }
    }

    /// Learns from a sample that was encoded apart.
    pub(super) fn sampled(&mut self, bytes: u64, rows: u64) {
        if self.closed_rows == 0 && rows > 0 {
            self.bytes_per_row = ratio(bytes, rows);
        }
    }

    /// Learns from an output that was closed.
    pub(super) fn closed(&mut self, bytes: u64, rows: u64) {
        self.closed_bytes += bytes;
        self.closed_rows += rows;
        self.bytes_per_row = ratio(self.closed_bytes, self.closed_rows);
    }

    /// The bytes of rows.
    pub(super) fn bytes(&self, rows: u64) -> u64 {
        whole(self.bytes_per_row * float(rows))
    }

    /// The size of an open file with `rows`, of which its writer believes `writer_bytes`.
    pub(super) fn file_bytes(&self, rows: u64, writer_bytes: u64) -> u64 {
        let lowest = writer_bytes.saturating_sub(self.buffered_bytes);
        let highest = writer_bytes + writer_bytes / 50 + FOOTER_BYTES;
        self.bytes(rows).clamp(lowest, highest)
    }

    /// Whether an open file is full, with `rest_rows` still to come after it.
    pub(super) fn is_full(&self, sizes: &Sizes, file_bytes: u64, rest_rows: u64) -> bool {
        let remaining = file_bytes.saturating_add(self.bytes(rest_rows));
        sizes.cut(remaining).is_some_and(|cut| file_bytes >= cut)
    }

    /// Rows to write before the next look at the size.
    pub(super) fn rows_between_looks(&self, target_bytes: u64) -> usize {
        let rows = whole(float(target_bytes) / LOOKS_PER_FILE / self.bytes_per_row.max(1e-3));
        usize::try_from(rows.max(1)).unwrap_or(usize::MAX)
    }
}

fn ratio(bytes: u64, rows: u64) -> f64 {
    float(bytes) / float(rows.max(1))
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

    #[test]
    fn a_closed_file_counts_more_than_a_sample_and_a_sample_more_than_the_inputs() {
        let mut estimate = SizeEstimate::of_inputs(1000, 10, 1);
        assert_eq!(estimate.bytes(10), 1000);
        estimate.sampled(50, 1);
        assert_eq!(estimate.bytes(10), 500);
        estimate.closed(300, 10);
        assert_eq!(estimate.bytes(10), 300);
        estimate.sampled(900, 1);
        assert_eq!(estimate.bytes(10), 300);
        estimate.closed(100, 10);
        assert_eq!(estimate.bytes(10), 200);
    }

    #[test]
    fn the_writers_count_bounds_the_estimate() {
        let estimate = SizeEstimate::of_inputs(100 * MIB, 100, 4);
        // Buffers of four columns may be 8 MiB too high, and closed row groups are certain.
        assert_eq!(estimate.file_bytes(10, 100 * MIB), 92 * MIB);
        assert_eq!(estimate.file_bytes(95, 100 * MIB), 95 * MIB);
        assert_eq!(estimate.file_bytes(90, 10 * MIB), 10 * MIB + 10 * MIB / 50 + 64 * 1024);
    }

    #[test]
    fn a_file_is_full_at_its_share_of_what_remains() {
        let sizes = Sizes::of_target(100 * MIB);
        let estimate = SizeEstimate::of_inputs(MIB, 1, 1);
        assert!(!estimate.is_full(&sizes, 100 * MIB, 0));
        assert!(!estimate.is_full(&sizes, 100 * MIB, 40));
        assert!(estimate.is_full(&sizes, 101 * MIB, 45));
        assert!(!estimate.is_full(&sizes, 104 * MIB, 205));
        assert!(!estimate.is_full(&sizes, 99 * MIB, 1000));
        assert!(estimate.is_full(&sizes, 101 * MIB, 1000));
    }

    #[test]
    fn sizes_are_looked_at_often_enough() {
        let estimate = SizeEstimate::of_inputs(6400, 100, 1);
        assert_eq!(estimate.rows_between_looks(MIB), 256);
        assert_eq!(SizeEstimate::of_inputs(100, 1, 1).rows_between_looks(64), 1);
        assert!(SizeEstimate::of_inputs(0, 0, 1).rows_between_looks(MIB) > 1_000_000);
    }
}
