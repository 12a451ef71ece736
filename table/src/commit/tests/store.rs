//! A store that counts what is read and written, fails on request, and lets the caller go away at each operation.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// What passed through the store.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) reads: AtomicUsize,
    pub(super) writes: AtomicUsize,
    /// So many of the next writes fail.
    pub(super) failing_writes: AtomicUsize,
}

impl Meter {
    pub(super) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    pub(super) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    pub(super) fn fail_writes(&self, count: usize) {
        self.failing_writes.store(count, Ordering::Relaxed);
    }

    fn write_fails(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.failing_writes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

#[derive(Debug)]
pub(super) struct Metered {
    pub(super) inner: Arc<dyn ObjectStore>,
    pub(super) meter: Arc<Meter>,
}

impl fmt::Display for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "metered {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Metered {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        tokio::task::yield_now().await;
        self.meter.writes.fetch_add(1, Ordering::Relaxed);
        if self.meter.write_fails() {
            return Err(object_store::Error::Generic { store: "metered", source: "the store fails".into() });
        }
        let result = self.inner.put_opts(location, payload, opts).await;
        tokio::task::yield_now().await;
        result
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        tokio::task::yield_now().await;
        if !options.head {
            self.meter.reads.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
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
