//! One group: its files are read by field id in the current schema, and written to new files at the right size.
//!
//! ```text
//! files → reader thread (decode, input summary) → DataFusion plan → writer thread (encode, cut) → outputs → verify
//! ```
//!
//! Reader and writer of a group are two threads with a short queue between them. What they hold is accounted to the
//! memory pool of the run. A group that fails or is stopped removes its outputs: they were never sent to a catalog.

mod estimate;
mod group;
mod output;
mod source;
mod summary;

use serde::{Deserialize, Serialize};

pub(crate) use group::{GroupTask, Rewriter, RewriterContext, Rewritten};

/// How outputs are checked before the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// Rows and null counts of every column in the outputs' own metadata equal those of the rows that were read.
    Metadata,
    /// Also, the outputs are read back, and every column's order-independent checksum equals that of the inputs.
    #[default]
    Full,
}

impl Verify {
    /// Its name in a snapshot's summary (`firn.verified`).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Full => "full",
        }
    }
}
