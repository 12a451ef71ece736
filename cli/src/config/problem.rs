//! What is wrong with a configuration: all of it, in one message.

use std::fmt;

use crate::config::Source;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Where the value was given.
    pub source: Source,
    /// The setting, for instance `write.max-age`; empty where the whole source is meant.
    pub path: String,
    /// The value as it was given, where there is one that may be shown.
    pub value: Option<String>,
    /// What is wrong with it, and what to write instead.
    pub what: String,
    /// What follows from it.
    pub consequence: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if !self.path.is_empty() {
            write!(f, ": `{}`", self.path)?;
        }
        if let Some(value) = &self.value {
            write!(f, " = `{value}`")?;
        }
        write!(f, ": {}, so {}", self.what, self.consequence)
    }
}

/// Everything that is wrong; never empty.
#[derive(Clone, Debug)]
pub(crate) struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "the configuration has {count} {}", if count == 1 { "problem" } else { "problems" })?;
        for problem in &self.0 {
            write!(f, "\n  - {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
