//! The options of a rewrite under Iceberg's names, with its defaults, from strings.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::sizes::Sizes;

/// The table property that holds the target size.
pub const WRITE_TARGET_FILE_SIZE_BYTES: &str = "write.target-file-size-bytes";
/// The target size of outputs; default: the table's `write.target-file-size-bytes`, else 512 MiB.
pub const TARGET_FILE_SIZE_BYTES: &str = "target-file-size-bytes";
/// Files below it are candidates; default 0.75 × target.
pub const MIN_FILE_SIZE_BYTES: &str = "min-file-size-bytes";
/// Files above it are candidates; default 1.8 × target.
pub const MAX_FILE_SIZE_BYTES: &str = "max-file-size-bytes";
/// Candidates that make a group worth it whatever their sum; default 5.
pub const MIN_INPUT_FILES: &str = "min-input-files";
/// Delete files that make a file a candidate; default: never.
pub const DELETE_FILE_THRESHOLD: &str = "delete-file-threshold";
/// The share of deleted rows that makes a file a candidate; default 0.3.
pub const DELETE_RATIO_THRESHOLD: &str = "delete-ratio-threshold";
/// The most input bytes of one group; default 100 GiB.
pub const MAX_FILE_GROUP_SIZE_BYTES: &str = "max-file-group-size-bytes";
/// Groups that are rewritten at a time; default 5.
pub const MAX_CONCURRENT_FILE_GROUP_REWRITES: &str = "max-concurrent-file-group-rewrites";
/// Whether finished groups are committed before the others are done; default true, with 10 commits.
pub const PARTIAL_PROGRESS_ENABLED: &str = "partial-progress.enabled";
/// The most commits of one run with partial progress; default 10.
pub const PARTIAL_PROGRESS_MAX_COMMITS: &str = "partial-progress.max-commits";
/// Whether outputs keep the sequence number of the snapshot that was planned on; default true.
pub const USE_STARTING_SEQUENCE_NUMBER: &str = "use-starting-sequence-number";
/// In which order groups are rewritten; default `none`.
pub const REWRITE_JOB_ORDER: &str = "rewrite-job-order";
/// Whether all files are rewritten, also those of the right size; default false.
pub const REWRITE_ALL: &str = "rewrite-all";

const NAMES: [&str; 13] = [
    TARGET_FILE_SIZE_BYTES,
    MIN_FILE_SIZE_BYTES,
    MAX_FILE_SIZE_BYTES,
    MIN_INPUT_FILES,
    DELETE_FILE_THRESHOLD,
    DELETE_RATIO_THRESHOLD,
    MAX_FILE_GROUP_SIZE_BYTES,
    MAX_CONCURRENT_FILE_GROUP_REWRITES,
    PARTIAL_PROGRESS_ENABLED,
    PARTIAL_PROGRESS_MAX_COMMITS,
    USE_STARTING_SEQUENCE_NUMBER,
    REWRITE_JOB_ORDER,
    REWRITE_ALL,
];

const DEFAULT_TARGET_BYTES: u64 = 512 << 20;
const DEFAULT_GROUP_BYTES: u64 = 100 << 30;

/// How files are chosen and rewritten. Checked: see [`RewriteOptions::parse`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RewriteOptions {
    /// Minimum, target and maximum size of a file.
    pub sizes: Sizes,
    /// Candidates that make a group worth it whatever their sum.
    pub min_input_files: u64,
    /// Delete files that make a file a candidate; `None`: never.
    pub delete_file_threshold: Option<u64>,
    /// The share of deleted rows that makes a file a candidate.
    pub delete_ratio_threshold: f64,
    /// The most input bytes of one group.
    pub max_file_group_bytes: u64,
    /// Groups that are rewritten at a time.
    pub max_concurrent_groups: u64,
    /// The most commits of one run; `None`: one commit at the end.
    pub max_commits: Option<u64>,
    /// Whether outputs keep the sequence number of the snapshot that was planned on.
    pub use_starting_sequence_number: bool,
    /// In which order groups are rewritten.
    pub job_order: JobOrder,
    /// Whether all files are rewritten, also those of the right size.
    pub rewrite_all: bool,
}

/// In which order groups are rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobOrder {
    /// By partition, as planned.
    #[default]
    None,
    /// The smallest groups first.
    BytesAsc,
    /// The largest groups first.
    BytesDesc,
    /// The groups with the fewest files first.
    FilesAsc,
    /// The groups with the most files first.
    FilesDesc,
}

/// One option that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionProblem {
    /// The option's name.
    pub option: String,
    /// What is wrong with which value, and what to do.
    pub message: String,
}

/// Everything that is wrong with a set of options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct OptionProblems(pub Vec<OptionProblem>);

impl fmt::Display for OptionProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}`{}` {}", problem.option, problem.message)?;
        }
        Ok(())
    }
}

impl Default for RewriteOptions {
    fn default() -> Self {
        Self::of_target(DEFAULT_TARGET_BYTES)
    }
}

impl RewriteOptions {
    /// Iceberg's defaults for a target size.
    #[must_use]
    pub fn of_target(target_bytes: u64) -> Self {
        Self {
            sizes: Sizes::of_target(target_bytes),
            min_input_files: 5,
            delete_file_threshold: None,
            delete_ratio_threshold: 0.3,
            max_file_group_bytes: DEFAULT_GROUP_BYTES,
            max_concurrent_groups: 5,
            max_commits: Some(10),
            use_starting_sequence_number: true,
            job_order: JobOrder::None,
            rewrite_all: false,
        }
    }

    /// Reads a table's properties and, over them, options of one run (from a command line or a policy).
    ///
    /// All problems are reported at once: names that do not exist, values that cannot be read, and sizes that
    /// contradict each other.
    pub fn parse(
        table_properties: &HashMap<String, String>,
        overrides: &BTreeMap<String, String>,
    ) -> Result<Self, OptionProblems> {
        let mut reader = Reader { overrides, problems: Vec::new() };
        reader.refuse_unknown_names();
        let table_target = reader.table_target(table_properties);
        let options = reader.options(table_target);
        if reader.problems.is_empty() { Ok(options) } else { Err(OptionProblems(reader.problems)) }
    }
}

/// Reads options one by one and collects what is wrong.
struct Reader<'a> {
    overrides: &'a BTreeMap<String, String>,
    problems: Vec<OptionProblem>,
}

impl Reader<'_> {
    fn problem(&mut self, option: &str, message: impl Into<String>) {
        self.problems.push(OptionProblem { option: option.to_owned(), message: message.into() });
    }

    fn refuse_unknown_names(&mut self) {
        let unknown: Vec<&String> =
            self.overrides.keys().filter(|name| !NAMES.contains(&name.as_str())).collect();
        for name in unknown {
            self.problem(
                name,
                format!("is not an option of a rewrite; the options are {}", NAMES.join(", ")),
            );
        }
    }

    fn table_target(&mut self, properties: &HashMap<String, String>) -> u64 {
        let Some(text) = properties.get(WRITE_TARGET_FILE_SIZE_BYTES) else { return DEFAULT_TARGET_BYTES };
        match text.trim().parse::<u64>() {
            Ok(bytes) if bytes > 0 => bytes,
            _ if self.overrides.contains_key(TARGET_FILE_SIZE_BYTES) => DEFAULT_TARGET_BYTES,
            _ => {
                self.problem(
                    WRITE_TARGET_FILE_SIZE_BYTES,
                    format!("of the table is `{text}`, not a number of bytes; set {TARGET_FILE_SIZE_BYTES}"),
                );
                DEFAULT_TARGET_BYTES
            }
        }
    }

    fn options(&mut self, table_target: u64) -> RewriteOptions {
        let target_bytes = self.positive(TARGET_FILE_SIZE_BYTES, table_target);
        let defaults = RewriteOptions::of_target(target_bytes);
        let sizes = self.sizes(defaults.sizes);
        RewriteOptions {
            sizes,
            min_input_files: self.positive(MIN_INPUT_FILES, defaults.min_input_files),
            delete_file_threshold: self.delete_files(),
            delete_ratio_threshold: self.ratio(defaults.delete_ratio_threshold),
            max_file_group_bytes: self.group_bytes(defaults.max_file_group_bytes, &sizes),
            max_concurrent_groups: self
                .positive(MAX_CONCURRENT_FILE_GROUP_REWRITES, defaults.max_concurrent_groups),
            max_commits: self.commits(defaults.max_commits),
            use_starting_sequence_number: self
                .value(USE_STARTING_SEQUENCE_NUMBER, "true or false")
                .unwrap_or(defaults.use_starting_sequence_number),
            job_order: self
                .value(REWRITE_JOB_ORDER, "none, bytes-asc, bytes-desc, files-asc or files-desc")
                .unwrap_or_default(),
            rewrite_all: self.value(REWRITE_ALL, "true or false").unwrap_or(defaults.rewrite_all),
        }
    }

    fn sizes(&mut self, defaults: Sizes) -> Sizes {
        let target_bytes = defaults.target_bytes;
        let sizes = Sizes {
            min_bytes: self.value(MIN_FILE_SIZE_BYTES, "a number of bytes").unwrap_or(defaults.min_bytes),
            target_bytes,
            max_bytes: self.positive(MAX_FILE_SIZE_BYTES, defaults.max_bytes),
        };
        if sizes.min_bytes >= target_bytes {
            self.problem(
                MIN_FILE_SIZE_BYTES,
                format!("= `{}` is not below the target of `{target_bytes}` bytes", sizes.min_bytes),
            );
        }
        if sizes.max_bytes <= target_bytes {
            self.problem(
                MAX_FILE_SIZE_BYTES,
                format!("= `{}` is not above the target of `{target_bytes}` bytes", sizes.max_bytes),
            );
        }
        // Problems are reported at the end; until then the arithmetic needs sizes in order.
        Sizes { max_bytes: sizes.max_bytes.max(target_bytes), ..sizes }
    }

    fn group_bytes(&mut self, default: u64, sizes: &Sizes) -> u64 {
        let default = default.max(sizes.target_bytes);
        let bytes = self.positive(MAX_FILE_GROUP_SIZE_BYTES, default);
        if bytes < sizes.target_bytes {
            self.problem(
                MAX_FILE_GROUP_SIZE_BYTES,
                format!(
                    "= `{bytes}` is below the target of `{}` bytes: no output could reach it",
                    sizes.target_bytes
                ),
            );
        }
        bytes
    }

    fn delete_files(&mut self) -> Option<u64> {
        self.overrides.contains_key(DELETE_FILE_THRESHOLD).then(|| self.positive(DELETE_FILE_THRESHOLD, 1))
    }

    fn ratio(&mut self, default: f64) -> f64 {
        let ratio = self.value(DELETE_RATIO_THRESHOLD, "a number above 0 and at most 1").unwrap_or(default);
        if !(ratio > 0.0 && ratio <= 1.0) {
            self.problem(DELETE_RATIO_THRESHOLD, format!("= `{ratio}` is not above 0 and at most 1"));
        }
        ratio
    }

    fn commits(&mut self, default: Option<u64>) -> Option<u64> {
        let enabled: bool = self.value(PARTIAL_PROGRESS_ENABLED, "true or false").unwrap_or(true);
        let commits = self.positive(PARTIAL_PROGRESS_MAX_COMMITS, default.unwrap_or(1));
        enabled.then_some(commits)
    }

    fn positive(&mut self, option: &str, default: u64) -> u64 {
        let value = self.value(option, "a whole number above 0").unwrap_or(default);
        if value == 0 {
            self.problem(option, "= `0` is not above 0");
        }
        value.max(1)
    }

    fn value<T: FromStr>(&mut self, option: &str, expected: &str) -> Option<T> {
        let text = self.overrides.get(option)?;
        let value = text.trim().parse().ok();
        if value.is_none() {
            self.problem(option, format!("= `{text}` is not {expected}"));
        }
        value
    }
}

impl FromStr for JobOrder {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.to_ascii_lowercase().as_str() {
            "none" => Ok(Self::None),
            "bytes-asc" => Ok(Self::BytesAsc),
            "bytes-desc" => Ok(Self::BytesDesc),
            "files-asc" => Ok(Self::FilesAsc),
            "files-desc" => Ok(Self::FilesDesc),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests;
