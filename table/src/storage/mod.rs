//! Object stores by location, and `iceberg`'s storage trait over them.
//!
//! A *location* is a string as Iceberg's metadata holds it: `s3://bucket/key`, `file:/x`, `file:///x` or `/x`. It is not
//! URL-encoded: percent signs, spaces and any other character of the key are part of the object's name, and they reach
//! the store as they stand ([`Location`] takes a location apart without decoding it).
//!
//! [`Stores`] opens one store per scheme and authority and keeps it. Retries beyond those of the client, throttling,
//! metering and faults are [wrappers](StoreWrapper) around a store. What `iceberg` reads and writes passes through the
//! same stores ([`Stores::file_io`]). Credentials that a catalog gives out for a table win under its locations.

mod iceberg_io;
mod location;
mod s3;
mod stores;
#[cfg(test)]
mod tests;
mod vended;

pub use self::location::{Location, Scheme, join, normalize};
pub use self::stores::{StoreWrapper, Stores};
pub(crate) use self::vended::{Grant, Renew, StorageCredential};
