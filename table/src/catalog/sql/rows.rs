//! The statements of the SQL catalog.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use iceberg::{NamespaceIdent, TableIdent};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Row};

use super::super::IfMissing;
use super::SqlOptions;
use super::failure::Failure;
use super::layout::Layout;
use crate::{Error, ErrorKind, Result};

/// How long SQLite itself waits for a lock before it answers BUSY: short, so that the caller decides.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait for one of the pool's connections.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECTIONS: u32 = 4;

/// The key of the property that stands for a namespace without properties, as PyIceberg and Java write it.
const EXISTS: &str = "exists";

/// The rows of one catalog name in one database. Namespaces are text here, their levels joined by `.`.
#[derive(Debug)]
pub(super) struct Rows {
    pool: SqlitePool,
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
        let create = options.if_missing == IfMissing::Create;
        let in_memory = options.database == Path::new(":memory:");
        let shown = options.database.display();
        if !in_memory {
            prepare_file(&options.database, options.if_missing).await?;
        }
        let connect = SqliteConnectOptions::new()
            .filename(&options.database)
            .create_if_missing(create)
            .busy_timeout(BUSY_TIMEOUT);
        let pool = SqlitePoolOptions::new()
            .max_connections(if in_memory { 1 } else { CONNECTIONS })
            .min_connections(u32::from(in_memory))
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(connect);
        let failed =
            |failure: Failure| failure.into_error(&format!("opening the catalog database `{shown}`"));
        let mut layout = Layout::find(&pool).await.map_err(failed)?;
        if layout.is_none() && (create || in_memory) {
            Layout::create(&pool).await.map_err(failed)?;
            layout = Layout::find(&pool).await.map_err(failed)?;
        }
        let Some(layout) = layout else {
            let message = format!(
                "`{shown}` holds no Iceberg catalog (no tables `iceberg_tables` and `iceberg_namespace_properties`): check the path"
            );
            return Err(Error::new(ErrorKind::Configuration, message));
        };
        Ok(Self { pool, catalog: options.name.clone(), sql: Statements::new(layout) })
    }

    /// The metadata location of a table.
    pub(super) async fn location(&self, table: &TableIdent) -> Result<Option<String>, Failure> {
        let row = sqlx::query(AssertSqlSafe(self.sql.load.as_str()))
            .bind(&self.catalog)
            .bind(table.namespace().to_string())
            .bind(table.name())
            .fetch_optional(&self.pool)
            .await?;
        Ok(row.map(|row| row.try_get::<Option<String>, _>(0)).transpose()?.flatten())
    }

    /// Adds a table. `Exists` where the name is taken, by a view too.
    pub(super) async fn insert(&self, table: &TableIdent, location: &str) -> Result<(), Failure> {
        sqlx::query(AssertSqlSafe(self.sql.insert.as_str()))
            .bind(&self.catalog)
            .bind(table.namespace().to_string())
            .bind(table.name())
            .bind(location)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// The compare-and-set: moves a table from one metadata file to the next, and tells whether it was at `from`.
    pub(super) async fn swap(&self, table: &TableIdent, from: &str, to: &str) -> Result<bool, Failure> {
        let done = sqlx::query(AssertSqlSafe(self.sql.swap.as_str()))
            .bind(&self.catalog)
            .bind(table.namespace().to_string())
            .bind(table.name())
            .bind(to)
            .bind(from)
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Removes a table and tells whether it was there.
    pub(super) async fn delete(&self, table: &TableIdent) -> Result<bool, Failure> {
        let done = sqlx::query(AssertSqlSafe(self.sql.delete.as_str()))
            .bind(&self.catalog)
            .bind(table.namespace().to_string())
            .bind(table.name())
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Renames a table and tells whether it was there. `Exists` where the new name is taken.
    pub(super) async fn rename(&self, from: &TableIdent, to: &TableIdent) -> Result<bool, Failure> {
        let done = sqlx::query(AssertSqlSafe(self.sql.rename.as_str()))
            .bind(&self.catalog)
            .bind(from.namespace().to_string())
            .bind(from.name())
            .bind(to.namespace().to_string())
            .bind(to.name())
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// The names of a namespace's tables.
    pub(super) async fn tables(&self, namespace: &str) -> Result<Vec<String>, Failure> {
        Ok(sqlx::query_scalar(AssertSqlSafe(self.sql.list.as_str()))
            .bind(&self.catalog)
            .bind(namespace)
            .fetch_all(&self.pool)
            .await?)
    }

    /// All namespaces that have a property, a table or a view.
    pub(super) async fn namespaces(&self) -> Result<Vec<String>, Failure> {
        Ok(sqlx::query_scalar(
            "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = $1 \
             UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = $1",
        )
        .bind(&self.catalog)
        .fetch_all(&self.pool)
        .await?)
    }

    /// A namespace's properties, without the one that only says that it exists.
    pub(super) async fn properties(&self, namespace: &str) -> Result<HashMap<String, String>, Failure> {
        let rows = sqlx::query(
            "SELECT property_key, property_value FROM iceberg_namespace_properties \
             WHERE catalog_name = $1 AND namespace = $2",
        )
        .bind(&self.catalog)
        .bind(namespace)
        .fetch_all(&self.pool)
        .await?;
        let mut properties = HashMap::with_capacity(rows.len());
        for row in rows {
            let (key, value): (String, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
            properties.insert(key, value.unwrap_or_default());
        }
        properties.remove(EXISTS);
        Ok(properties)
    }

    /// Makes these the properties of a namespace, in one transaction. Both PyIceberg and Java mark each namespace
    /// with a property `exists`.
    pub(super) async fn set_properties(
        &self,
        namespace: &str,
        properties: &HashMap<String, String>,
    ) -> Result<(), Failure> {
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query("DELETE FROM iceberg_namespace_properties WHERE catalog_name = $1 AND namespace = $2")
            .bind(&self.catalog)
            .bind(namespace)
            .execute(&mut *transaction)
            .await?;
        let exists = (EXISTS.to_owned(), "true".to_owned());
        let others = properties.iter().filter(|(key, _)| key.as_str() != EXISTS);
        for (key, value) in std::iter::once((&exists.0, &exists.1)).chain(others) {
            sqlx::query(
                "INSERT INTO iceberg_namespace_properties \
                 (catalog_name, namespace, property_key, property_value) VALUES ($1, $2, $3, $4)",
            )
            .bind(&self.catalog)
            .bind(namespace)
            .bind(key)
            .bind(value)
            .execute(&mut *transaction)
            .await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Forgets a namespace's properties and so, where it has no tables, the namespace.
    pub(super) async fn delete_namespace(&self, namespace: &str) -> Result<(), Failure> {
        sqlx::query("DELETE FROM iceberg_namespace_properties WHERE catalog_name = $1 AND namespace = $2")
            .bind(&self.catalog)
            .bind(namespace)
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}

/// A namespace from its text.
pub(super) fn namespace_ident(text: &str) -> iceberg::Result<NamespaceIdent> {
    NamespaceIdent::from_strs(text.split('.'))
}

async fn prepare_file(database: &Path, if_missing: IfMissing) -> Result<()> {
    let shown = database.display();
    let exists = tokio::fs::try_exists(database).await.map_err(|error| {
        let message = format!("catalog database `{shown}` cannot be looked at");
        Error::new(ErrorKind::Configuration, message).with_source(error)
    })?;
    match if_missing {
        _ if exists => Ok(()),
        IfMissing::Refuse => {
            let message = format!("catalog database `{shown}` does not exist: check the path");
            Err(Error::new(ErrorKind::NotFound, message))
        }
        IfMissing::Create => {
            let Some(folder) = database.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
                return Ok(());
            };
            tokio::fs::create_dir_all(folder).await.map_err(|error| {
                let message = format!("cannot make the folder of the catalog database `{shown}`");
                Error::new(ErrorKind::Configuration, message).with_source(error)
            })
        }
    }
}
