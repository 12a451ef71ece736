//! Refusals as errors of the methods that have no typed outcome.

use std::fmt::Display;

use iceberg::{NamespaceIdent, TableIdent};

use super::answer::Refusal;
use super::http::Failure;
use crate::{Error, ErrorKind};

pub(super) const NO_SUCH_TABLE: &str = "NoSuchTableException";
pub(super) const NO_SUCH_NAMESPACE: &str = "NoSuchNamespaceException";
const NOT_EMPTY: &str = "NamespaceNotEmptyException";

/// A refusal of a request about a table. `what` says what was being done.
pub(super) fn of_table(refusal: &Refusal, table: &TableIdent, what: &str) -> iceberg::Error {
    let (kind, message) = match (refusal.status, &refusal.model) {
        (404, Some(_)) if refusal.is(NO_SUCH_NAMESPACE) => return no_namespace(table.namespace()),
        (404, Some(_)) => {
            let message = format!("table `{table}` is not in the catalog: check its name");
            (iceberg::ErrorKind::TableNotFound, message)
        }
        (409, Some(_)) => {
            let message = format!("table `{table}` exists already, or a view of that name: nothing was done");
            (iceberg::ErrorKind::TableAlreadyExists, message)
        }
        _ => return general(refusal, format_args!("{what} `{table}`")).into(),
    };
    iceberg::Error::new(kind, message)
}

/// A refusal of a request about a namespace.
pub(super) fn of_namespace(refusal: &Refusal, namespace: &NamespaceIdent, what: &str) -> iceberg::Error {
    match (refusal.status, &refusal.model) {
        (404, Some(_)) => no_namespace(namespace),
        (_, Some(_)) if refusal.is(NOT_EMPTY) => {
            let message = format!("namespace `{namespace}` is not empty: drop what is in it first");
            Error::new(ErrorKind::Configuration, message).into()
        }
        (409, Some(_)) => {
            let message = format!("namespace `{namespace}` exists already: nothing was created");
            iceberg::Error::new(iceberg::ErrorKind::NamespaceAlreadyExists, message)
        }
        _ => general(refusal, format_args!("{what} `{namespace}`")).into(),
    }
}

fn no_namespace(namespace: &NamespaceIdent) -> iceberg::Error {
    let message = format!("namespace `{namespace}` is not in the catalog: create it, or check its name");
    iceberg::Error::new(iceberg::ErrorKind::NamespaceNotFound, message)
}

/// A refusal, by its status. Without the catalog's own words nothing is taken for final: a proxy may have spoken. A
/// token that is refused in the middle of a session may be accepted again, so that is not final either.
pub(super) fn general(refusal: &Refusal, what: impl Display) -> Error {
    let kind = match (refusal.status, &refusal.model) {
        (405 | 406, _) | (501, Some(_)) => ErrorKind::Unsupported,
        (401 | 408 | 419 | 429, _) | (_, None) => ErrorKind::Unavailable,
        (404, _) => ErrorKind::NotFound,
        (409 | 412, _) => ErrorKind::Conflict,
        (400..=499, _) => ErrorKind::Configuration,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("{what}: {}", refusal.describe()))
}

/// A change of the catalog, other than a commit, that has no complete answer.
pub(super) fn of_change(failure: Failure, what: impl Display) -> iceberg::Error {
    match failure {
        Failure::NotSent(error) => error.context(what).into(),
        Failure::Lost(error) => {
            let message =
                format!("whether it was done is not known ({what}: {error}): look before it is done again");
            Error::new(ErrorKind::UnknownOutcome, message).with_source(error).into()
        }
    }
}
