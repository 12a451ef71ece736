//! The SQL catalog on SQLite and Postgres, in the tables that PyIceberg and Java's `JdbcCatalog` use.
//!
//! One row of `iceberg_tables` names the table's metadata file. A commit writes the next file and then moves the row
//! from the old location to the new one in a single UPDATE that compares the old location: the compare-and-set.
//! Namespaces are rows of `iceberg_namespace_properties`, or are implied by a table in them; levels are joined by `.`.
//!
//! | file | subject |
//! | --- | --- |
//! | `sql_catalog` | the catalog, and the head of each table as last seen |
//! | `sqlite`, `postgres` | addresses, and opening a database |
//! | `database` | one pool for both kinds: statements that bind and read text |
//! | `rows` | the statements, the same for both |
//! | `layout` | finding and making the tables, with and without the column `iceberg_type` |
//! | `failure` | what a database error says about a statement: applied or not |
//! | `commit` | the compare-and-set with its outcomes |
//! | `tables`, `namespaces` | the other methods of `iceberg::Catalog` |

mod commit;
mod database;
mod failure;
mod layout;
mod namespaces;
pub(super) mod postgres;
mod rows;
mod sql_catalog;
pub(super) mod sqlite;
mod tables;

pub(super) use self::postgres::PostgresAddress;
use self::sql_catalog::Head;
pub(super) use self::sql_catalog::{Address, SqlCatalog, SqlOptions};
