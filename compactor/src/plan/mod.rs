//! Which files are rewritten together, why others are not, and what will come out.
//!
//! A [`Plan`] is a value: it serialises, it can be printed, kept, and run later. It names files and the snapshot it
//! was made on; running it checks again that its files are still live, so an old plan can do no harm.

mod partition;
mod policy;
mod prepare;
mod selection;

use std::collections::BTreeMap;

use firn_policies::{Debt, Histogram, RewriteOptions, SkipReason};
use iceberg::table::Table;
use serde::{Deserialize, Serialize};

use crate::Result;

pub use policy::PolicyAt;

pub(crate) use partition::output_partition;
pub(crate) use prepare::{GroupInputs, Prepared, prepare, resolve};

/// What to plan on, and what to leave out.
#[derive(Debug, Clone, Default)]
pub struct PlanOptions {
    /// An SQL condition over the columns of `files`: only files that meet it are rewritten (`--where`).
    pub filter: Option<String>,
    /// A partition, as `field=value` segments joined by `/` as in [`PlannedGroup::partition`]: only files whose
    /// partition has all of them are rewritten (`--partition day=2026-01-02`).
    pub partition: Option<String>,
    /// The branch; `main` where absent.
    pub branch: Option<String>,
    /// A snapshot instead of the branch's head.
    pub snapshot_id: Option<i64>,
    /// Options of the rewrite under Iceberg's names, over the table's properties; see [`RewriteOptions::parse`].
    pub overrides: BTreeMap<String, String>,
    /// What a run may do and when; its condition and options hold beneath those above.
    pub policy: Option<PolicyAt>,
}

/// What a compaction will do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The table, as `namespace.name`.
    pub table: String,
    /// The table's uuid.
    pub table_uuid: String,
    /// The branch.
    pub branch: String,
    /// The snapshot that was planned on; `None` where the branch has none (then the plan is empty).
    pub planned_on: Option<i64>,
    /// The options that decided.
    pub options: RewriteOptions,
    /// The name of the policy that decided, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The groups, in the order in which they will be rewritten.
    pub groups: Vec<PlannedGroup>,
    /// Every other live file with its reason.
    pub skipped: Vec<SkippedFile>,
    /// All live files by size.
    pub histogram: Histogram,
    /// The same after the plan has run, as far as sizes can be foretold.
    pub expected_histogram: Histogram,
    /// What the plan saves.
    pub debt: Debt,
}

/// Files of one partition and spec that are rewritten together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedGroup {
    /// Its number in the plan.
    pub id: usize,
    /// The partition as readers know it: `day=2026-01-02/id_bucket=3`, empty where unpartitioned.
    pub partition: String,
    /// The partition spec of the files, and of what comes out.
    pub spec_id: i32,
    /// The files.
    pub files: Vec<PlannedFile>,
    /// Their bytes.
    pub bytes: u64,
    /// Their rows.
    pub rows: u64,
    /// Files that come out, at most.
    pub expected_outputs: u64,
    /// The size at which the group is split, in bytes.
    pub split_bytes: u64,
}

/// One file of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFile {
    /// Its path.
    pub path: String,
    /// Bytes on storage.
    pub bytes: u64,
    /// Rows.
    pub rows: u64,
}

/// A live file that is not rewritten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedFile {
    /// Its path.
    pub path: String,
    /// Its partition.
    pub partition: String,
    /// Bytes on storage.
    pub bytes: u64,
    /// Why.
    #[serde(flatten)]
    pub reason: SkipReason,
}

/// What a plan says about one file (`plan --why PATH`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Why {
    /// It is rewritten with others.
    Rewritten {
        /// The group's number.
        group: usize,
        /// Files of the group.
        files: usize,
        /// Files that come out, at most.
        expected_outputs: u64,
    },
    /// It is left alone.
    Skipped(SkippedFile),
    /// The snapshot has no such file.
    NotLive,
}

impl Plan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Files to read.
    #[must_use]
    pub fn input_files(&self) -> u64 {
        self.groups.iter().map(|group| group.files.len() as u64).sum()
    }

    /// Bytes to read.
    #[must_use]
    pub fn input_bytes(&self) -> u64 {
        self.groups.iter().map(|group| group.bytes).sum()
    }

    /// Rows to read.
    #[must_use]
    pub fn input_rows(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }

    /// Files that come out, at most.
    #[must_use]
    pub fn expected_outputs(&self) -> u64 {
        self.groups.iter().map(|group| group.expected_outputs).sum()
    }

    /// What becomes of the file at `path` (or whose path ends with `/path`), and why.
    #[must_use]
    pub fn why(&self, path: &str) -> Why {
        let suffix = format!("/{}", path.trim_start_matches('/'));
        let is_meant = |candidate: &str| candidate == path || candidate.ends_with(&suffix);
        let group = self.groups.iter().find(|group| group.files.iter().any(|file| is_meant(&file.path)));
        if let Some(group) = group {
            return Why::Rewritten {
                group: group.id,
                files: group.files.len(),
                expected_outputs: group.expected_outputs,
            };
        }
        let skipped = self.skipped.iter().find(|file| is_meant(&file.path));
        skipped.map_or(Why::NotLive, |file| Why::Skipped(file.clone()))
    }
}

/// Plans the compaction of a table's branch. Reads manifests, no data file; changes nothing.
///
/// Files with deletes that a rewrite cannot apply (equality deletes) are skipped. `Configuration` where an option or a
/// condition is wrong (all wrong options at once).
pub async fn plan(table: &Table, options: &PlanOptions) -> Result<Plan> {
    Ok(prepare(table, options).await?.plan)
}

#[cfg(test)]
mod tests;
