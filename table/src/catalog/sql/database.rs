//! One database of either kind behind one pool. All that this catalog binds and reads is text.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgPool, Postgres};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqlitePool};
use sqlx::{AssertSqlSafe, Connection, Encode, Pool, Row, Type};

use super::failure::Failure;

/// How long a statement may go unanswered. The server gives up before that; this is for one that is silent.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// A pool of connections.
#[derive(Debug)]
pub(super) enum Database {
    /// A file.
    Sqlite(SqlitePool),
    /// A server.
    Postgres(PgPool),
}

/// SQL, the same for both kinds, and the values of `$1`, `$2`, ….
#[derive(Debug)]
pub(super) struct Statement<'a> {
    pub(super) sql: &'a str,
    pub(super) values: Vec<&'a str>,
}

/// The columns of a row.
pub(super) type TextRow = Vec<Option<String>>;

impl Database {
    /// Executes one statement, and returns the number of rows that it changed once its transaction is over.
    pub(super) async fn execute(&self, sql: &str, values: &[&str]) -> Result<u64, Failure> {
        match self {
            Self::Sqlite(pool) => {
                let mut connection = connect(pool).await?;
                let done = bound::<Sqlite>(sql, values).execute(&mut *connection);
                Ok(answered(done).await.map(|done| done.rows_affected())?)
            }
            Self::Postgres(pool) => {
                let mut connection = connect(pool).await?;
                let done = bound::<Postgres>(sql, values).execute(&mut *connection);
                let done = answered(done).await;
                closed_if_failed(connection, done).map(|done| done.rows_affected())
            }
        }
    }

    /// The rows of a query whose columns are all text.
    pub(super) async fn select(&self, sql: &str, values: &[&str]) -> Result<Vec<TextRow>, Failure> {
        match self {
            Self::Sqlite(pool) => {
                let mut connection = connect(pool).await?;
                let rows = answered(bound::<Sqlite>(sql, values).fetch_all(&mut *connection)).await?;
                rows.iter().map(|row| (0..row.len()).map(|at| Ok(row.try_get(at)?)).collect()).collect()
            }
            Self::Postgres(pool) => {
                let mut connection = connect(pool).await?;
                let rows = answered(bound::<Postgres>(sql, values).fetch_all(&mut *connection)).await;
                let rows = closed_if_failed(connection, rows)?;
                rows.iter().map(|row| (0..row.len()).map(|at| Ok(row.try_get(at)?)).collect()).collect()
            }
        }
    }

    /// Executes statements in one transaction.
    pub(super) async fn transaction(&self, statements: &[Statement<'_>]) -> Result<(), Failure> {
        match self {
            Self::Sqlite(pool) => {
                let mut connection = connect(pool).await?;
                let all = async {
                    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
                    for one in statements {
                        bound::<Sqlite>(one.sql, &one.values).execute(&mut *transaction).await?;
                    }
                    transaction.commit().await
                };
                answered(all).await
            }
            Self::Postgres(pool) => {
                let mut connection = connect(pool).await?;
                let all = async {
                    let mut transaction = connection.begin().await?;
                    for one in statements {
                        bound::<Postgres>(one.sql, &one.values).execute(&mut *transaction).await?;
                    }
                    transaction.commit().await
                };
                let all = answered(all).await;
                closed_if_failed(connection, all)
            }
        }
    }
}

async fn connect<DB: sqlx::Database>(pool: &Pool<DB>) -> Result<PoolConnection<DB>, Failure> {
    pool.acquire().await.map_err(Failure::connecting)
}

async fn answered<T>(statement: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, Failure> {
    match tokio::time::timeout(STATEMENT_TIMEOUT, statement).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Failure::unanswered(STATEMENT_TIMEOUT)),
    }
}

/// A connection on which nobody knows what goes on is not used again.
fn closed_if_failed<T>(
    mut connection: PoolConnection<Postgres>,
    answer: Result<T, Failure>,
) -> Result<T, Failure> {
    if matches!(answer, Err(Failure::Unknown(_))) {
        connection.close_on_drop();
    }
    answer
}

fn bound<'q, DB: sqlx::Database>(sql: &'q str, values: &[&'q str]) -> Query<'q, DB, DB::Arguments>
where
    &'q str: Encode<'q, DB> + Type<DB>,
{
    values.iter().fold(sqlx::query::<DB>(AssertSqlSafe(sql)), |query, value| query.bind(*value))
}
