//! The two tables of a SQL catalog: found by looking, made where asked.
//!
//! PyIceberg before 0.12 and Java's schema V0 have no column `iceberg_type`; Java's V1 and later PyIceberg have it,
//! with `TABLE` or null for a table and `VIEW` for a view. A database is used in the layout it has; a new one is V1.

use sqlx::sqlite::SqlitePool;

use super::failure::Failure;

/// Which columns `iceberg_tables` has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Without `iceberg_type`: all rows are tables.
    V0,
    /// With `iceberg_type`.
    V1,
}

/// The condition, to be added to a WHERE, under which a row is a table.
const IS_TABLE: &str = " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)";

const CREATE_TABLES: &str = "CREATE TABLE IF NOT EXISTS iceberg_tables (
    catalog_name VARCHAR(255) NOT NULL,
    table_namespace VARCHAR(255) NOT NULL,
    table_name VARCHAR(255) NOT NULL,
    metadata_location VARCHAR(1000),
    previous_metadata_location VARCHAR(1000),
    iceberg_type VARCHAR(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name)
)";

const CREATE_NAMESPACES: &str = "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
    catalog_name VARCHAR(255) NOT NULL,
    namespace VARCHAR(255) NOT NULL,
    property_key VARCHAR(255) NOT NULL,
    property_value VARCHAR(1000),
    PRIMARY KEY (catalog_name, namespace, property_key)
)";

impl Layout {
    /// Looks at the database; `None` where one of the two tables is missing.
    pub(super) async fn find(pool: &SqlitePool) -> Result<Option<Self>, Failure> {
        let columns: Vec<String> = sqlx::query_scalar("SELECT name FROM pragma_table_info('iceberg_tables')")
            .fetch_all(pool)
            .await?;
        let namespaces: Vec<String> =
            sqlx::query_scalar("SELECT name FROM pragma_table_info('iceberg_namespace_properties')")
                .fetch_all(pool)
                .await?;
        if columns.is_empty() || namespaces.is_empty() {
            return Ok(None);
        }
        let typed = columns.iter().any(|column| column.eq_ignore_ascii_case("iceberg_type"));
        Ok(Some(if typed { Self::V1 } else { Self::V0 }))
    }

    /// Makes what is missing of the two tables; what is there stays as it is.
    pub(super) async fn create(pool: &SqlitePool) -> Result<(), Failure> {
        sqlx::query(CREATE_TABLES).execute(pool).await?;
        sqlx::query(CREATE_NAMESPACES).execute(pool).await?;
        Ok(())
    }

    /// What a WHERE on `iceberg_tables` needs beside its own conditions, so that it meets tables only.
    pub(super) fn only_tables(self) -> &'static str {
        match self {
            Self::V0 => "",
            Self::V1 => IS_TABLE,
        }
    }
}
