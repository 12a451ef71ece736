//! Uploading of data files: one PUT where a file is small, a multipart upload where it is not.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart};

use super::encode::{EncodedFile, FileEncoder};
use super::{FileFormat, FileTarget, NewFile};
use crate::storage::Stores;
use crate::{Error, Result};

/// A file of at most so many bytes is one PUT.
const SINGLE_PUT_BYTES: usize = 16 << 20;
/// The size of a part of a larger one.
const PART_BYTES: usize = 8 << 20;
/// Parts that are on their way at once.
const PARTS_IN_FLIGHT: usize = 4;

/// Uploads a file that was encoded in one piece: one PUT, or a multipart upload where it is large.
pub async fn upload(stores: &Stores, target: &FileTarget, file: EncodedFile) -> Result<NewFile> {
    let mut destination = Destination::new(stores, &target.location)?;
    destination.finish(file.bytes().clone()).await?;
    file.new_file(target)
}

/// Encodes batches into one Parquet file and uploads it. CPU work runs where it is called: callers choose the
/// thread.
///
/// Dropped without [`Self::close`] or [`Self::abort`], it leaves no object; a store may keep parts until it
/// clears unfinished uploads.
pub struct DataFileWriter {
    encoder: FileEncoder,
    destination: Destination,
    target: FileTarget,
}

impl fmt::Debug for DataFileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataFileWriter")
            .field("location", &self.target.location)
            .field("encoder", &self.encoder)
            .finish_non_exhaustive()
    }
}

impl DataFileWriter {
    /// Opens a file; nothing reaches the store before it is large enough for a multipart upload, or
    /// [`Self::close`].
    pub fn new(format: &FileFormat, stores: &Stores, target: FileTarget) -> Result<Self> {
        let destination = Destination::new(stores, &target.location)?;
        Ok(Self { encoder: FileEncoder::new(format), destination, target })
    }

    /// Encodes a batch of [`FileFormat::arrow_schema`]. After an error the file can only be aborted.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.encoder.write(batch)?;
        if self.encoder.final_bytes() > SINGLE_PUT_BYTES {
            let bytes = self.encoder.take_bytes()?;
            self.destination.append(bytes).await?;
        }
        Ok(())
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.encoder.rows()
    }

    /// Bytes on storage so far, with an estimate for what is still buffered.
    #[must_use]
    pub fn estimated_bytes(&self) -> u64 {
        self.encoder.estimated_bytes()
    }

    /// Bytes of memory held, parts on their way included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.encoder.memory_bytes() + self.destination.memory_bytes()
    }

    /// Finishes the upload and returns the file with its metrics; `None`, and nothing stored, where no row
    /// was written.
    pub async fn close(mut self) -> Result<Option<NewFile>> {
        match self.encoder.finish() {
            Ok(None) => Ok(None),
            Ok(Some(file)) => {
                self.destination.finish(file.bytes().clone()).await?;
                file.new_file(&self.target).map(Some)
            }
            Err(error) => {
                self.destination.abort().await;
                Err(error)
            }
        }
    }

    /// Gives up: aborts the upload and leaves nothing behind.
    pub async fn abort(mut self) {
        self.destination.abort().await;
    }
}

/// An object that is being written.
struct Destination {
    store: Arc<dyn ObjectStore>,
    path: Path,
    location: String,
    upload: Option<WriteMultipart>,
}

impl Destination {
    fn new(stores: &Stores, location: &str) -> Result<Self> {
        let (store, path) = stores.resolve(location)?;
        Ok(Self { store, path, location: location.to_owned(), upload: None })
    }

    fn memory_bytes(&self) -> usize {
        if self.upload.is_some() { PARTS_IN_FLIGHT * PART_BYTES } else { 0 }
    }

    /// Hands over bytes, waiting while too many parts are on their way. Aborts the upload where it fails.
    async fn append(&mut self, bytes: Bytes) -> Result<()> {
        match self.try_append(bytes).await {
            Ok(()) => Ok(()),
            Err(cause) => {
                self.abort().await;
                Err(self.error(cause))
            }
        }
    }

    async fn try_append(&mut self, mut bytes: Bytes) -> object_store::Result<()> {
        if self.upload.is_none() {
            let upload = self.store.put_multipart(&self.path).await?;
            self.upload = Some(WriteMultipart::new_with_chunk_size(upload, PART_BYTES));
        }
        let Some(upload) = &mut self.upload else { return Ok(()) };
        while !bytes.is_empty() {
            upload.wait_for_capacity(PARTS_IN_FLIGHT).await?;
            upload.put(bytes.split_to(bytes.len().min(PART_BYTES)));
        }
        Ok(())
    }

    /// Writes the last bytes and makes the object appear.
    async fn finish(&mut self, bytes: Bytes) -> Result<()> {
        if self.upload.is_none() && bytes.len() <= SINGLE_PUT_BYTES {
            let stored = self.store.put(&self.path, PutPayload::from(bytes)).await;
            return stored.map(|_| ()).map_err(|cause| self.error(cause));
        }
        self.append(bytes).await?;
        match self.upload.take() {
            // It aborts by itself where it fails.
            Some(upload) => upload.finish().await.map(|_| ()).map_err(|cause| self.error(cause)),
            None => Ok(()),
        }
    }

    async fn abort(&mut self) {
        if let Some(upload) = self.upload.take()
            && let Err(cause) = upload.abort().await
        {
            tracing::warn!(location = %self.location, error = %cause, "unfinished upload could not be aborted");
        }
    }

    fn error(&self, cause: object_store::Error) -> Error {
        Error::from(cause).context(format!("data file `{}` could not be written", self.location))
    }
}

#[cfg(test)]
mod tests;
