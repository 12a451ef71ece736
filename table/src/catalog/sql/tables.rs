//! Tables: looking them up, making, renaming and dropping them.

use iceberg::spec::TableMetadataBuilder;
use iceberg::table::Table;
use iceberg::{NamespaceIdent, TableCreation, TableIdent};

use super::super::metadata_file;
use super::super::metadata_json::Texts;
use super::failure::Failure;
use super::{Head, SqlCatalog};
use crate::storage::join;
use crate::{Error, ErrorKind, Result};

/// How often a head is looked up anew because its file was deleted between row and read.
const LOOKUPS: usize = 5;
/// A namespace's property that says where its tables go.
const LOCATION: &str = "location";

impl SqlCatalog {
    /// The head of a table. A writer that deletes old metadata may remove the file between the look at the row and
    /// the read: then the row is looked at again.
    pub(super) async fn head(&self, ident: &TableIdent) -> iceberg::Result<Head> {
        let mut gone = None;
        for _ in 0..LOOKUPS {
            let found = self.rows.location(ident).await;
            let location = found.map_err(|failure| failure.into_error("looking up a table"))?;
            let location = location.ok_or_else(|| not_found(ident))?;
            match self.read_head(ident, location).await {
                Ok(head) => return Ok(head),
                Err(error) if error.kind() == ErrorKind::NotFound => gone = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        let message = format!("the metadata file of table `{ident}` is missing");
        let error = Error::new(ErrorKind::Data, message);
        Err(gone.map_or(error.into(), |gone| gone.context(format_args!("table `{ident}`")).into()))
    }

    /// The metadata at `location`, from the cache where it was seen last.
    pub(super) async fn read_head(&self, ident: &TableIdent, location: String) -> Result<Head> {
        if let Some(head) = self.cached(ident, &location) {
            return Ok(head);
        }
        let contents = metadata_file::read(&self.stores, &location).await?;
        let head = Head { location, contents };
        self.remember(ident, &head);
        Ok(head)
    }

    pub(super) async fn has_table(&self, ident: &TableIdent) -> iceberg::Result<bool> {
        let found = self.rows.location(ident).await;
        Ok(found.map_err(|failure| failure.into_error("looking up a table"))?.is_some())
    }

    pub(super) async fn tables_in(&self, namespace: &NamespaceIdent) -> iceberg::Result<Vec<TableIdent>> {
        self.require_namespace(namespace).await?;
        let names = self.rows.tables(&namespace.to_string()).await;
        let names = names.map_err(|failure| failure.into_error("listing tables"))?;
        Ok(names.into_iter().map(|name| TableIdent::new(namespace.clone(), name)).collect())
    }

    pub(super) async fn add_table(
        &self,
        namespace: &NamespaceIdent,
        mut creation: TableCreation,
    ) -> iceberg::Result<Table> {
        self.require_namespace(namespace).await?;
        let ident = TableIdent::new(namespace.clone(), creation.name.clone());
        if self.has_table(&ident).await? {
            return Err(exists(&ident));
        }
        if creation.location.is_none() {
            creation.location = Some(self.default_location(&ident).await?);
        }
        let metadata = TableMetadataBuilder::from_table_creation(creation)?.build()?.metadata;
        let location = metadata_file::next_location(&metadata, None)?;
        let texts = Texts::of_new_table(&metadata);
        let contents = metadata_file::write(&self.stores, &location, metadata, texts).await?;
        let head = Head { location, contents };
        match self.rows.insert(&ident, &head.location).await {
            Ok(()) => {
                self.remember(&ident, &head);
                Ok(self.table(&ident, head)?)
            }
            Err(Failure::Unknown(error)) => Err(error.context(format_args!("creating `{ident}`")).into()),
            Err(failure) => {
                self.discard(&head.location).await;
                Err(match failure {
                    Failure::Exists => exists(&ident),
                    failure => failure.into_error(&format!("creating `{ident}`")).into(),
                })
            }
        }
    }

    /// `<warehouse>/<namespace levels>/<table>`, or under the namespace's own location where it has one.
    async fn default_location(&self, ident: &TableIdent) -> iceberg::Result<String> {
        let properties = self.namespace_properties(ident.namespace()).await?;
        if let Some(location) = properties.get(LOCATION) {
            return Ok(join(location, ident.name()));
        }
        match &self.warehouse {
            Some(warehouse) => Ok(join(&join(warehouse, &ident.namespace().join("/")), ident.name())),
            None => {
                let message =
                    format!("table `{ident}` has no location and the catalog no warehouse: give one of them");
                Err(Error::new(ErrorKind::Configuration, message).into())
            }
        }
    }

    /// Takes a table whose metadata file is there already into the catalog.
    pub(super) async fn adopt(&self, ident: &TableIdent, location: String) -> iceberg::Result<Table> {
        self.require_namespace(ident.namespace()).await?;
        let contents = metadata_file::read(&self.stores, &location).await?;
        let head = Head { location, contents };
        match self.rows.insert(ident, &head.location).await {
            Ok(()) => {
                self.remember(ident, &head);
                Ok(self.table(ident, head)?)
            }
            Err(Failure::Exists) => Err(exists(ident)),
            Err(failure) => Err(failure.into_error(&format!("registering `{ident}`")).into()),
        }
    }

    pub(super) async fn remove_row(&self, ident: &TableIdent) -> iceberg::Result<()> {
        let deleted = self.rows.delete(ident).await;
        self.forget(ident);
        if deleted.map_err(|failure| failure.into_error(&format!("dropping `{ident}`")))? {
            Ok(())
        } else {
            Err(not_found(ident))
        }
    }

    pub(super) async fn move_row(&self, from: &TableIdent, to: &TableIdent) -> iceberg::Result<()> {
        self.require_namespace(to.namespace()).await?;
        let renamed = self.rows.rename(from, to).await;
        self.forget(from);
        match renamed {
            Ok(true) => Ok(()),
            Ok(false) => Err(not_found(from)),
            Err(Failure::Exists) => Err(exists(to)),
            Err(failure) => Err(failure.into_error(&format!("renaming `{from}` to `{to}`")).into()),
        }
    }
}

fn not_found(ident: &TableIdent) -> iceberg::Error {
    let message = format!("table `{ident}` is not in the catalog: check its name");
    iceberg::Error::new(iceberg::ErrorKind::TableNotFound, message)
}

fn exists(ident: &TableIdent) -> iceberg::Error {
    let message = format!("table `{ident}` exists already: nothing was created");
    iceberg::Error::new(iceberg::ErrorKind::TableAlreadyExists, message)
}
