//! C4: bytes rewritten per byte ingested stay under a bound.
//!
//! A group of small files has at least `min-input-files` of them, one of which may be the output of the last rewrite;
//! so until that output has its size, it is read again once for each `min-input-files − 1` files that came. With files
//! of `s` bytes and outputs that are left alone from `0.75 t` on, each byte is rewritten at most `0.75 t / (s (n − 1))`
//! times on the way there, plus twice at the end: for the last rewrite, and once more where a delete asks for it. Sizes
//! of outputs are estimates, and a group may hold more than one output that stayed small: twice that is allowed.

use async_trait::async_trait;
use iceberg::spec::Operation;

use super::super::records::Role;
use super::super::view::{Checker, Step, View, Violation};
use super::lake::Lake;

const NAME: &str = "C4";
const TARGET: &str = "firn.target-bytes";
/// The fewest small files that are worth a rewrite, under the settings of the simulation.
const MIN_INPUT_FILES: u64 = 3;

/// The checker.
#[derive(Debug)]
pub struct C4 {
    lake: Lake,
    ingested_bytes: u64,
    ingested_files: u64,
    /// The smallest file that came in: what lies in a partition may all be like it.
    smallest_bytes: u64,
    rewritten_bytes: u64,
    deletes: u64,
    /// The largest size of file that a rewrite was to make.
    target_bytes: u64,
}

impl C4 {
    /// A new one.
    #[must_use]
    pub fn new(lake: &Lake) -> Self {
        Self {
            lake: lake.clone(),
            ingested_bytes: 0,
            ingested_files: 0,
            smallest_bytes: u64::MAX,
            rewritten_bytes: 0,
            deletes: 0,
            target_bytes: 0,
        }
    }

    fn bound(&self) -> u64 {
        let small = self.target_bytes / 4 * 3;
        let file = self.smallest_bytes.min(small).max(1);
        // No byte is rewritten more often than there are files, nor than outputs take to be of their size.
        let times = self.ingested_files.min(small.div_ceil(file * (MIN_INPUT_FILES - 1)));
        self.ingested_bytes.saturating_mul(2 * (times + 2 + self.deletes))
    }
}

#[async_trait]
impl Checker for C4 {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation> {
        let Some(commit) = view.records.commits.last().filter(|_| step == Step::Commit) else {
            return Ok(());
        };
        for added in self.lake.added(view).await? {
            let changes = self.lake.changes(&added).await?;
            self.deletes += changes.deletes_added.len() as u64;
            let bytes = |entries: &[crate::foreign::Entry]| -> u64 {
                entries.iter().map(|entry| entry.file.file_size_in_bytes()).sum()
            };
            if commit.by.role == Role::Compactor && added.is(&Operation::Replace) {
                let summary = &added.contents.snapshot.summary().additional_properties;
                let target = summary.get(TARGET).and_then(|target| target.parse().ok());
                self.target_bytes = self.target_bytes.max(target.unwrap_or(0));
                self.rewritten_bytes += bytes(&changes.removed);
            } else {
                self.ingested_bytes += bytes(&changes.added);
                self.ingested_files += changes.added.len() as u64;
                let sizes = changes.added.iter().map(|entry| entry.file.file_size_in_bytes());
                self.smallest_bytes = sizes.fold(self.smallest_bytes, u64::min);
            }
        }
        let bound = self.bound();
        if self.rewritten_bytes > bound {
            let (rewritten, ingested) = (self.rewritten_bytes, self.ingested_bytes);
            let what =
                format!("{rewritten} bytes were rewritten for {ingested} that came in, more than {bound}");
            return Err(Violation::new(NAME, what));
        }
        Ok(())
    }

    async fn at_end(&mut self, _view: View<'_>) -> Result<(), Violation> {
        Ok(())
    }
}
