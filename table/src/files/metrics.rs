//! Iceberg's metrics of a file, from the Parquet footer and, for floats, from the values as they pass.
//!
//! The footer's statistics of floats are not used: Iceberg orders `-0.0` before `+0.0` and excludes NaN,
//! which it counts. Bounds that the footer has are combined over row groups before they are cut.

mod bounds;

use std::cmp::Ordering;
use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_schema::ArrowError;
use iceberg::spec::{DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, PrimitiveType};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::statistics::Statistics;

use self::bounds::{Bound, cut, float_bounds, footer_bounds};
use super::FileTarget;
use super::columns::{Leaf, column_at};
use super::format::FileFormat;
use super::metrics_config::MetricsMode;
use crate::{Error, ErrorKind, Result};

/// What is counted of a column of floats while it is written.
#[derive(Debug, Clone, Copy, Default)]
struct FloatRange {
    nans: u64,
    range: Option<(f64, f64)>,
}

impl FloatRange {
    fn add(&mut self, value: f64) {
        if value.is_nan() {
            self.nans += 1;
            return;
        }
        let (low, high) = self.range.unwrap_or((value, value));
        let low = if value.total_cmp(&low) == Ordering::Less { value } else { low };
        let high = if value.total_cmp(&high) == Ordering::Greater { value } else { high };
        self.range = Some((low, high));
    }
}

/// The floats of a file, by field id. Columns inside lists and maps are left out.
#[derive(Debug, Default)]
pub(super) struct FloatMetrics {
    columns: HashMap<i32, FloatRange>,
}

impl FloatMetrics {
    /// Counts a batch.
    pub(super) fn update(&mut self, format: &FileFormat, batch: &RecordBatch) -> Result<(), ArrowError> {
        for leaf in format.leaves() {
            let float = matches!(leaf.primitive, PrimitiveType::Float | PrimitiveType::Double);
            if !float || format.metrics().mode(leaf.id) == MetricsMode::None {
                continue;
            }
            let Some(path) = &leaf.path else { continue };
            let array = column_at(batch, path)?;
            let range = self.columns.entry(leaf.id).or_default();
            if leaf.primitive == PrimitiveType::Float {
                array.as_primitive::<Float32Type>().iter().flatten().for_each(|v| range.add(f64::from(v)));
            } else {
                array.as_primitive::<Float64Type>().iter().flatten().for_each(|v| range.add(v));
            }
        }
        Ok(())
    }
}

/// Iceberg's metrics of one file.
#[derive(Debug, Clone, Default)]
pub(super) struct FileMetrics {
    record_count: u64,
    file_bytes: u64,
    column_sizes: HashMap<i32, u64>,
    value_counts: HashMap<i32, u64>,
    null_counts: HashMap<i32, u64>,
    nan_counts: HashMap<i32, u64>,
    lower: HashMap<i32, Datum>,
    upper: HashMap<i32, Datum>,
    split_offsets: Vec<i64>,
}

impl FileMetrics {
    /// Collects the metrics of a file of `file_bytes`.
    pub(super) fn collect(
        format: &FileFormat,
        footer: &ParquetMetaData,
        floats: &FloatMetrics,
        file_bytes: u64,
    ) -> Result<Self> {
        let mut metrics = Self {
            record_count: footer.file_metadata().num_rows().cast_unsigned(),
            file_bytes,
            split_offsets: footer
                .row_groups()
                .iter()
                .map(|group| group.columns().first().map_or(4, |first| first.byte_range().0.cast_signed()))
                .collect(),
            ..Self::default()
        };
        for (index, leaf) in format.leaves().iter().enumerate() {
            let chunks: Vec<_> = footer.row_groups().iter().map(|group| group.column(index)).collect();
            metrics.add_column(leaf, &chunks, format.metrics().mode(leaf.id), floats)?;
        }
        Ok(metrics)
    }

    fn add_column(
        &mut self,
        leaf: &Leaf,
        chunks: &[&ColumnChunkMetaData],
        mode: MetricsMode,
        floats: &FloatMetrics,
    ) -> Result<()> {
        let bytes: i64 = chunks.iter().map(|chunk| chunk.compressed_size()).sum();
        self.column_sizes.insert(leaf.id, bytes.cast_unsigned());
        if mode == MetricsMode::None {
            return Ok(());
        }
        let values: i64 = chunks.iter().map(|chunk| chunk.num_values()).sum();
        self.value_counts.insert(leaf.id, values.cast_unsigned());
        let nulls: Option<u64> =
            chunks.iter().map(|chunk| chunk.statistics().and_then(Statistics::null_count_opt)).sum();
        if let Some(nulls) = nulls {
            self.null_counts.insert(leaf.id, nulls);
        }
        if leaf.path.is_none() {
            return Ok(());
        }
        let bounds = match leaf.primitive {
            PrimitiveType::Float | PrimitiveType::Double => {
                let seen = floats.columns.get(&leaf.id).copied().unwrap_or_default();
                self.nan_counts.insert(leaf.id, seen.nans);
                seen.range.map(|(low, high)| float_bounds(leaf, low, high))
            }
            _ => footer_bounds(chunks),
        };
        if let (Some((low, high)), MetricsMode::Truncate(_) | MetricsMode::Full) = (bounds, mode) {
            self.add_bounds(leaf, low, high, mode)?;
        }
        Ok(())
    }

    fn add_bounds(&mut self, leaf: &Leaf, low: Bound, high: Bound, mode: MetricsMode) -> Result<()> {
        let (low, high) = match mode {
            MetricsMode::Truncate(length) => cut(leaf, low, high, length)?,
            _ => (low, Some(high)),
        };
        self.lower.insert(leaf.id, low.datum(leaf)?);
        if let Some(high) = high {
            self.upper.insert(leaf.id, high.datum(leaf)?);
        }
        Ok(())
    }

    /// The manifest entry's file.
    pub(super) fn data_file(self, target: &FileTarget) -> Result<DataFile> {
        DataFileBuilder::default()
            .content(DataContentType::Data)
            .file_path(target.location.clone())
            .file_format(DataFileFormat::Parquet)
            .partition(target.partition.clone())
            .partition_spec_id(target.spec.spec_id())
            .record_count(self.record_count)
            .file_size_in_bytes(self.file_bytes)
            .column_sizes(self.column_sizes)
            .value_counts(self.value_counts)
            .null_value_counts(self.null_counts)
            .nan_value_counts(self.nan_counts)
            .lower_bounds(self.lower)
            .upper_bounds(self.upper)
            .split_offsets(Some(self.split_offsets))
            .build()
            .map_err(|cause| {
                Error::new(ErrorKind::Internal, "a data file has all its required fields").with_source(cause)
            })
    }
}
