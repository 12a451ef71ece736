//! The statements of the SQL catalog.

use std::collections::HashMap;

use iceberg::{NamespaceIdent, TableIdent};

use super::super::IfMissing;
use super::SqlOptions;
use super::database::{Database, Statement};
use super::failure::Failure;
use super::layout::Layout;
use crate::{Error, ErrorKind, Result};

/// The key of the property that stands for a namespace without properties, as PyIceberg and Java write it.
const EXISTS: &str = "exists";

const NAMESPACES: &str = "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = $1 \
     UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = $1";
const PROPERTIES: &str = "SELECT property_key, property_value FROM iceberg_namespace_properties \
     WHERE catalog_name = $1 AND namespace = $2";
const DELETE_PROPERTIES: &str =
    "DELETE FROM iceberg_namespace_properties WHERE catalog_name = $1 AND namespace = $2";
const INSERT_PROPERTY: &str = "INSERT INTO iceberg_namespace_properties \
     (catalog_name, namespace, property_key, property_value) VALUES ($1, $2, $3, $4)";

/// The rows of one catalog name in one database. Namespaces are text here, their levels joined by `.`.
#[derive(Debug)]
pub(super) struct Rows {
    database: Database,
    catalog: String,
    sql: Statements,
}

/// Statements that differ by layout, made once.
#[derive(Debug)]
struct Statements {
    load: String,
    insert: String,
    swap: String,
    delete: String,
    rename: String,
    list: String,
}

impl Statements {
    fn new(layout: Layout) -> Self {
        let key = "catalog_name = $1 AND table_namespace = $2 AND table_name = $3";
        let only_tables = layout.only_tables();
        let (column, value) = match layout {
            Layout::V0 => ("", ""),
            Layout::V1 => (", iceberg_type", ", 'TABLE'"),
        };
        Self {
            load: format!("SELECT metadata_location FROM iceberg_tables WHERE {key}{only_tables}"),
            insert: format!(
                "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, \
                 previous_metadata_location{column}) VALUES ($1, $2, $3, $4, NULL{value})"
            ),
            swap: format!(
                "UPDATE iceberg_tables SET metadata_location = $4, previous_metadata_location = $5 \
                 WHERE {key} AND metadata_location = $5{only_tables}"
            ),
            delete: format!("DELETE FROM iceberg_tables WHERE {key}{only_tables}"),
            rename: format!(
                "UPDATE iceberg_tables SET table_namespace = $4, table_name = $5 WHERE {key}{only_tables}"
            ),
            list: format!(
                "SELECT table_name FROM iceberg_tables \
                 WHERE catalog_name = $1 AND table_namespace = $2{only_tables} ORDER BY table_name"
            ),
        }
    }
}

impl Rows {
    /// Opens the database, and makes it and its tables where that is asked for.
    pub(super) async fn open(options: &SqlOptions) -> Result<Self> {
        let address = &options.address;
        let failed =
            |failure: Failure| failure.into_error(&format!("opening the catalog database `{address}`"));
        let database = address.open(options.if_missing).await?;
        let mut layout = Layout::find(&database).await.map_err(failed)?;
        if layout.is_none() && (options.if_missing == IfMissing::Create || address.is_in_memory()) {
            let created = Layout::create(&database).await;
            layout = Layout::find(&database).await.map_err(failed)?;
            // Another process may have been quicker.
            if layout.is_none() {
                created.map_err(failed)?;
            }
        }
        let Some(layout) = layout else {
            let message = format!(
                "`{address}` holds no Iceberg catalog (no tables `iceberg_tables` and `iceberg_namespace_properties`): check the address"
            );
            return Err(Error::new(ErrorKind::Configuration, message));
        };
        Ok(Self { database, catalog: options.name.clone(), sql: Statements::new(layout) })
    }

    /// The metadata location of a table.
    pub(super) async fn location(&self, table: &TableIdent) -> Result<Option<String>, Failure> {
        let namespace = table.namespace().to_string();
        let rows = self.database.select(&self.sql.load, &[&self.catalog, &namespace, table.name()]).await?;
        Ok(rows.into_iter().flatten().next().flatten())
    }

    /// Adds a table. `Exists` where the name is taken, by a view too.
    pub(super) async fn insert(&self, table: &TableIdent, location: &str) -> Result<(), Failure> {
        let namespace = table.namespace().to_string();
        let values = [&self.catalog, &namespace, table.name(), location];
        self.database.execute(&self.sql.insert, &values).await.map(drop)
    }

    /// The compare-and-set: moves a table from one metadata file to the next, and tells whether it was at `from`.
    pub(super) async fn swap(&self, table: &TableIdent, from: &str, to: &str) -> Result<bool, Failure> {
        let namespace = table.namespace().to_string();
        let values = [&self.catalog, &namespace, table.name(), to, from];
        Ok(self.database.execute(&self.sql.swap, &values).await? > 0)
    }

    /// Removes a table and tells whether it was there.
    pub(super) async fn delete(&self, table: &TableIdent) -> Result<bool, Failure> {
        let namespace = table.namespace().to_string();
        let values = [&self.catalog, &namespace, table.name()];
        Ok(self.database.execute(&self.sql.delete, &values).await? > 0)
    }

    /// Renames a table and tells whether it was there. `Exists` where the new name is taken.
    pub(super) async fn rename(&self, from: &TableIdent, to: &TableIdent) -> Result<bool, Failure> {
        let (old, new) = (from.namespace().to_string(), to.namespace().to_string());
        let values = [&self.catalog, &old, from.name(), &new, to.name()];
        Ok(self.database.execute(&self.sql.rename, &values).await? > 0)
    }

    /// The names of a namespace's tables.
    pub(super) async fn tables(&self, namespace: &str) -> Result<Vec<String>, Failure> {
        let rows = self.database.select(&self.sql.list, &[&self.catalog, namespace]).await?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    /// All namespaces that have a property, a table or a view.
    pub(super) async fn namespaces(&self) -> Result<Vec<String>, Failure> {
        let rows = self.database.select(NAMESPACES, &[&self.catalog]).await?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    /// A namespace's properties, without the one that only says that it exists.
    pub(super) async fn properties(&self, namespace: &str) -> Result<HashMap<String, String>, Failure> {
        let rows = self.database.select(PROPERTIES, &[&self.catalog, namespace]).await?;
        let mut properties = HashMap::with_capacity(rows.len());
        for row in rows {
            let mut columns = row.into_iter();
            if let Some(Some(key)) = columns.next() {
                properties.insert(key, columns.next().flatten().unwrap_or_default());
            }
        }
        properties.remove(EXISTS);
        Ok(properties)
    }

    /// Makes these the properties of a namespace, in one transaction. Both PyIceberg and Java mark each namespace
    /// with a property `exists`. `Exists` where another process does the same at the same time.
    pub(super) async fn set_properties(
        &self,
        namespace: &str,
        properties: &HashMap<String, String>,
    ) -> Result<(), Failure> {
        let key = vec![self.catalog.as_str(), namespace];
        let mut statements = vec![Statement { sql: DELETE_PROPERTIES, values: key.clone() }];
        let others = properties.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let others = others.filter(|(key, _)| *key != EXISTS);
        statements.extend(std::iter::once((EXISTS, "true")).chain(others).map(|(name, value)| Statement {
            sql: INSERT_PROPERTY,
            values: [key.as_slice(), &[name, value]].concat(),
        }));
        self.database.transaction(&statements).await
    }

    /// Forgets a namespace's properties and so, where it has no tables, the namespace.
    pub(super) async fn delete_namespace(&self, namespace: &str) -> Result<(), Failure> {
        self.database.execute(DELETE_PROPERTIES, &[&self.catalog, namespace]).await.map(drop)
    }
}

/// A namespace from its text.
pub(super) fn namespace_ident(text: &str) -> iceberg::Result<NamespaceIdent> {
    NamespaceIdent::from_strs(text.split('.'))
}
