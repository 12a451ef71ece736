//! Totals: what the summary of a snapshot of ours counts is what a recount finds.

use async_trait::async_trait;

use super::super::records::Role;
use super::super::view::{Checker, Step, View, Violation};
use super::lake::Lake;
use crate::checks::total_problems;

const NAME: &str = "totals";

/// The checker.
#[derive(Debug)]
pub struct Totals {
    lake: Lake,
}

impl Totals {
    /// A new one.
    #[must_use]
    pub fn new(lake: &Lake) -> Self {
        Self { lake: lake.clone() }
    }
}

#[async_trait]
impl Checker for Totals {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation> {
        let Some(commit) = view.records.commits.last().filter(|_| step == Step::Commit) else {
            return Ok(());
        };
        if matches!(commit.by.role, Role::Foreign | Role::World) {
            return Ok(());
        }
        for added in self.lake.added(view).await? {
            if let Some(problem) = total_problems(&added.contents).into_iter().next() {
                return Err(Violation::new(NAME, problem));
            }
        }
        Ok(())
    }

    async fn at_end(&mut self, _view: View<'_>) -> Result<(), Violation> {
        Ok(())
    }
}
