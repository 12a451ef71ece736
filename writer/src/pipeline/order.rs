//! Rows in the order of their message keys. Where files want it, the key travels with each row as the last column of
//! its batch, through routing and copying, until the file is encoded; it is not part of the file.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, LargeBinaryArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use arrow_select::interleave::interleave_record_batch;
use firn_table::files::{EncodedFile, FileEncoder, FileFormat, encode_file};

use crate::decode::Message;
use crate::{Error, ErrorKind, Result};

/// The order of rows in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowOrder {
    /// As they were decoded.
    Arrival,
    /// By message key, those without one first; rows of one key as they were decoded, so by offset within a topic
    /// partition.
    Key,
}

/// Rows that are gathered at a time.
const STEP_ROWS: usize = 4_096;

impl RowOrder {
    /// Adds to a batch what the order needs.
    pub(crate) fn carry(self, batch: RecordBatch, messages: &[&Message<'_>]) -> Result<RecordBatch> {
        if self == Self::Arrival {
            return Ok(batch);
        }
        let keys: LargeBinaryArray = messages.iter().map(|m| m.key).collect();
        let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new("message key", DataType::LargeBinary, true)));
        let columns: Vec<ArrayRef> = batch.columns().iter().cloned().chain([Arc::new(keys) as _]).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(internal)
    }

    /// Encodes rows in this order. CPU work: run it on a worker thread.
    pub(crate) fn encode(self, format: &FileFormat, batches: &[RecordBatch]) -> Result<Option<EncodedFile>> {
        match self {
            Self::Arrival => encode_file(format, batches),
            Self::Key => encode_by_key(format, batches),
        }
    }
}

fn encode_by_key(format: &FileFormat, batches: &[RecordBatch]) -> Result<Option<EncodedFile>> {
    let (keys, rows): (Vec<_>, Vec<_>) =
        batches.iter().map(without_key).collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let key = |&(batch, row): &(usize, usize)| {
        let keys: &LargeBinaryArray = &keys[batch];
        keys.is_valid(row).then(|| keys.value(row))
    };
    let mut order: Vec<(usize, usize)> = keys
        .iter()
        .enumerate()
        .flat_map(|(batch, keys)| (0..keys.len()).map(move |row| (batch, row)))
        .collect();
    order.sort_by(|a, b| key(a).cmp(&key(b)));
    let rows: Vec<&RecordBatch> = rows.iter().collect();
    let mut encoder = FileEncoder::new(format);
    for step in order.chunks(STEP_ROWS) {
        encoder.write(&interleave_record_batch(&rows, step).map_err(internal)?)?;
    }
    encoder.finish()
}

/// The keys, and the rows without them.
fn without_key(batch: &RecordBatch) -> Result<(LargeBinaryArray, RecordBatch)> {
    let mut rows = batch.clone();
    let last = rows.num_columns().checked_sub(1).map(|last| rows.remove_column(last));
    let keys = last.and_then(|keys| keys.as_any().downcast_ref::<LargeBinaryArray>().cloned());
    let lacking = || Error::new(ErrorKind::Internal, "rows to be written by key came without their keys");
    Ok((keys.ok_or_else(lacking)?, rows))
}

fn internal(cause: ArrowError) -> Error {
    Error::new(ErrorKind::Internal, "rows cannot be put into the order of their keys").with_source(cause)
}
