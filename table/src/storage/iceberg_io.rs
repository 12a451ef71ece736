//! `iceberg`'s storage trait over [`Stores`].

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use iceberg::io::{
    FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage, StorageConfig, StorageFactory,
};
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use super::Stores;
use crate::{Error, ErrorKind};

/// Builds [`FirnStorage`] over stores that are open already, so that all views share them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FirnStorageFactory {
    stores: Stores,
}

impl FirnStorageFactory {
    pub(super) fn new(stores: Stores) -> Self {
        Self { stores }
    }
}

#[typetag::serde]
impl StorageFactory for FirnStorageFactory {
    /// The configuration is not looked at: the stores carry the same properties.
    fn build(&self, _config: &StorageConfig) -> iceberg::Result<Arc<dyn Storage>> {
        Ok(Arc::new(FirnStorage { stores: self.stores.clone() }))
    }
}

/// The stores as `iceberg` sees them. Serialised, it carries their properties and opens them anew.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct FirnStorage {
    stores: Stores,
}

#[async_trait]
#[typetag::serde]
impl Storage for FirnStorage {
    async fn exists(&self, path: &str) -> iceberg::Result<bool> {
        Ok(self.stores.exists(path).await?)
    }

    async fn metadata(&self, path: &str) -> iceberg::Result<FileMetadata> {
        let (store, key) = self.stores.resolve(path)?;
        let found = store.head(&key).await.map_err(|error| failed("looking at", path, error))?;
        Ok(FileMetadata { size: found.size })
    }

    async fn read(&self, path: &str) -> iceberg::Result<Bytes> {
        Ok(self.stores.read(path).await?)
    }

    async fn reader(&self, path: &str) -> iceberg::Result<Box<dyn FileRead>> {
        let (store, key) = self.stores.resolve(path)?;
        Ok(Box::new(ObjectRead { store, key, location: path.to_owned() }))
    }

    async fn write(&self, path: &str, bs: Bytes) -> iceberg::Result<()> {
        Ok(self.stores.write(path, bs).await?)
    }

    async fn writer(&self, path: &str) -> iceberg::Result<Box<dyn FileWrite>> {
        let (store, key) = self.stores.resolve(path)?;
        Ok(Box::new(ObjectWrite { writer: BufWriter::new(store, key), location: path.to_owned() }))
    }

    async fn delete(&self, path: &str) -> iceberg::Result<()> {
        Ok(self.stores.delete(path).await?)
    }

    /// Deletes the objects under `path` as a folder: `tbl` is no prefix of `tbl2`.
    async fn delete_prefix(&self, path: &str) -> iceberg::Result<()> {
        let (store, prefix) = self.stores.resolve(path)?;
        let found = store.list(Some(&prefix)).map_ok(|meta| meta.location).boxed();
        let deleted = store.delete_stream(found).filter(|result| {
            let gone = matches!(result, Err(object_store::Error::NotFound { .. }));
            async move { !gone }
        });
        deleted
            .try_for_each(|_| async { Ok(()) })
            .await
            .map_err(|error| failed("deleting what is under", path, error))
    }

    async fn delete_stream(&self, mut paths: BoxStream<'static, String>) -> iceberg::Result<()> {
        while let Some(path) = paths.next().await {
            self.stores.delete(&path).await?;
        }
        Ok(())
    }

    fn new_input(&self, path: &str) -> iceberg::Result<InputFile> {
        Ok(InputFile::new(Arc::new(self.clone()), path.to_owned()))
    }

    fn new_output(&self, path: &str) -> iceberg::Result<OutputFile> {
        Ok(OutputFile::new(Arc::new(self.clone()), path.to_owned()))
    }
}

struct ObjectRead {
    store: Arc<dyn ObjectStore>,
    key: Path,
    location: String,
}

#[async_trait]
impl FileRead for ObjectRead {
    async fn read(&self, range: Range<u64>) -> iceberg::Result<Bytes> {
        let wanted = range.end.saturating_sub(range.start);
        let bytes = self
            .store
            .get_range(&self.key, range.clone())
            .await
            .map_err(|error| failed("reading a range of", &self.location, error))?;
        // Stores answer a range that reaches beyond the end with what is there.
        if bytes.len() as u64 != wanted {
            let message = format!(
                "`{}` has {} bytes at {}..{}: it is shorter than its metadata says",
                self.location,
                bytes.len(),
                range.start,
                range.end
            );
            return Err(Error::new(ErrorKind::Data, message).into());
        }
        Ok(bytes)
    }
}

struct ObjectWrite {
    writer: BufWriter,
    location: String,
}

#[async_trait]
impl FileWrite for ObjectWrite {
    async fn write(&mut self, bs: Bytes) -> iceberg::Result<()> {
        self.writer.put(bs).await.map_err(|error| failed("writing", &self.location, error))
    }

    async fn close(&mut self) -> iceberg::Result<()> {
        let finished = self.writer.shutdown().await;
        finished.map_err(|error| from_io(error).context(format_args!("finishing `{}`", self.location)).into())
    }
}

/// The store's error, which passed through the writer's interface as one of input and output.
fn from_io(error: std::io::Error) -> Error {
    match error.downcast::<object_store::Error>() {
        Ok(error) => error.into(),
        Err(error) => Error::new(ErrorKind::Unavailable, "the store failed").with_source(error),
    }
}

fn failed(what: &str, location: &str, error: object_store::Error) -> iceberg::Error {
    Error::from(error).context(format_args!("{what} `{location}`")).into()
}
