//! What compaction could still save.

use serde::{Deserialize, Serialize};

use crate::binpack::Decision;

/// Files above the ideal number, and the bytes to rewrite for it. Zero right after a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Debt {
    /// Files that would go if every worthwhile group were rewritten.
    pub excess_files: u64,
    /// Files to read for that.
    pub files_to_rewrite: u64,
    /// Bytes to read for that.
    pub bytes_to_rewrite: u64,
}

impl Debt {
    /// The debt that a decision would pay.
    #[must_use]
    pub fn of(decision: &Decision) -> Self {
        decision.groups.iter().fold(Self::default(), |debt, group| {
            let inputs = group.files.len() as u64;
            Self {
                excess_files: debt.excess_files + inputs.saturating_sub(group.expected_outputs),
                files_to_rewrite: debt.files_to_rewrite + inputs,
                bytes_to_rewrite: debt.bytes_to_rewrite + group.bytes,
            }
        })
    }
}
