//! One kind of error per reaction of the caller.

use std::fmt;

/// What a caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A setting, property or argument is wrong: a person must change it.
    Configuration,
    /// The table or file has a feature that firn does not handle: nothing was changed.
    Unsupported,
    /// The table, namespace, snapshot or file does not exist.
    NotFound,
    /// What was to be created exists already.
    AlreadyExists,
    /// The base moved more often than the number of tries allows: try again later.
    Conflict,
    /// A catalog, store or broker does not answer as it should: try again later.
    Unavailable,
    /// Bytes that should be valid are not: a corrupt file, or a message that cannot be decoded.
    Data,
    /// The flush starts where the table's cursor no longer is: discard it and seek.
    Overtaken,
    /// The ledger contradicts the table, the topic or the request: a person must decide.
    Ledger,
    /// The outcome of a commit could not be learnt: nothing may be deleted.
    UnknownOutcome,
    /// Another run holds what this one needs.
    Held,
    /// A defect of firn.
    Internal,
}

/// An error of this crate: a kind to act on, a message to read, and its cause.
#[derive(Debug, thiserror::Error)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error without a cause. `message` is a lower-case fragment: what, `` `value` ``, what follows, what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Puts `what: ` before the message, keeping kind and cause.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The kind, to act on.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<iceberg::Error> for Error {
    /// Keeps the kind of an error of ours that passed through `iceberg`; otherwise the kind by which a caller reacts.
    fn from(error: iceberg::Error) -> Self {
        use iceberg::ErrorKind as Iceberg;
        let ours = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<Self>());
        let kind = match (ours, error.kind()) {
            (Some(ours), _) => ours.kind,
            (None, Iceberg::TableNotFound | Iceberg::NamespaceNotFound) => ErrorKind::NotFound,
            (None, Iceberg::TableAlreadyExists | Iceberg::NamespaceAlreadyExists) => ErrorKind::AlreadyExists,
            (None, Iceberg::CatalogCommitConflicts) => ErrorKind::Conflict,
            (None, Iceberg::FeatureUnsupported) => ErrorKind::Unsupported,
            (None, Iceberg::DataInvalid) => ErrorKind::Data,
            (None, Iceberg::PreconditionFailed) => ErrorKind::Configuration,
            (None, _) => ErrorKind::Internal,
        };
        let message = ours.map_or_else(|| error.message().to_owned(), |ours| ours.message.clone());
        Self { kind, message, source: Some(Box::new(error)) }
    }
}

impl From<Error> for iceberg::Error {
    /// The nearest kind of `iceberg`, with the error itself as the source, so that the way back loses nothing.
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            ErrorKind::Unsupported => iceberg::ErrorKind::FeatureUnsupported,
            ErrorKind::Conflict => iceberg::ErrorKind::CatalogCommitConflicts,
            ErrorKind::Data => iceberg::ErrorKind::DataInvalid,
            ErrorKind::Configuration => iceberg::ErrorKind::PreconditionFailed,
            _ => iceberg::ErrorKind::Unexpected,
        };
        iceberg::Error::new(kind, error.message.clone()).with_source(error)
    }
}
