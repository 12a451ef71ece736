//! The files that come out of a group: opened when there are rows, closed when they are full.

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use firn_policies::Sizes;
use firn_table::files::{DataFileWriter, FileFormat, FileTarget, NewFile, data_file_location};
use firn_table::storage::Stores;
use futures::StreamExt;
use futures::stream;
use iceberg::spec::{PartitionSpec, Struct};
use iceberg::table::Table;
use object_store::ObjectStoreExt;
use tracing::warn;

use crate::Result;
use crate::rewrite::estimate::{SizeEstimate, Volume};
use crate::rewrite::source::from_datafusion;

/// Where a group's files go.
#[derive(Debug, Clone)]
pub(super) struct OutputPlace {
    pub(super) table: Table,
    pub(super) stores: Stores,
    pub(super) format: FileFormat,
    pub(super) spec: Arc<PartitionSpec>,
    pub(super) partition: Struct,
    /// The names begin with it; a number and the extension follow.
    pub(super) name_prefix: String,
}

/// Writes a group's rows to as few files as their size allows.
#[derive(Debug)]
pub(super) struct GroupWriter {
    place: OutputPlace,
    sizes: Sizes,
    estimate: SizeEstimate,
    memory: MemoryReservation,
    /// Rows that are still to be written.
    rest_rows: u64,
    open: Option<OpenFile>,
    closed: Vec<NewFile>,
    /// Every location that was opened, also those whose upload failed half way.
    locations: Vec<String>,
}

#[derive(Debug)]
struct OpenFile {
    writer: DataFileWriter,
    rows: u64,
}

impl GroupWriter {
    /// A writer for the rows of these inputs.
    pub(super) fn new(place: OutputPlace, sizes: Sizes, inputs: Volume, memory: MemoryReservation) -> Self {
        Self {
            place,
            sizes,
            estimate: SizeEstimate::of_inputs(inputs),
            memory,
            rest_rows: inputs.rows,
            open: None,
            closed: Vec::new(),
            locations: Vec::new(),
        }
    }

    /// Takes rows of the format's Arrow schema.
    pub(super) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut offset = 0;
        while offset < batch.num_rows() {
            if self.estimate.is_full(&self.sizes, self.open_volume(), self.rest_rows) {
                self.close_open().await?;
            }
            let look = self.estimate.rows_between_looks(self.sizes.target_bytes);
            let rows = look.min(batch.num_rows() - offset);
            self.write_slice(&batch.slice(offset, rows)).await?;
            offset += rows;
        }
        Ok(())
    }

    /// Bytes of closed files and, estimated, of the open one.
    pub(super) fn written_bytes(&self) -> u64 {
        self.closed.iter().map(|file| file.file.file_size_in_bytes()).sum::<u64>() + self.open_volume().bytes
    }

    /// Closes the last file and returns all of them.
    pub(super) async fn finish(&mut self) -> Result<Vec<NewFile>> {
        self.close_open().await?;
        Ok(self.closed.clone())
    }

    /// Removes everything that was written. What cannot be removed is left for orphan removal.
    pub(super) async fn abort(mut self) {
        if let Some(open) = self.open.take() {
            open.writer.abort().await;
        }
        remove_files(&self.place.stores, &self.locations).await;
    }

    async fn write_slice(&mut self, rows: &RecordBatch) -> Result<()> {
        let count = rows.num_rows() as u64;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.open_next()?,
        };
        let written = open.writer.write(rows).await;
        open.rows += count;
        self.rest_rows = self.rest_rows.saturating_sub(count);
        let held = open.writer.memory_bytes();
        self.open = Some(open);
        written?;
        self.memory.try_resize(held).map_err(from_datafusion)
    }

    fn open_next(&mut self) -> Result<OpenFile> {
        let place = &self.place;
        let name = format!("{}-{}.parquet", place.name_prefix, self.locations.len());
        let location = data_file_location(&place.table, &place.spec, &place.partition, &name)?;
        let target = FileTarget {
            spec: place.spec.clone(),
            partition: place.partition.clone(),
            location: location.clone(),
        };
        let writer = DataFileWriter::new(&place.format, &place.stores, target)?;
        self.locations.push(location);
        Ok(OpenFile { writer, rows: 0 })
    }

    async fn close_open(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        if let Some(file) = open.writer.close().await? {
            self.estimate.closed(Volume { bytes: file.file.file_size_in_bytes(), rows: open.rows });
            self.closed.push(file);
        }
        self.memory.free();
        Ok(())
    }

    /// The open file, as large as its writer believes it to be.
    fn open_volume(&self) -> Volume {
        let volume = |open: &OpenFile| Volume { bytes: open.writer.estimated_bytes(), rows: open.rows };
        self.open.as_ref().map_or_else(Volume::default, volume)
    }
}

/// Removes files that no catalog was ever told of.
pub(super) async fn remove_files(stores: &Stores, locations: &[String]) {
    stream::iter(locations)
        .for_each_concurrent(8, |location| async move {
            let removed = match stores.resolve(location) {
                Ok((store, path)) => store.delete(&path).await,
                Err(error) => {
                    return warn!(%location, %error, "an output of a dropped group cannot be removed");
                }
            };
            match removed {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => warn!(%location, %error, "an output of a dropped group is left as an orphan"),
            }
        })
        .await;
}
