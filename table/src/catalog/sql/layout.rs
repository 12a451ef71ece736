//! The two tables of a SQL catalog: found by looking, made where asked.
//!
//! PyIceberg before 0.12 and Java's schema V0 have no column `iceberg_type`; Java's V1 and later PyIceberg have it,
//! with `TABLE` or null for a table and `VIEW` for a view. A database is used in the layout it has; a new one is V1.

use super::database::Database;
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
    pub(super) async fn find(database: &Database) -> Result<Option<Self>, Failure> {
        let columns = columns(database, "iceberg_tables").await?;
        if columns.is_empty() || self::columns(database, "iceberg_namespace_properties").await?.is_empty() {
            return Ok(None);
        }
        let typed = columns.iter().any(|column| column.eq_ignore_ascii_case("iceberg_type"));
        Ok(Some(if typed { Self::V1 } else { Self::V0 }))
    }

    /// Makes what is missing of the two tables; what is there stays as it is.
    pub(super) async fn create(database: &Database) -> Result<(), Failure> {
        database.execute(CREATE_TABLES, &[]).await?;
        database.execute(CREATE_NAMESPACES, &[]).await?;
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

/// The columns of a table, none where it does not exist. Postgres looks along the search path.
async fn columns(database: &Database, table: &str) -> Result<Vec<String>, Failure> {
    let sql = match database {
        Database::Sqlite(_) => "SELECT name FROM pragma_table_info($1)",
        Database::Postgres(_) => {
            "SELECT attname::text FROM pg_attribute \
             WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped"
        }
    };
    let rows = database.select(sql, &[table]).await?;
    Ok(rows.into_iter().flatten().flatten().collect())
}
