//! C3: there is nothing to plan right after a rewrite.
//!
//! Judged where it can be: all files of a plan were rewritten, and nobody else has committed since the snapshot that was
//! planned on. The outputs carry that snapshot's sequence number, and the commit its target size.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use iceberg::spec::Operation;

use super::super::actors::CompactorPlan;
use super::super::process::Hardship;
use super::super::records::{Records, Role, Tale, Who};
use super::super::view::{Checker, Step, View, Violation};
use super::lake::{Added, Lake};

const NAME: &str = "C3";
const TARGET: &str = "firn.target-bytes";

/// The checker.
#[derive(Debug)]
pub struct C3 {
    lake: Lake,
    told: usize,
    runs: BTreeMap<Who, Run>,
}

/// A run of a compactor.
#[derive(Debug, Clone, Default)]
struct Run {
    /// Files that were planned to be rewritten.
    planned: u64,
    /// Those that were.
    rewritten: u64,
    /// The snapshot that the next commit must build on so that nobody came in between; `None` before the first one.
    last: Option<i64>,
    disturbed: bool,
}

impl C3 {
    /// A new one.
    #[must_use]
    pub fn new(lake: &Lake) -> Self {
        Self { lake: lake.clone(), told: 0, runs: BTreeMap::new() }
    }

    fn take(&mut self, records: &Records) {
        for told in &records.told[self.told..] {
            if let Tale::Compactor(firn_compactor::Event::Planned { files, .. }) = &told.what {
                self.runs.insert(told.by.clone(), Run { planned: *files, ..Run::default() });
            }
        }
        self.told = records.told.len();
    }

    async fn replaced(&mut self, view: View<'_>, by: &Who, added: &Added) -> Result<(), Violation> {
        let changes = self.lake.changes(added).await?;
        let Some(run) = self.runs.get_mut(by) else { return Ok(()) };
        let parent = added.parent.as_ref().map(|parent| &parent.snapshot);
        let planned_on = changes.added.first().map(|entry| entry.sequence_number);
        run.disturbed |= match run.last {
            Some(last) => parent.is_none_or(|parent| parent.snapshot_id() != last),
            None => parent.map(|parent| parent.sequence_number()) != planned_on,
        };
        run.rewritten += changes.removed.len() as u64;
        run.last = Some(added.id());
        if run.disturbed || run.rewritten < run.planned {
            return Ok(());
        }
        let (Some(table), Some(target)) = (view.table, target_bytes(added)) else { return Ok(()) };
        let plan = CompactorPlan {
            interval: Duration::ZERO,
            excess_files: 1,
            target_bytes: target,
            hardship: Hardship::NONE,
        };
        let again = firn_compactor::plan(table, &plan.options().compact.plan).await;
        let again = again.map_err(|error| Violation::new(NAME, format!("planning failed: {error}")))?;
        if again.is_empty() {
            return Ok(());
        }
        let what = format!(
            "after rewrite {} of {}, which left nothing of its plan, {} files are planned again: {:?}",
            added.id(),
            by.name,
            again.input_files(),
            again.groups.iter().flat_map(|group| &group.files).take(5).collect::<Vec<_>>()
        );
        Err(Violation::new(NAME, what))
    }
}

fn target_bytes(added: &Added) -> Option<u64> {
    added.contents.snapshot.summary().additional_properties.get(TARGET)?.parse().ok()
}

#[async_trait]
impl Checker for C3 {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation> {
        let Some(commit) = view.records.commits.last().filter(|_| step == Step::Commit) else {
            return Ok(());
        };
        self.take(view.records);
        if commit.by.role != Role::Compactor {
            return Ok(());
        }
        for added in self.lake.added(view).await? {
            if added.is(&Operation::Replace) {
                self.replaced(view, &commit.by, &added).await?;
            }
        }
        Ok(())
    }

    async fn at_end(&mut self, _view: View<'_>) -> Result<(), Violation> {
        Ok(())
    }
}
