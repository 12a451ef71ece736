//! How many bytes on storage the rows of an open row group will take.
//!
//! The Parquet writer counts closed pages compressed and open pages uncompressed; with many columns the open
//! pages are most of a row group, and the count is several times too high. So the bytes of the batches are
//! multiplied by a measured ratio: that of the row group that was closed last, or, before the first, that of
//! the latest few megabytes of rows, which are encoded on the side now and then. The writer's own count is an
//! upper bound.

use std::collections::VecDeque;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType};
use parquet::file::metadata::RowGroupMetaData;

/// Below so many bytes of batches the open row group is counted as it is.
const FIRST_SAMPLE_BYTES: u64 = 256 << 10;
/// A sample is taken again when the row group has grown by this factor.
const SAMPLE_FACTOR: u64 = 4;
/// The latest rows that are kept to be sampled.
const WINDOW_BYTES: u64 = 4 << 20;

/// The state of the estimate for one file.
#[derive(Debug)]
pub(super) struct SizeEstimate {
    /// Bytes of the batches in the open row group.
    raw_bytes: u64,
    /// Bytes on storage for each byte of a batch.
    ratio: Option<f64>,
    window: VecDeque<(u64, RecordBatch)>,
    window_bytes: u64,
    /// The bytes of the open row group at which a sample is taken; `None` where none is any more.
    next_sample: Option<u64>,
}

impl SizeEstimate {
    /// An estimate that asks for samples.
    pub(super) fn sampled() -> Self {
        Self { next_sample: Some(FIRST_SAMPLE_BYTES), ..Self::counted() }
    }

    /// An estimate that is right after the first row group was closed.
    pub(super) fn counted() -> Self {
        Self { raw_bytes: 0, ratio: None, window: VecDeque::new(), window_bytes: 0, next_sample: None }
    }

    /// Counts a batch, and says what to encode on the side: nothing, most of the time.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<Vec<RecordBatch>, ArrowError> {
        let bytes = raw_bytes(batch)?;
        self.raw_bytes += bytes;
        let Some(next) = self.next_sample else { return Ok(Vec::new()) };
        self.window.push_back((bytes, batch.clone()));
        self.window_bytes += bytes;
        while let Some((first, _)) = self.window.front()
            && self.window_bytes - first >= WINDOW_BYTES
        {
            self.window_bytes -= first;
            self.window.pop_front();
        }
        if self.raw_bytes < next {
            return Ok(Vec::new());
        }
        self.next_sample = Some(self.raw_bytes * SAMPLE_FACTOR);
        Ok(self.window.iter().map(|(_, batch)| batch.clone()).collect())
    }

    /// Learns from the sample.
    pub(super) fn learn(&mut self, groups: &[RowGroupMetaData]) {
        let encoded: i64 = groups.iter().map(RowGroupMetaData::compressed_size).sum();
        self.ratio = Some(encoded as f64 / self.window_bytes.max(1) as f64);
    }

    /// Learns from the row group that was just closed; from now on samples are not needed.
    pub(super) fn closed(&mut self, groups: &[RowGroupMetaData]) {
        if let Some(last) = groups.last() {
            self.ratio = Some(last.compressed_size() as f64 / self.raw_bytes.max(1) as f64);
        }
        self.raw_bytes = 0;
        self.next_sample = None;
        self.window.clear();
        self.window_bytes = 0;
    }

    /// Bytes on storage of the open row group; `counted` is what the Parquet writer says.
    pub(super) fn in_progress(&self, counted: u64) -> u64 {
        match self.ratio {
            Some(ratio) => counted.min((self.raw_bytes as f64 * ratio) as u64),
            None => counted,
        }
    }

    /// Memory that the kept rows take.
    pub(super) fn memory_bytes(&self) -> usize {
        usize::try_from(self.window_bytes).unwrap_or(usize::MAX)
    }
}

fn raw_bytes(batch: &RecordBatch) -> Result<u64, ArrowError> {
    let bytes: Result<usize, ArrowError> = batch.columns().iter().map(array_bytes).sum();
    Ok(bytes? as u64)
}

/// The bytes of an array's own slice: Arrow's count takes the elements of a sliced list whole.
fn array_bytes(array: &ArrayRef) -> Result<usize, ArrowError> {
    match array.data_type() {
        DataType::Struct(_) => array.as_struct().columns().iter().map(array_bytes).sum(),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            elements_bytes(list.values(), list.offsets())
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            let (keys, values) = (map.keys(), map.values());
            Ok(elements_bytes(keys, map.offsets())? + elements_bytes(values, map.offsets())?)
        }
        _ => array.to_data().get_slice_memory_size(),
    }
}

fn elements_bytes(elements: &ArrayRef, offsets: &OffsetBuffer<i32>) -> Result<usize, ArrowError> {
    let (start, end) = (offsets[0] as usize, offsets[offsets.len() - 1] as usize);
    Ok(size_of_val(offsets.as_ref()) + array_bytes(&elements.slice(start, end - start))?)
}
