//! The bin-pack policy: which files to rewrite together.
//!
//! ```text
//! candidate     size < min  or size > max  or deletes >= delete-file-threshold  or deleted share >= delete-ratio-threshold
//! groups        first-fit bins of the candidates of one partition and spec, by path within sequence number
//! keep a group  (n > 1 and n >= min-input-files) or (n > 1 and sum > target) or sum > max or any delete trigger
//! worth it      fewer outputs than inputs, or any delete trigger
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::options::{JobOrder, RewriteOptions};

/// What a policy knows about one live data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStats {
    /// The file's path: unique among the files of a decision.
    pub path: Arc<str>,
    /// The partition as a key: files of one spec with equal keys are of one partition.
    pub partition: Arc<str>,
    /// The partition spec it was written with.
    pub spec_id: i32,
    /// Bytes on storage.
    pub bytes: u64,
    /// Rows, deleted ones included.
    pub rows: u64,
    /// The data sequence number.
    pub sequence_number: i64,
    /// Delete files that apply to it.
    pub delete_files: u64,
    /// Rows that deletes of this file alone remove.
    pub deleted_rows: u64,
    /// The run that made it, for the target size of this decision, where a rewrite did.
    pub made_by: Option<Arc<str>>,
}

/// Files of one partition and spec that are rewritten together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileGroup {
    /// Its number in the decision, in the order in which groups are to be rewritten, from 0.
    pub id: usize,
    /// The partition's key.
    pub partition: Arc<str>,
    /// The spec of its files.
    pub spec_id: i32,
    /// Indexes into the input, by path within sequence number.
    pub files: Vec<usize>,
    /// Bytes of its files.
    pub bytes: u64,
    /// Rows of its files.
    pub rows: u64,
    /// Files that Iceberg's arithmetic expects to come out; the writer makes at most as many.
    pub expected_outputs: u64,
    /// The size at which the group is split.
    pub split_bytes: u64,
}

/// Why a file is not rewritten.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum SkipReason {
    /// Its size is between minimum and maximum, and it has few deletes.
    RightSize,
    /// The manifest says that it has rows but no bytes: it cannot be read.
    NoBytes,
    /// Too few candidates in its partition.
    TooFewFiles {
        /// Candidates that would be rewritten together.
        group_files: u64,
        /// Their bytes.
        group_bytes: u64,
        /// Files that would be enough.
        min_input_files: u64,
        /// Bytes that would be enough.
        target_bytes: u64,
    },
    /// One run made all files of its group, for the same target size: it would make them again.
    MadeTogether,
    /// As many files as before would come out.
    NoFewerFiles {
        /// Candidates that would be rewritten together.
        group_files: u64,
        /// Their bytes.
        group_bytes: u64,
        /// Files that would come out.
        outputs: u64,
    },
    /// Deletes apply to it that a rewrite cannot apply (a check of the caller).
    HasDeletes {
        /// Delete files and deletion vectors that apply to it.
        delete_files: u64,
    },
    /// It was not selected (a filter of the caller).
    NotSelected,
    /// Its group is worth a rewrite, but not in this run.
    OverBudget {
        /// Files of the group.
        group_files: u64,
        /// Their bytes.
        group_bytes: u64,
    },
    /// The policy waits with its run (a check of the caller).
    Waiting {
        /// For what.
        cause: String,
    },
    /// Its partition is still being written to (a check of the caller).
    Busy,
    /// It cannot be rewritten (a check of the caller).
    Unsupported {
        /// Why.
        cause: String,
    },
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RightSize => f.write_str("its size is right"),
            Self::NoBytes => f.write_str("its manifest entry has rows but no bytes: it cannot be read"),
            Self::TooFewFiles { group_files, group_bytes, min_input_files, target_bytes } => write!(
                f,
                "too few to rewrite: {group_files} files with {group_bytes} bytes in its group, worth it from {min_input_files} files or {target_bytes} bytes on",
            ),
            Self::NoFewerFiles { group_files, group_bytes, outputs } => write!(
                f,
                "nothing to gain: {group_files} files with {group_bytes} bytes in its group would become {outputs}",
            ),
            Self::MadeTogether => f.write_str(
                "a rewrite for this target size made all files of its group: it would make them again",
            ),
            Self::HasDeletes { delete_files } => {
                write!(f, "it has deletes that a rewrite cannot apply: {delete_files} delete files")
            }
            Self::OverBudget { group_files, group_bytes } => write!(
                f,
                "left for another run: its group of {group_files} files with {group_bytes} bytes is over the budget"
            ),
            Self::Waiting { cause } => write!(f, "the policy waits: {cause}"),
            Self::Busy => {
                f.write_str("its partition is still being written to: the policy waits until it is quiet")
            }
            Self::NotSelected => f.write_str("it is not selected by the given condition"),
            Self::Unsupported { cause } => write!(f, "it cannot be rewritten: {cause}"),
        }
    }
}

/// What to rewrite and what not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// The groups, in the order in which they are to be rewritten.
    pub groups: Vec<FileGroup>,
    /// Every file that is in no group, as an index into the input, with its reason; by index.
    pub skipped: Vec<(usize, SkipReason)>,
}

/// Candidates of one partition and spec on their way into a group.
#[derive(Debug, Default)]
struct Bin {
    files: Vec<usize>,
    bytes: u64,
    rows: u64,
    has_delete_trigger: bool,
}

/// Decides by the bin-pack policy. `files` may come in any order.
#[must_use]
pub fn bin_pack(files: &[FileStats], options: &RewriteOptions) -> Decision {
    let mut decision = Decision::default();
    let mut partitions: BTreeMap<(&str, i32), Vec<usize>> = BTreeMap::new();
    for (index, file) in files.iter().enumerate() {
        match refusal(file, options) {
            Some(reason) => decision.skipped.push((index, reason)),
            None => partitions.entry((&file.partition, file.spec_id)).or_default().push(index),
        }
    }
    for ((_, spec_id), mut candidates) in partitions {
        candidates.sort_unstable_by_key(|&index| (files[index].sequence_number, &files[index].path));
        for bin in first_fit(files, &candidates, options) {
            match not_worth(&bin, files, options) {
                Some(reason) => {
                    decision.skipped.extend(bin.files.iter().map(|&index| (index, reason.clone())));
                }
                None => decision.groups.push(group_of(bin, files, spec_id, options)),
            }
        }
    }
    decision.skipped.sort_unstable_by_key(|&(index, _)| index);
    order(&mut decision.groups, options.job_order);
    decision
}

/// Why a file is no candidate; `None` where it is one.
fn refusal(file: &FileStats, options: &RewriteOptions) -> Option<SkipReason> {
    if file.bytes == 0 && file.rows > 0 {
        return Some(SkipReason::NoBytes);
    }
    let is_candidate =
        options.rewrite_all || !options.sizes.is_right(file.bytes) || has_delete_trigger(file, options);
    (!is_candidate).then_some(SkipReason::RightSize)
}

/// Whether the deletes of a file alone make it worth a rewrite.
fn has_delete_trigger(file: &FileStats, options: &RewriteOptions) -> bool {
    let many = options.delete_file_threshold.is_some_and(|threshold| file.delete_files >= threshold);
    // Row counts are far below 2^53: the quotient is as exact as the threshold is.
    #[allow(clippy::cast_precision_loss)]
    let share = file.deleted_rows as f64 / file.rows.max(1) as f64;
    many || (file.deleted_rows > 0 && share >= options.delete_ratio_threshold)
}

/// First-fit bins up to the group size; a file above it has a bin of its own.
fn first_fit(files: &[FileStats], candidates: &[usize], options: &RewriteOptions) -> Vec<Bin> {
    let limit = options.max_file_group_bytes;
    let smallest = candidates.iter().map(|&index| files[index].bytes).min().unwrap_or(0);
    let mut bins: Vec<Bin> = Vec::new();
    // Bins before this one are so full that no candidate fits them.
    let mut first_open = 0;
    for &index in candidates {
        let file = &files[index];
        let fits = |bin: &Bin| bin.bytes.saturating_add(file.bytes) <= limit;
        let place = match bins[first_open..].iter().position(fits) {
            Some(position) => first_open + position,
            None => {
                bins.push(Bin::default());
                bins.len() - 1
            }
        };
        let bin = &mut bins[place];
        bin.files.push(index);
        bin.bytes += file.bytes;
        bin.rows += file.rows;
        bin.has_delete_trigger |= has_delete_trigger(file, options);
        while bins.get(first_open).is_some_and(|bin| bin.bytes.saturating_add(smallest) > limit) {
            first_open += 1;
        }
    }
    bins
}

/// Why a bin is not rewritten; `None` where it is worth it.
fn not_worth(bin: &Bin, files: &[FileStats], options: &RewriteOptions) -> Option<SkipReason> {
    if options.rewrite_all || bin.has_delete_trigger {
        return None;
    }
    let sizes = &options.sizes;
    let count = bin.files.len() as u64;
    let enough_files = count > 1 && count >= options.min_input_files;
    let enough_bytes = count > 1 && bin.bytes > sizes.target_bytes;
    if !(enough_files || enough_bytes || bin.bytes > sizes.max_bytes) {
        return Some(SkipReason::TooFewFiles {
            group_files: count,
            group_bytes: bin.bytes,
            min_input_files: options.min_input_files,
            target_bytes: sizes.target_bytes,
        });
    }
    if made_together(bin, files) {
        return Some(SkipReason::MadeTogether);
    }
    let outputs = sizes.outputs(bin.bytes);
    (outputs >= count).then_some(SkipReason::NoFewerFiles {
        group_files: count,
        group_bytes: bin.bytes,
        outputs,
    })
}

/// Whether one run made all files of a bin. Its writer had its reasons, such as sizes that are hard to estimate where
/// files are tiny: without this rule it could be asked to do its work again and again.
fn made_together(bin: &Bin, files: &[FileStats]) -> bool {
    let mut runs = bin.files.iter().map(|&index| &files[index].made_by);
    let first = runs.next();
    first.is_some_and(Option::is_some) && runs.all(|run| Some(run) == first)
}

fn group_of(bin: Bin, files: &[FileStats], spec_id: i32, options: &RewriteOptions) -> FileGroup {
    FileGroup {
        id: 0,
        partition: bin.files.first().map_or_else(|| Arc::from(""), |&index| files[index].partition.clone()),
        spec_id,
        bytes: bin.bytes,
        rows: bin.rows,
        expected_outputs: if bin.rows == 0 { 0 } else { options.sizes.outputs(bin.bytes) },
        split_bytes: options.sizes.split_bytes(bin.bytes),
        files: bin.files,
    }
}

/// Sorts groups as asked (equal ones stay in order of partition) and numbers them.
fn order(groups: &mut [FileGroup], order: JobOrder) {
    match order {
        JobOrder::None => {}
        JobOrder::BytesAsc => groups.sort_by_key(|group| group.bytes),
        JobOrder::BytesDesc => groups.sort_by_key(|group| std::cmp::Reverse(group.bytes)),
        JobOrder::FilesAsc => groups.sort_by_key(|group| group.files.len()),
        JobOrder::FilesDesc => groups.sort_by_key(|group| std::cmp::Reverse(group.files.len())),
    }
    for (id, group) in groups.iter_mut().enumerate() {
        group.id = id;
    }
}

#[cfg(test)]
mod tests;
