//! W3: the age of the oldest row that is not in the table stays under the flush deadline plus one commit, while nothing
//! goes wrong; and once nothing goes wrong any more, what is behind comes in within the time that recovery takes.
//!
//! What goes wrong: a fault that meets a request, a process that begins, ends, crashes or is not scheduled, partitions
//! that change hands, a flush that is overtaken, and what another engine does to the history.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use firn_table::ledger::{CommitRecord, Ledger, TopicPartition};
use firn_writer::Event;

use super::super::records::{At, Content, Records, Role, Tale, Told, Who};
use super::super::view::{Checker, Step, View, Violation};
use super::messages::Messages;

const NAME: &str = "W3";
/// Fetch, decode, upload and commit, with the conflicts that a busy table has.
const ONE_COMMIT: Duration = Duration::from_secs(4);
/// A request that is not answered within its deadline, and the longest wait before the next one; a session that ends.
const RECOVERY: Duration = Duration::from_secs(100);

/// The checker.
#[derive(Debug, Default)]
pub struct W3 {
    messages: Messages,
    troubles: Troubles,
}

/// What went wrong, and who runs.
#[derive(Debug, Default)]
struct Troubles {
    struck: usize,
    told: usize,
    commits: usize,
    /// When something went wrong, in order.
    times: BTreeSet<At>,
    running: BTreeSet<Who>,
    /// Until when a process is not scheduled.
    paused: At,
}

impl Troubles {
    fn take(&mut self, records: &Records) {
        self.times.extend(records.struck[self.struck..].iter().map(|struck| struck.at));
        self.struck = records.struck.len();
        let told = &records.told[self.told..];
        self.told = records.told.len();
        told.iter().for_each(|told| self.hear(told));
        for commit in &records.commits[self.commits..] {
            let adds = commit.added_snapshots().next().is_some();
            if matches!(commit.by.role, Role::Foreign | Role::World) && !adds {
                self.times.insert(commit.at);
            }
        }
        self.commits = records.commits.len();
    }

    fn hear(&mut self, told: &Told) {
        let is_trouble = match &told.what {
            Tale::Started => {
                self.running.insert(told.by.clone());
                true
            }
            Tale::Crashed | Tale::Ended(_) => {
                self.running.remove(&told.by);
                true
            }
            Tale::Paused(time) => {
                self.paused = self.paused.max(told.at + *time);
                true
            }
            Tale::Writer(event) => !matches!(
                event.as_ref(),
                Event::Committed(_) | Event::Expired { .. } | Event::Rejected(_) | Event::Healthy
            ),
            Tale::Compactor(_) => false,
        };
        if is_trouble {
            self.times.insert(told.at);
        }
    }

    /// The last trouble up to `until`; where nobody reads, there is always trouble.
    fn last(&self, until: At) -> Option<At> {
        let reads = self.running.iter().any(|who| who.role == Role::Writer);
        if !reads || self.paused >= until {
            return Some(until);
        }
        let last = self.times.range(..=until).next_back().copied();
        last.max(Some(self.paused).filter(|paused| !paused.is_zero()))
    }
}

impl W3 {
    /// How late something produced at `since` is at `now`, and what that may be.
    fn judge(&self, view: View<'_>, since: At, now: At) -> Option<(Duration, Duration)> {
        let age = now.saturating_sub(since);
        let trouble = self.troubles.last(now);
        let quiet = trouble.is_none_or(|at| at + RECOVERY < since);
        let (counted, bound) = if quiet {
            (age, view.setting.flush_age + ONE_COMMIT)
        } else {
            let from = since.max(trouble.unwrap_or_default());
            (now.saturating_sub(from), view.setting.flush_age + RECOVERY)
        };
        (counted > bound).then_some((counted, bound))
    }

    fn late(what: &str, partition: &TopicPartition, (counted, bound): (Duration, Duration)) -> Violation {
        let what = format!(
            "{what} of {partition} waited {:.3} s without trouble, and {:.3} s is the bound",
            counted.as_secs_f64(),
            bound.as_secs_f64()
        );
        Violation::new(NAME, what)
    }

    /// The rows of the commit that just landed.
    fn landed(&self, view: View<'_>) -> Result<(), Violation> {
        let Some(commit) = view.records.commits.last().filter(|commit| commit.by.role == Role::Writer) else {
            return Ok(());
        };
        let Some(after) = &commit.after else { return Ok(()) };
        let added = commit.added_snapshots().filter_map(|id| after.metadata().snapshot_by_id(id));
        let records = added.filter_map(|s| CommitRecord::read(&s.summary().additional_properties));
        for range in records.filter(|record| !record.sets_cursors).flat_map(|r| r.ranges.unwrap_or_default())
        {
            let times = self.messages.times(&range.partition, range.start..range.next);
            if let Some(oldest) = times.into_iter().min()
                && let Some(late) = self.judge(view, oldest, commit.at)
            {
                return Err(Self::late("a row", &range.partition, late));
            }
        }
        Ok(())
    }

    /// The oldest message that is still not in the table.
    fn waiting(&self, view: View<'_>) -> Result<(), Violation> {
        let Some(table) = view.table else { return Ok(()) };
        let ledgers = Ledger::read_all(table.metadata().properties()).unwrap_or_default();
        for (partition, log) in self.messages.newest() {
            let cursors = ledgers.iter().filter_map(|(_, _, ledger)| ledger.cursors.get(partition));
            let low = view.records.truncated.get(partition).copied().unwrap_or(0);
            let covered = cursors.map(|cursor| cursor.next).max().unwrap_or(0).max(low);
            let mut next = log.range(covered..).filter(|(_, message)| message.content != Content::Hole);
            let Some((offset, message)) = next.next() else { continue };
            if let Some(late) = self.judge(view, message.at, view.now) {
                return Err(Self::late(&format!("offset {offset}"), partition, late));
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Checker for W3 {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation> {
        if step != Step::Commit {
            return Ok(());
        }
        self.messages.take(view.records);
        self.troubles.take(view.records);
        self.landed(view)?;
        self.waiting(view)
    }

    async fn at_end(&mut self, view: View<'_>) -> Result<(), Violation> {
        self.messages.take(view.records);
        self.troubles.take(view.records);
        self.waiting(view)
    }
}
