//! What a database error says about a statement: certainly not applied, hopeless, or nothing.

mod postgres;
mod sqlite;

use std::io::ErrorKind as ErrorKindOfIo;
use std::time::Duration;

use sqlx::postgres::PgDatabaseError;

use crate::{Error, ErrorKind};

/// Certificates that are not trusted among it.
const NO_TLS: &str = "no TLS connection to the catalog database: see `sslmode` and `sslrootcert`";

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

/// What an error code of a database means, and in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Rolled back, and worth trying again.
    NotApplied(&'static str),
    /// Rolled back, and hopeless until a person changes something.
    Rejected(&'static str),
    /// The code does not tell.
    Unknown(&'static str),
}

impl Failure {
    /// As an error of a method that has no typed outcome. `what` says what was being done.
    pub(super) fn into_error(self, what: &str) -> Error {
        match self {
            Self::NotApplied(error) | Self::Rejected(error) | Self::Unknown(error) => error.context(what),
            Self::Exists => Error::new(ErrorKind::AlreadyExists, format!("{what}: the row exists already")),
        }
    }

    /// No connection came about: no statement was sent.
    pub(super) fn connecting(error: sqlx::Error) -> Self {
        use sqlx::Error as Sql;
        let (kind, what) = match &error {
            Sql::Database(_) => match Self::from(error) {
                Self::Unknown(error) => return Self::NotApplied(error),
                failure => return failure,
            },
            Sql::PoolTimedOut | Sql::PoolClosed => {
                (ErrorKind::Unavailable, "no connection to the catalog database came about in time")
            }
            // Also what is left of a handshake with a server that is going down, so that it is tried again.
            Sql::Tls(_) => (ErrorKind::Configuration, NO_TLS),
            Sql::Io(error) if error.kind() == ErrorKindOfIo::InvalidData => {
                (ErrorKind::Configuration, NO_TLS)
            }
            Sql::Configuration(_) => (ErrorKind::Configuration, "the catalog database's address is wrong"),
            _ => (ErrorKind::Unavailable, "the catalog database cannot be reached"),
        };
        Self::NotApplied(Error::new(kind, what).with_source(error))
    }

    /// No connection came about within `limit`.
    pub(super) fn not_connected_within(limit: Duration) -> Self {
        let message = format!("the catalog database did not answer within {} ms", limit.as_millis());
        Self::NotApplied(Error::new(ErrorKind::Unavailable, message))
    }

    /// A statement that was sent was not answered within `limit`.
    pub(super) fn unanswered(limit: Duration) -> Self {
        let message =
            format!("the catalog database did not answer a statement within {} ms", limit.as_millis());
        Self::Unknown(Error::new(ErrorKind::Unavailable, message))
    }
}

impl From<sqlx::Error> for Failure {
    /// A statement of ours runs in autocommit or in a transaction that ends with it, and it was sent.
    fn from(error: sqlx::Error) -> Self {
        let sqlx::Error::Database(database) = &error else {
            let message = "the connection to the catalog database failed";
            return Self::Unknown(Error::new(ErrorKind::Unavailable, message).with_source(error));
        };
        if database.is_unique_violation() {
            return Self::Exists;
        }
        let verdict = match database.try_downcast_ref::<PgDatabaseError>() {
            Some(postgres) => postgres::verdict(postgres.code()),
            None => sqlite::verdict(&database.code().unwrap_or_default()),
        };
        let because = |kind, what| Error::new(kind, what).with_source(error);
        match verdict {
            Verdict::NotApplied(what) => Self::NotApplied(because(ErrorKind::Unavailable, what)),
            Verdict::Rejected(what) => Self::Rejected(because(ErrorKind::Configuration, what)),
            Verdict::Unknown(what) => Self::Unknown(because(ErrorKind::Unavailable, what)),
        }
    }
}
