//! A revoke that is answered leaves nothing of its partitions behind: no later commit holds them, and no flush of
//! theirs is found to be overtaken.
//!
//! Where the servers fail the process, or it is not scheduled, the deadline of a revoke may pass while its commit is
//! out; that commit may end afterwards, whichever way.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use firn_table::ledger::{OffsetRange, TopicPartition};
use firn_writer::Event;

use super::super::records::{At, Records, Tale, Told, Who};
use super::super::view::{Checker, Step, View, Violation};

const NAME: &str = "revoke";
/// A fault explains a late answer for so long: request, deadline of the revoke, and waits before the next attempt.
const AFTERMATH: Duration = Duration::from_secs(120);

/// The checker.
#[derive(Debug, Default)]
pub struct Revoke {
    taken: usize,
    /// Partitions that a process has given up, and when.
    given_up: BTreeMap<(Who, TopicPartition), At>,
}

impl Revoke {
    fn take(&mut self, view: View<'_>) -> Result<(), Violation> {
        let told = &view.records.told[self.taken..];
        self.taken = view.records.told.len();
        told.iter().try_for_each(|told| self.judge(view.records, told))
    }

    fn judge(&mut self, records: &Records, told: &Told) -> Result<(), Violation> {
        let Tale::Writer(event) = &told.what else { return Ok(()) };
        match event.as_ref() {
            Event::Revoked { partitions } => {
                for partition in partitions {
                    self.given_up.insert((told.by.clone(), partition.clone()), told.at);
                }
                Ok(())
            }
            Event::Assigned { starts } => {
                for (partition, _) in starts {
                    self.given_up.remove(&(told.by.clone(), partition.clone()));
                }
                Ok(())
            }
            Event::Committed(commit) => self.holds(records, told, &commit.ranges, "committed"),
            Event::Overtaken { ranges, .. } => self.holds(records, told, ranges, "had overtaken"),
            _ => Ok(()),
        }
    }

    fn holds(
        &self,
        records: &Records,
        told: &Told,
        ranges: &[OffsetRange],
        what: &str,
    ) -> Result<(), Violation> {
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            let Some(since) = self.given_up.get(&(told.by.clone(), range.partition.clone())) else {
                continue;
            };
            let explains = |at: At, by: &Who| *by == told.by && at <= told.at && at + AFTERMATH >= *since;
            let struck = records.struck.iter().any(|struck| explains(struck.at, &struck.by));
            let paused =
                |other: &Told| matches!(other.what, Tale::Paused(_)) && explains(other.at, &other.by);
            let troubled = struck || records.told.iter().any(paused);
            if !troubled {
                return Err(Violation::new(
                    NAME,
                    format!(
                        "{} {what} {} to {} of {}, which it had given up at {:.3} s",
                        told.by.name,
                        range.start,
                        range.next,
                        range.partition,
                        since.as_secs_f64()
                    ),
                ));
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Checker for Revoke {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, _step: Step) -> Result<(), Violation> {
        self.take(view)
    }

    async fn at_end(&mut self, view: View<'_>) -> Result<(), Violation> {
        self.take(view)
    }
}
