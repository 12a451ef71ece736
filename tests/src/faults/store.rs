//! An object store whose requests meet faults.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use firn_table::storage::StoreWrapper;
use futures::stream::{BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

use super::Schedule;

/// Requests that a fault can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// An object in one request.
    Put,
    /// An object in parts.
    Multipart,
    /// A read, whole or in ranges; also a look at an object's size.
    Get,
    /// A delete.
    Delete,
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreFault {
    /// It takes this long, and then passes.
    Slow(Duration),
    /// It fails, and nothing was done.
    Fails,
    /// It is done, and fails all the same: the reply is lost.
    ReplyLost,
    /// A put fails half way and leaves a truncated object under its key; of an upload in parts, the second part fails.
    /// Other requests fail.
    HalfWay,
    /// No answer comes, ever.
    Hangs,
}

/// A store around another, with faults in the requests of some operations on some objects.
#[derive(Debug, Clone)]
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    operation: Operation,
    suffix: String,
    schedule: Schedule<StoreFault>,
}

/// A wrapper for [`firn_table::storage::Stores`]: faults in `operation` on objects whose path ends with `suffix`
/// (`.parquet`, `.avro`, `.metadata.json`, or empty for all). Other requests pass and do not count.
#[must_use]
pub fn store_wrapper(operation: Operation, suffix: &str, schedule: Schedule<StoreFault>) -> StoreWrapper {
    let suffix = suffix.to_owned();
    Arc::new(move |inner| {
        Arc::new(FaultyStore { inner, operation, suffix: suffix.clone(), schedule: schedule.clone() })
    })
}

fn injected(path: &Path) -> object_store::Error {
    object_store::Error::Generic { store: "faulty", source: format!("injected fault on `{path}`").into() }
}

impl FaultyStore {
    fn fault(&self, operation: Operation, path: &Path) -> Option<StoreFault> {
        let meant = operation == self.operation && path.as_ref().ends_with(&self.suffix);
        meant.then(|| self.schedule.next()).flatten()
    }

    /// What a fault does to a request that has no halves.
    async fn around<T>(
        fault: Option<StoreFault>,
        path: &Path,
        request: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        match fault {
            None => request.await,
            Some(StoreFault::Slow(time)) => {
                tokio::time::sleep(time).await;
                request.await
            }
            Some(StoreFault::Fails | StoreFault::HalfWay) => Err(injected(path)),
            Some(StoreFault::ReplyLost) => match request.await {
                Ok(_) => Err(injected(path)),
                Err(error) => Err(error),
            },
            Some(StoreFault::Hangs) => pending().await,
        }
    }

    async fn put_half(&self, path: &Path, payload: PutPayload) -> Result<PutResult> {
        let whole: Bytes = payload.into();
        let half = whole.slice(..whole.len() / 2);
        self.inner.put_opts(path, half.into(), PutOptions::default()).await?;
        Err(injected(path))
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faulty({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        match self.fault(Operation::Put, path) {
            Some(StoreFault::HalfWay) => self.put_half(path, payload).await,
            fault => Self::around(fault, path, self.inner.put_opts(path, payload, options)).await,
        }
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let fault = self.fault(Operation::Multipart, path);
        let upload = self.inner.put_multipart_opts(path, options).await?;
        Ok(match fault {
            None => upload,
            Some(fault) => Box::new(FaultyUpload { inner: upload, path: path.clone(), fault, parts: 0 }),
        })
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let fault = self.fault(Operation::Get, path);
        Self::around(fault, path, self.inner.get_opts(path, options)).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        locations
            .then(move |path| {
                let store = store.clone();
                async move {
                    let path = path?;
                    let fault = store.fault(Operation::Delete, &path);
                    let one = futures::stream::once(std::future::ready(Ok(path.clone()))).boxed();
                    let mut deleted = store.inner.delete_stream(one);
                    let request = async { deleted.next().await.unwrap_or(Ok(path.clone())) };
                    Self::around(fault, &path, request).await
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// An upload in parts whose second part, or whose end, meets the fault.
#[derive(Debug)]
struct FaultyUpload {
    inner: Box<dyn MultipartUpload>,
    path: Path,
    fault: StoreFault,
    parts: usize,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.parts += 1;
        match (&self.fault, self.parts) {
            (StoreFault::HalfWay, 2..) => {
                let error = injected(&self.path);
                Box::pin(async move { Err(error) })
            }
            _ => self.inner.put_part(data),
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let fault = match self.fault {
            StoreFault::HalfWay if self.parts < 2 => Some(StoreFault::Fails),
            StoreFault::HalfWay => None,
            ref fault => Some(fault.clone()),
        };
        FaultyStore::around(fault, &self.path, self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}
