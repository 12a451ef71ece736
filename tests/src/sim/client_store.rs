//! The object store as a process sees it: through the network.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use firn_table::storage::Stores;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::network::{Arrival, Failure, Fate, Kind, Link, Request};
use super::server::{WAREHOUSE, at_once};
use super::words::short;
use super::world::World;

/// The stores of a process: the objects of the world, through its link.
#[must_use]
pub fn client_stores(link: &Link) -> Stores {
    let own = link.clone();
    let wrap = move |inner| Arc::new(ClientStore { inner, link: own.clone() }) as Arc<dyn ObjectStore>;
    link.world.stores().clone().with_wrapper(Arc::new(wrap))
}

/// The store of one process.
#[derive(Debug, Clone)]
struct ClientStore {
    inner: Arc<dyn ObjectStore>,
    link: Link,
}

impl fmt::Display for ClientStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.inner, self.link.who.name)
    }
}

fn location(path: &Path) -> String {
    format!("{WAREHOUSE}/{path}")
}

fn failed(failure: Failure) -> object_store::Error {
    object_store::Error::Generic { store: "simulated", source: failure.to_string().into() }
}

fn not_here(operation: &str) -> object_store::Error {
    object_store::Error::NotImplemented {
        operation: operation.to_owned(),
        implementer: "the simulated store".to_owned(),
    }
}

impl ClientStore {
    /// Asks for something in one step at the server.
    async fn ask<T: Send + 'static>(
        &self,
        kind: Kind,
        path: &Path,
        serve: impl FnOnce(Arc<dyn ObjectStore>, &World, &Fate) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let request = Request { kind, target: short(&location(path)) };
        let inner = self.inner.clone();
        let answer = self.link.call(request, move |world, fate| serve(inner, world, fate)).await;
        answer.map_err(failed)?
    }

    fn carried(&self, kind: Kind, bytes: u64) {
        self.link.world.network().meter().carried(self.link.who.role, kind, bytes);
    }

    async fn delete_one(&self, path: Path) -> Result<Path> {
        let (who, gone) = (self.link.who.clone(), path.clone());
        self.ask(Kind::Delete, &path, move |inner, world, _| {
            let was_there = at_once(inner.head(&gone)).is_ok();
            at_once(inner.delete(&gone))?;
            if was_there {
                world.deleted(&who, location(&gone));
            }
            Ok(gone)
        })
        .await
    }
}

#[async_trait]
impl ObjectStore for ClientStore {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let (who, at) = (self.link.who.clone(), path.clone());
        self.carried(Kind::Put, payload.content_length() as u64);
        self.ask(Kind::Put, path, move |inner, world, fate| {
            let payload = match fate.arrival {
                Arrival::Half => half(payload),
                Arrival::Whole | Arrival::Lost => payload,
            };
            let put = at_once(inner.put_opts(&at, payload, options))?;
            world.written(&who, location(&at));
            Ok(put)
        })
        .await
    }

    /// Objects of the simulation are small: none is uploaded in parts.
    async fn put_multipart_opts(
        &self,
        _path: &Path,
        _options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(not_here("upload in parts"))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let at = path.clone();
        let got = self.ask(Kind::Get, path, move |inner, _, _| at_once(inner.get_opts(&at, options))).await?;
        self.carried(Kind::Get, got.range.end - got.range.start);
        Ok(got)
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (at, ranges) = (path.clone(), ranges.to_vec());
        let got =
            self.ask(Kind::Get, path, move |inner, _, _| at_once(inner.get_ranges(&at, &ranges))).await?;
        self.carried(Kind::Get, got.iter().map(|bytes| bytes.len() as u64).sum());
        Ok(got)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let delete = move |path: Result<Path>| {
            let store = store.clone();
            async move { store.delete_one(path?).await }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (store, prefix) = (self.clone(), prefix.cloned().unwrap_or_default());
        let listed = async move {
            let below = prefix.clone();
            let listed = store.ask(Kind::List, &prefix, move |inner, _, fate| {
                let mut found: Vec<_> = at_once(inner.list(Some(&below)).collect());
                if fate.arrival == Arrival::Half {
                    found.truncate(found.len() / 2);
                    found.push(Err(failed(Failure::Broken)));
                }
                Ok(found)
            });
            stream::iter(listed.await.unwrap_or_else(|error| vec![Err(error)]))
        };
        stream::once(listed).flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let below = prefix.cloned();
        let at = below.clone().unwrap_or_default();
        self.ask(Kind::List, &at, move |inner, _, fate| match fate.arrival {
            Arrival::Half => Err(failed(Failure::Broken)),
            Arrival::Whole | Arrival::Lost => at_once(inner.list_with_delimiter(below.as_ref())),
        })
        .await
    }

    async fn copy_opts(&self, _from: &Path, _to: &Path, _options: CopyOptions) -> Result<()> {
        Err(not_here("copy"))
    }
}

fn half(payload: PutPayload) -> PutPayload {
    let whole: Bytes = payload.into();
    whole.slice(..whole.len() / 2).into()
}
