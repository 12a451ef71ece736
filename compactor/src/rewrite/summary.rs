//! What a group read, and whether what it wrote is the same.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_schema::Field;
use firn_table::files::{Checksum, NewFile};

use crate::rewrite::Verify;
use crate::{Error, ErrorKind, Result};

/// The key under which Arrow keeps a field's id.
const FIELD_ID: &str = "PARQUET:field_id";

/// Rows, nulls by column and, for full verification, checksums. Adding is commutative.
#[derive(Debug, Clone, Default)]
pub(super) struct Summary {
    rows: u64,
    /// Nulls by the field id of each column at the top level.
    nulls: BTreeMap<i32, u64>,
    checksum: Option<Checksum>,
}

impl Summary {
    pub(super) fn new(verify: Verify) -> Self {
        let checksum = (verify == Verify::Full).then(Checksum::default);
        Self { checksum, ..Self::default() }
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            if let Some(id) = field_id(field) {
                *self.nulls.entry(id).or_default() += column.null_count() as u64;
            }
        }
        match &mut self.checksum {
            Some(checksum) => checksum.update(batch),
            None => Ok(()),
        }
    }

    /// Compares with the metadata of the files that were written.
    pub(super) fn check_metadata(&self, outputs: &[NewFile]) -> Result<()> {
        let rows: u64 = outputs.iter().map(|output| output.file.record_count()).sum();
        if rows != self.rows {
            return Err(mismatch(format!("{} rows were read and {rows} written", self.rows)));
        }
        for (id, nulls) in &self.nulls {
            // Metrics of a column may be switched off, or not be kept for its type.
            let counts: Option<Vec<u64>> =
                outputs.iter().map(|output| output.file.null_value_counts().get(id).copied()).collect();
            let Some(written) = counts.map(|counts| counts.into_iter().sum::<u64>()) else { continue };
            if !outputs.is_empty() && written != *nulls {
                return Err(mismatch(format!(
                    "the column with field id {id} had {nulls} nulls when read and {written} when written"
                )));
            }
        }
        Ok(())
    }

    /// Compares with the rows of the files that were written, read back.
    pub(super) fn check_rows(&self, read_back: &Self) -> Result<()> {
        let difference = match (&self.checksum, &read_back.checksum) {
            (Some(read), Some(written)) => read.difference(written),
            _ => None,
        };
        difference.map_or(Ok(()), |difference| Err(mismatch(difference)))
    }
}

fn field_id(field: &Field) -> Option<i32> {
    field.metadata().get(FIELD_ID).and_then(|id| id.parse().ok())
}

fn mismatch(difference: String) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!(
            "the rewritten files do not hold the rows of their inputs, so nothing is committed: {difference}"
        ),
    )
}
