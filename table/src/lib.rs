//! The only crate of firn that opens, reads the layout of, and commits to an Iceberg table.
//!
//! | module | subject |
//! | --- | --- |
//! | [`storage`] | object stores by location, and `iceberg`'s storage trait over them |
//! | [`catalog`] | [`CommitCatalog`](catalog::CommitCatalog): catalogs that tell exactly what became of a commit |
//! | [`ledger`] | which Kafka offsets the table holds, and the fence built on it |
//! | [`commit`] | [`TableHandle`](commit::TableHandle): appends, replaces and expiry of one table and branch, one at a time |
//! | [`expire`] | removing snapshots, and the files that only they reached |
//! | [`layout`] | the live files of a snapshot as statistics |
//! | [`manifest`] | manifests and manifest lists: reading and writing them |
//! | [`files`] | Parquet data files: writing them with Iceberg's metrics, reading them by field id |
//! | [`threads`] | where CPU work runs |
//! | [`Surroundings`] | the wall clock and randomness |
//!
//! The library prints nothing, reads no environment variable and never exits the process.

pub mod catalog;
pub mod commit;
mod error;
pub mod expire;
pub mod files;
pub mod layout;
pub mod ledger;
pub mod manifest;
#[doc(hidden)]
pub mod protections;
pub mod storage;
mod surroundings;
pub mod threads;

pub use error::{Error, ErrorKind, Result};
pub use surroundings::Surroundings;
