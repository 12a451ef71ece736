//! What one run may do, and what it does first.

use std::cmp::Ordering;
use std::time::Duration;

use serde::Deserialize;

use super::Policy;
use crate::binpack::{Decision, FileGroup, SkipReason};
use crate::quantity;

/// Limits of one run over all partitions together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Budget {
    /// Bytes to read.
    #[serde(deserialize_with = "quantity::bytes")]
    pub bytes: Option<u64>,
    /// Files to read.
    pub files: Option<u64>,
    /// How long a run may take: it commits what is finished then and ends.
    #[serde(deserialize_with = "quantity::duration")]
    pub time: Option<Duration>,
}

/// Which groups come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// In the order of the plan (`rewrite-job-order`).
    #[default]
    AsPlanned,
    /// Those that remove the most files for each byte they read.
    FilesPerByte,
}

impl Budget {
    pub(super) fn problems(&self) -> Vec<String> {
        let zero = [
            ("bytes", self.bytes == Some(0)),
            ("files", self.files == Some(0)),
            ("time", self.time == Some(Duration::ZERO)),
        ];
        let zero = zero.iter().filter(|(_, is_zero)| *is_zero);
        zero.map(|(name, _)| format!("`budget.{name}` = `0` allows nothing: leave it out")).collect()
    }
}

impl Policy {
    /// Ranks the groups of a decision and keeps those that fit the budget, in that order; a group that does not fit
    /// is passed over, and a later one may still do. The first group is always kept, or nothing would ever be done.
    #[must_use]
    pub fn within_budget(&self, decision: Decision) -> Decision {
        let Decision { mut groups, mut skipped } = decision;
        if self.rank == Rank::FilesPerByte {
            groups.sort_by(|a, b| gain(b).compare(&gain(a)).then(a.id.cmp(&b.id)));
        }
        let (mut bytes, mut files) = (0_u64, 0_u64);
        let mut kept: Vec<FileGroup> = Vec::new();
        for group in groups {
            let with = (bytes + group.bytes, files + group.files.len() as u64);
            let fits = self.budget.bytes.is_none_or(|most| with.0 <= most)
                && self.budget.files.is_none_or(|most| with.1 <= most);
            if fits || kept.is_empty() {
                (bytes, files) = with;
                kept.push(FileGroup { id: kept.len(), ..group });
            } else {
                let reason = SkipReason::OverBudget {
                    group_files: group.files.len() as u64,
                    group_bytes: group.bytes,
                };
                skipped.extend(group.files.iter().map(|&index| (index, reason.clone())));
            }
        }
        skipped.sort_unstable_by_key(|&(index, _)| index);
        Decision { groups: kept, skipped }
    }
}

/// What a group brings for what it costs.
#[derive(Debug, Clone, Copy)]
struct Gain {
    files_removed: u64,
    bytes_read: u64,
}

impl Gain {
    /// Compares the quotients without dividing.
    fn compare(&self, other: &Self) -> Ordering {
        let (left, right) = (
            u128::from(self.files_removed) * u128::from(other.bytes_read),
            u128::from(other.files_removed) * u128::from(self.bytes_read),
        );
        left.cmp(&right)
    }
}

fn gain(group: &FileGroup) -> Gain {
    let files_removed = (group.files.len() as u64).saturating_sub(group.expected_outputs);
    Gain { files_removed, bytes_read: group.bytes }
}
