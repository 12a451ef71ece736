//! Encoding of batches into one Parquet file in memory, and the estimate of its size on storage.

mod size;

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use bytes::Bytes;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use self::size::SizeEstimate;
use super::format::FileFormat;
use super::metrics::{FileMetrics, FloatMetrics};
use super::project::conform;
use super::{FileTarget, NewFile, dictionary};
use crate::{Error, ErrorKind, Result};

/// Rows that are encoded before the size of the row group is looked at again.
const STEP_ROWS: usize = 16_384;

/// Encodes batches into one Parquet file in memory: no I/O, no async, so that it can run on any worker
/// thread. [`encode_file`] and [`DataFileWriter`](super::DataFileWriter) are built on it.
pub struct FileEncoder {
    format: FileFormat,
    /// Opened by the first batch, which decides on dictionaries.
    open: Option<Open>,
    taken_bytes: u64,
    estimate: Estimate,
}

/// How carefully the size of the open row group is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Estimate {
    /// By samples: within 15 % also before the first row group is closed.
    Sampled,
    /// By the Parquet writer's count, which may be several times too high.
    Counted,
}

struct Open {
    writer: ArrowWriter<Vec<u8>>,
    properties: WriterProperties,
    floats: FloatMetrics,
    size: SizeEstimate,
    rows: u64,
}

impl fmt::Debug for FileEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileEncoder")
            .field("rows", &self.rows())
            .field("estimated_bytes", &self.estimated_bytes())
            .finish_non_exhaustive()
    }
}

impl FileEncoder {
    /// An encoder without rows.
    #[must_use]
    pub fn new(format: &FileFormat) -> Self {
        Self { format: format.clone(), open: None, taken_bytes: 0, estimate: Estimate::Sampled }
    }

    /// An encoder whose size nobody asks for: it takes no samples.
    fn unmeasured(format: &FileFormat) -> Self {
        Self { estimate: Estimate::Counted, ..Self::new(format) }
    }

    /// Encodes a batch of [`FileFormat::arrow_schema`]; metadata and nullability of its fields may differ.
    /// `Data` where a required column has a null, `Internal` where the batch has other columns.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let batch = conform(batch, self.format.arrow_schema())?;
        if self.open.is_none() {
            self.open = Some(Open::new(&self.format, &batch, self.estimate)?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        open.floats.update(&self.format, &batch).map_err(|cause| encode_error(cause.into()))?;
        open.rows += batch.num_rows() as u64;
        for start in (0..batch.num_rows()).step_by(STEP_ROWS) {
            let rows = STEP_ROWS.min(batch.num_rows() - start);
            open.encode(&self.format, &batch.slice(start, rows)).map_err(encode_error)?;
        }
        Ok(())
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.rows)
    }

    /// Bytes on storage so far, with an estimate for what is still buffered: within about 15 %, and too high
    /// for less than some 100 KiB.
    #[must_use]
    pub fn estimated_bytes(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.writer.bytes_written() as u64 + open.in_progress_bytes())
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.open.as_ref().map_or(0, |open| {
            open.writer.memory_size() + open.writer.inner().capacity() + open.size.memory_bytes()
        })
    }

    /// Takes the encoded bytes that are final: closed row groups, in file order.
    pub fn take_bytes(&mut self) -> Result<Bytes> {
        let Some(open) = &mut self.open else { return Ok(Bytes::new()) };
        open.writer.sync().map_err(|cause| encode_error(cause.into()))?;
        let bytes = std::mem::take(open.writer.inner_mut());
        self.taken_bytes += bytes.len() as u64;
        Ok(bytes.into())
    }

    /// Bytes that [`Self::take_bytes`] would take, but for a remainder of a few KiB.
    pub(super) fn final_bytes(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.writer.inner().len())
    }

    /// Writes the footer; `None` where no row was written.
    pub fn finish(self) -> Result<Option<EncodedFile>> {
        let Some(mut open) = self.open else { return Ok(None) };
        let footer = open.writer.finish().map_err(encode_error)?;
        let bytes = std::mem::take(open.writer.inner_mut());
        let file_bytes = self.taken_bytes + bytes.len() as u64;
        let metrics = FileMetrics::collect(&self.format, &footer, &open.floats, file_bytes)?;
        Ok(Some(EncodedFile { bytes: bytes.into(), metrics }))
    }
}

impl Open {
    fn new(format: &FileFormat, first: &RecordBatch, estimate: Estimate) -> Result<Self> {
        let properties = format.writer_properties(&dictionary::choose(first)?);
        Ok(Self {
            writer: open_writer(format, properties.clone()).map_err(encode_error)?,
            properties,
            floats: FloatMetrics::default(),
            size: match estimate {
                Estimate::Sampled => SizeEstimate::sampled(),
                Estimate::Counted => SizeEstimate::counted(),
            },
            rows: 0,
        })
    }

    fn encode(&mut self, format: &FileFormat, batch: &RecordBatch) -> Result<(), ParquetError> {
        self.writer.write(batch)?;
        let sample = self.size.add(batch)?;
        if !sample.is_empty() {
            let mut aside = open_writer(format, self.properties.clone())?;
            for batch in &sample {
                aside.write(batch)?;
            }
            aside.flush()?;
            self.size.learn(aside.flushed_row_groups());
        }
        if self.in_progress_bytes() >= format.limits().row_group_bytes as u64 {
            self.writer.flush()?;
            self.size.closed(self.writer.flushed_row_groups());
        }
        Ok(())
    }

    fn in_progress_bytes(&self) -> u64 {
        self.size.in_progress(self.writer.in_progress_size() as u64)
    }
}

fn open_writer(
    format: &FileFormat,
    properties: WriterProperties,
) -> Result<ArrowWriter<Vec<u8>>, ParquetError> {
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true)
        .with_parquet_schema(format.parquet_schema().clone());
    ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(format.arrow_schema()), options)
}

fn encode_error(cause: ParquetError) -> Error {
    let kind = match &cause {
        ParquetError::External(inner) if inner.is::<ArrowError>() => ErrorKind::Data,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, "a batch could not be encoded as Parquet").with_source(cause)
}

/// An encoded file: its bytes (those not taken before, with the footer) and its metrics.
#[derive(Debug, Clone)]
pub struct EncodedFile {
    bytes: Bytes,
    metrics: FileMetrics,
}

impl EncodedFile {
    /// The bytes; all of the file where none were taken from the encoder before.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The file as it will stand in a manifest.
    pub fn new_file(self, target: &FileTarget) -> Result<NewFile> {
        Ok(NewFile { spec_id: target.spec.spec_id(), file: self.metrics.data_file(target)? })
    }
}

/// Encodes batches into one file; `None` where they have no row. Synchronous: run it on a blocking thread.
pub fn encode_file(format: &FileFormat, batches: &[RecordBatch]) -> Result<Option<EncodedFile>> {
    let mut encoder = FileEncoder::unmeasured(format);
    for batch in batches {
        encoder.write(batch)?;
    }
    encoder.finish()
}

#[cfg(test)]
mod tests;
