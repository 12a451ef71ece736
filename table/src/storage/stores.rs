//! The stores of a catalog or table, opened once each, and whole objects in them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use iceberg::io::{FileIO, FileIOBuilder};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use serde::{Deserialize, Serialize};

use super::iceberg_io::FirnStorageFactory;
use super::location::{Location, Scheme};
use super::s3;
use super::vended::{Grant, Granted, Vended};
use crate::{Error, ErrorKind, Result};

/// Wraps every store that is opened: metering, throttling, faults.
pub type StoreWrapper = Arc<dyn Fn(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> + Send + Sync>;

type Opened = Arc<Mutex<HashMap<StoreKey, Arc<dyn ObjectStore>>>>;

/// What one client serves: a scheme and authority, and of those the part that one vended credential is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StoreKey {
    scheme: Scheme,
    authority: String,
    granted: Option<(u64, String)>,
}

/// Deletes that run at a time where the store has no bulk request.
const CONCURRENT_DELETES: usize = 16;

/// The object stores of a catalog or table, opened once per scheme and authority. Cheap to clone; clones share them.
///
/// Schemes: `file`, `memory`, `s3`, `s3a`, `s3n`. Properties carry Iceberg's names (`s3.endpoint`, `s3.region`, …).
/// A REST catalog adds credentials of its tables, which win over the properties under the tables' locations.
/// Serialised as its properties alone: the stores are opened anew where it is read back, without such credentials.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "HashMap<String, String>", into = "HashMap<String, String>")]
pub struct Stores {
    properties: Arc<HashMap<String, String>>,
    wrapper: Option<StoreWrapper>,
    plain: Opened,
    wrapped: Opened,
    vended: Arc<Vended>,
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores").field("wrapped", &self.wrapper.is_some()).finish_non_exhaustive()
    }
}

impl From<HashMap<String, String>> for Stores {
    fn from(properties: HashMap<String, String>) -> Self {
        Self::new(properties)
    }
}

impl From<Stores> for HashMap<String, String> {
    fn from(stores: Stores) -> Self {
        Arc::unwrap_or_clone(stores.properties)
    }
}

impl Stores {
    /// Stores configured by Iceberg's property names.
    #[must_use]
    pub fn new(properties: HashMap<String, String>) -> Self {
        Self {
            properties: Arc::new(properties),
            wrapper: None,
            plain: Opened::default(),
            wrapped: Opened::default(),
            vended: Arc::default(),
        }
    }

    /// Takes over the credentials of a table, for all clones of these stores.
    pub(crate) fn grant(&self, grant: Grant) {
        self.vended.grant(grant);
    }

    /// The same stores, each with `wrapper` around it, outside of any wrapper that is there already.
    #[must_use]
    pub fn with_wrapper(self, wrapper: StoreWrapper) -> Self {
        let wrapper: StoreWrapper = match self.wrapper {
            Some(inner) => Arc::new(move |store| wrapper(inner(store))),
            None => wrapper,
        };
        Self { wrapper: Some(wrapper), wrapped: Opened::default(), ..self }
    }

    /// The properties that the stores are configured by.
    #[must_use]
    pub fn properties(&self) -> &HashMap<String, String> {
        &self.properties
    }

    /// The store that holds `location` and the path in it. `file:/x`, `file:///x` and `/x` are one path.
    ///
    /// # Errors
    /// `Configuration` where the location or a property is malformed, `Unsupported` where the scheme has no store, or
    /// the key is one that the store cannot name (an S3 key with an empty segment).
    pub fn resolve(&self, location: &str) -> Result<(Arc<dyn ObjectStore>, Path)> {
        let parsed = Location::parse(location)?;
        let path = parsed.path()?;
        Ok((self.store(&parsed)?, path))
    }

    /// `iceberg`'s view of the same stores.
    #[must_use]
    pub fn file_io(&self) -> FileIO {
        FileIOBuilder::new(Arc::new(FirnStorageFactory::new(self.clone())))
            .with_props(self.properties.iter().map(|(key, value)| (key.clone(), value.clone())))
            .build()
    }

    /// Reads a whole object.
    ///
    /// # Errors
    /// `NotFound` where there is none; otherwise as [`Error`]'s conversion from the store's error says.
    pub async fn read(&self, location: &str) -> Result<Bytes> {
        let (store, path) = self.resolve(location)?;
        let failed = |error| Error::from(error).context(format_args!("reading `{location}`"));
        let found = store.get(&path).await.map_err(failed)?;
        let size = found.meta.size;
        let bytes = found.bytes().await.map_err(failed)?;
        if bytes.len() as u64 == size {
            return Ok(bytes);
        }
        let message = format!("reading `{location}`: {} of {size} bytes came", bytes.len());
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// Writes a whole object, replacing one that is there.
    ///
    /// # Errors
    /// As [`Error`]'s conversion from the store's error says. The object may be there nevertheless.
    pub async fn write(&self, location: &str, bytes: Bytes) -> Result<()> {
        let (store, path) = self.resolve(location)?;
        match store.put(&path, bytes.into()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::from(error).context(format_args!("writing `{location}`"))),
        }
    }

    /// Whether an object is there.
    ///
    /// # Errors
    /// Whatever keeps the store from telling.
    pub async fn exists(&self, location: &str) -> Result<bool> {
        let (store, path) = self.resolve(location)?;
        match store.head(&path).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(Error::from(error).context(format_args!("looking for `{location}`"))),
        }
    }

    /// Deletes an object; one that is not there is no error.
    ///
    /// # Errors
    /// Whatever kept the store from deleting it.
    pub async fn delete(&self, location: &str) -> Result<()> {
        let (store, path) = self.resolve(location)?;
        match store.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(Error::from(error).context(format_args!("deleting `{location}`"))),
        }
    }

    /// Deletes objects, several at a time, and returns those that could not be deleted with the reason.
    pub async fn delete_all(&self, locations: Vec<String>) -> Vec<(String, Error)> {
        stream::iter(locations)
            .map(|location| async move {
                let error = self.delete(&location).await.err()?;
                Some((location, error))
            })
            .buffer_unordered(CONCURRENT_DELETES)
            .filter_map(|failed| async move { failed })
            .collect()
            .await
    }

    fn store(&self, location: &Location<'_>) -> Result<Arc<dyn ObjectStore>> {
        let granted = match location.scheme() {
            Scheme::S3 => self.vended.find(location.whole()),
            Scheme::File | Scheme::Memory => None,
        };
        let key = StoreKey {
            scheme: location.scheme(),
            authority: location.authority().to_owned(),
            granted: granted.as_ref().map(|granted| granted.key.clone()),
        };
        let mut wrapped = self.wrapped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = wrapped.get(&key) {
            return Ok(store.clone());
        }
        let plain = self.plain_store(&key, granted)?;
        let store = self.wrapper.as_ref().map_or_else(|| plain.clone(), |wrap| wrap(plain.clone()));
        wrapped.insert(key, store.clone());
        Ok(store)
    }

    fn plain_store(&self, key: &StoreKey, granted: Option<Granted>) -> Result<Arc<dyn ObjectStore>> {
        let mut plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = plain.get(key) {
            return Ok(store.clone());
        }
        let store: Arc<dyn ObjectStore> = match (key.scheme, granted) {
            (Scheme::File, _) => Arc::new(LocalFileSystem::new()),
            (Scheme::Memory, _) => Arc::new(InMemory::new()),
            (Scheme::S3, None) => Arc::new(s3::open(&key.authority, &self.properties, None)?),
            (Scheme::S3, Some(granted)) => {
                let mut properties = (*self.properties).clone();
                properties.extend(granted.properties);
                Arc::new(s3::open(&key.authority, &properties, granted.provider)?)
            }
        };
        plain.insert(key.clone(), store.clone());
        Ok(store)
    }
}

impl From<object_store::Error> for Error {
    /// The kind by which a caller reacts: what the store does not have, refuses for good, or may yet do.
    fn from(error: object_store::Error) -> Self {
        use object_store::Error as Store;
        let (kind, what) = match &error {
            Store::NotFound { .. } => (ErrorKind::NotFound, "no such object or bucket"),
            Store::AlreadyExists { .. } => (ErrorKind::AlreadyExists, "the object exists already"),
            Store::Precondition { .. } | Store::NotModified { .. } => {
                (ErrorKind::Conflict, "the object was changed meanwhile")
            }
            Store::NotSupported { .. } | Store::NotImplemented { .. } => {
                (ErrorKind::Unsupported, "the store cannot do this")
            }
            Store::InvalidPath { .. } => (ErrorKind::Configuration, "the path is not one of this store"),
            Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => {
                (ErrorKind::Configuration, "the store refused the credentials")
            }
            Store::UnknownConfigurationKey { .. } => {
                (ErrorKind::Configuration, "the store does not know a setting")
            }
            _ => (ErrorKind::Unavailable, "the store failed"),
        };
        Self::new(kind, what).with_source(error)
    }
}
