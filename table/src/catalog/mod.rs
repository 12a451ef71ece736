//! Catalogs that tell exactly what became of a commit.
//!
//! A [`CommitCatalog`] is an `iceberg::Catalog` with one method more: [`CommitCatalog::commit`], whose
//! [`CommitOutcome`] says whether the commit landed, certainly did not, or may yet have. [`open_catalog`] opens one by
//! its URI, together with the stores of its tables; [`create_table`] makes a table with firn's defaults.
//!
//! | file | subject |
//! | --- | --- |
//! | `open` | URIs and names |
//! | `create` | new tables: partition and sort fields by column name, firn's default properties |
//! | `metadata_file` | metadata files: names, bytes, reading and writing |
//! | `metadata_json` | metadata as JSON, with the texts of snapshots kept from commit to commit |
//! | `update` | requirements and updates applied to a head: pure |
//! | `foreign` | commits of `iceberg`'s own transactions |
//! | `sql` | the SQL catalog on SQLite and Postgres |
//! | `rest` | the REST catalog |
//! | `secrets` | addresses fit to be shown |

mod create;
mod foreign;
mod metadata_file;
mod metadata_json;
mod open;
mod rest;
mod secrets;
mod sql;
mod update;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use iceberg::table::Table;
use iceberg::{Catalog, TableRequirement, TableUpdate};

pub use self::create::{
    NewTable, PartitionColumn, SortColumn, create_table, default_properties, requested_format_version,
};
pub use self::open::{open_catalog, parse_table_ident};
pub use self::secrets::without_password;
use crate::Error;
use crate::storage::Stores;

/// What became of one commit request.
#[derive(Debug)]
pub enum CommitOutcome {
    /// The table now is this.
    Committed(Box<Table>),
    /// Certainly not applied: the base is not the head any more.
    Conflict,
    /// Certainly not applied and worth trying again: throttled, busy, no connection.
    NotApplied {
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
        /// Why, for the log.
        cause: Error,
    },
    /// Certainly not applied, and trying again is hopeless.
    Rejected(Error),
    /// Anything else: it may have been applied, or may be applied later.
    Unknown(Error),
}

/// A catalog whose commits have typed outcomes.
#[async_trait]
pub trait CommitCatalog: Catalog {
    /// Applies `updates` to `base` if `requirements` hold for the head, in one compare-and-set.
    ///
    /// As with a REST catalog, the head may be another than `base` as long as the requirements hold for it: they must
    /// name all that the updates rely on. A caller that drops the returned future learns nothing: the outcome is then
    /// unknown.
    async fn commit(
        &self,
        base: &Table,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> CommitOutcome;

    /// Whether metadata files that fell out of the log are this process's to delete
    /// (`write.metadata.delete-after-commit.enabled`): true of SQL catalogs, where no server does it. Such a catalog
    /// deletes them itself after a commit that landed.
    fn client_deletes_metadata(&self) -> bool;
}

/// What opening does where there is no catalog yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfMissing {
    /// Refuses: a mistyped path must not become an empty catalog.
    #[default]
    Refuse,
    /// Makes the database and its tables.
    Create,
}

/// How to reach a catalog.
#[derive(Clone, Default)]
pub struct CatalogOptions {
    /// `sqlite:PATH`, also `sqlite:///absolute/path`; the path is taken literally.
    /// `postgres://user:password@host/database`, as libpq and SQLAlchemy write it, with libpq's parameters. `http:` and
    /// `https:` are the address of a REST catalog.
    pub uri: String,
    /// The name in the catalog's key, where it has one (default `firn`).
    pub name: Option<String>,
    /// Where new tables without a location of their own go: a location, or a local path, which may be relative. A REST
    /// catalog is given it as it stands: the name of one of its warehouses.
    pub warehouse: Option<String>,
    /// Catalog and storage properties under Iceberg's names.
    pub properties: HashMap<String, String>,
    /// What to do where there is no catalog at `uri`.
    pub if_missing: IfMissing,
}

impl fmt::Debug for CatalogOptions {
    /// Without passwords and values of properties: some hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: BTreeSet<&String> = self.properties.keys().collect();
        f.debug_struct("CatalogOptions")
            .field("uri", &without_password(&self.uri))
            .field("name", &self.name)
            .field("warehouse", &self.warehouse)
            .field("properties", &names)
            .field("if_missing", &self.if_missing)
            .finish()
    }
}

/// A catalog and the stores of its tables.
#[derive(Debug, Clone)]
pub struct OpenCatalog {
    /// The catalog.
    pub catalog: Arc<dyn CommitCatalog>,
    /// The stores of its tables.
    pub stores: Stores,
}
