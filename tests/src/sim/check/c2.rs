//! C2: no file is in two running groups of a process.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::super::records::Who;
use super::super::view::{Checker, Step, View, Violation};

const NAME: &str = "C2";

/// The checker.
#[derive(Debug, Default)]
pub struct C2;

impl C2 {
    fn check(view: View<'_>) -> Result<(), Violation> {
        let mut groups: BTreeMap<(&Who, &str), usize> = BTreeMap::new();
        for running in &view.records.running_groups {
            for file in &running.files {
                if let Some(other) = groups.insert((&running.by, file), running.group) {
                    let (by, group) = (&running.by.name, running.group);
                    let what = format!("{file} is in group {other} and in group {group} of {by}");
                    return Err(Violation::new(NAME, what));
                }
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Checker for C2 {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, _step: Step) -> Result<(), Violation> {
        Self::check(view)
    }

    async fn at_end(&mut self, view: View<'_>) -> Result<(), Violation> {
        Self::check(view)
    }
}
