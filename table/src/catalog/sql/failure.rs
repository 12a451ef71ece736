//! What a database error says about a statement: certainly not applied, hopeless, or nothing.

use crate::{Error, ErrorKind};

/// Primary result codes of SQLite (the low byte of an extended code).
mod code {
    pub(super) const PERM: i32 = 3;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const READONLY: i32 = 8;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const AUTH: i32 = 23;
    pub(super) const NOTADB: i32 = 26;
}

/// A statement, in a transaction of its own, that failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Certainly not applied and worth trying again: another process holds the lock, or no connection came about.
    NotApplied(Error),
    /// Certainly not applied, and hopeless: a database that cannot be written, or is none.
    Rejected(Error),
    /// The row is there already (a unique key): not applied.
    Exists,
    /// Anything else: COMMIT may have happened.
    Unknown(Error),
}

impl Failure {
    /// As an error of a method that has no typed outcome. `what` says what was being done.
    pub(super) fn into_error(self, what: &str) -> Error {
        match self {
            Self::NotApplied(error) | Self::Rejected(error) | Self::Unknown(error) => error.context(what),
            Self::Exists => Error::new(ErrorKind::AlreadyExists, format!("{what}: the row exists already")),
        }
    }
}

impl From<sqlx::Error> for Failure {
    /// A statement of ours runs in autocommit or in a transaction that ends with it. SQLite rolls it back when it
    /// answers BUSY, also where that happens while it commits.
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error as Sql;
        match &error {
            Sql::Database(database) if database.is_unique_violation() => Self::Exists,
            Sql::Database(database) => {
                let extended = database.code().and_then(|code| code.parse::<i32>().ok()).unwrap_or_default();
                match extended & 0xff {
                    code::BUSY | code::LOCKED => Self::NotApplied(
                        Error::new(
                            ErrorKind::Unavailable,
                            "another process holds the catalog database's lock",
                        )
                        .with_source(error),
                    ),
                    code::CANTOPEN => Self::NotApplied(
                        Error::new(ErrorKind::Unavailable, "the catalog database cannot be opened")
                            .with_source(error),
                    ),
                    code::PERM | code::READONLY | code::AUTH => Self::Rejected(
                        Error::new(ErrorKind::Configuration, "the catalog database cannot be written")
                            .with_source(error),
                    ),
                    code::NOTADB | code::CORRUPT => Self::Rejected(
                        Error::new(
                            ErrorKind::Configuration,
                            "the file is no SQLite database, or a damaged one",
                        )
                        .with_source(error),
                    ),
                    _ => Self::unknown(error),
                }
            }
            Sql::PoolTimedOut | Sql::PoolClosed => Self::NotApplied(
                Error::new(ErrorKind::Unavailable, "no connection to the catalog database became free")
                    .with_source(error),
            ),
            _ => Self::unknown(error),
        }
    }
}

impl Failure {
    fn unknown(error: sqlx::Error) -> Self {
        Self::Unknown(Error::new(ErrorKind::Unavailable, "the catalog database failed").with_source(error))
    }
}
