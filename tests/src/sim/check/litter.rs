//! Litter: after a quiet hour nothing unreferenced is left that firn wrote, except what is orphan removal's by right.
//!
//! A file may stay behind where its writer could not know whether it is needed, or could not delete it:
//!
//! - a fault met a request for that file: the put whose reply was lost, the delete that failed;
//! - its process crashed or was not scheduled, or a fault met one of its requests, before the flush or rewrite that the
//!   file belongs to was settled. A process writes the files of a flush while one commit is in flight and up to four
//!   flushes wait for theirs, so what was written is settled by the sixth commit after it at the latest; manifests and
//!   lists that were written for further attempts after an outcome was unknown stay with those from before;
//! - only expired snapshots reached it, and the process that expired them met a fault, or crashed, around the time.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use firn_writer::Event;

use super::super::faults::SlowCommit;
use super::super::records::{At, Commit, Records, Role, Tale, Touched, Who};
use super::super::view::{Checker, Step, View, Violation};
use super::c5::locations;
use super::lake::Lake;

const NAME: &str = "litter";
/// Commits of a process after which what it had written before is settled.
const SETTLED_AFTER: usize = 6;
/// A fault this close to an expiry may have met it.
const AROUND: Duration = Duration::from_secs(120);

/// The checker.
#[derive(Debug)]
pub struct Litter {
    lake: Lake,
    expiries: Vec<Expiry>,
}

/// Snapshots that a commit expired.
#[derive(Debug)]
struct Expiry {
    at: At,
    by: Who,
    /// What they referenced.
    locations: HashSet<String>,
}

impl Litter {
    /// A new one.
    #[must_use]
    pub fn new(lake: &Lake) -> Self {
        Self { lake: lake.clone(), expiries: Vec::new() }
    }

    async fn note_expiry(&mut self, view: View<'_>, commit: &Commit) -> Result<(), Violation> {
        // Whoever drops a table leaves its files.
        let Some(before) = &commit.before else { return Ok(()) };
        let after = commit.after.as_ref().map(iceberg::table::Table::metadata);
        let expired = before.metadata().snapshots().filter(|snapshot| {
            after.is_none_or(|after| after.snapshot_by_id(snapshot.snapshot_id()).is_none())
        });
        let mut referenced = HashSet::new();
        for snapshot in expired {
            let contents = self.lake.contents(view, before, snapshot).await?;
            referenced.extend(locations(&contents).map(str::to_owned));
        }
        if !referenced.is_empty() {
            self.expiries.push(Expiry { at: commit.at, by: commit.by.clone(), locations: referenced });
        }
        Ok(())
    }

    /// Whether only expired snapshots reached a file, and what became unreachable may not have been found.
    fn is_left_by_expiry(&self, troubles: &Troubles<'_>, location: &str) -> bool {
        let mut expiries = self.expiries.iter().filter(|expiry| expiry.locations.contains(location));
        expiries.any(|expiry| {
            let met = troubles.met.get(&expiry.by).into_iter().flatten();
            let mut around = met.filter(|at| **at + AROUND >= expiry.at && **at <= expiry.at + AROUND);
            around.next().is_some() || matches!(expiry.by.role, Role::Foreign | Role::World)
        })
    }

    async fn referenced(&self, view: View<'_>) -> Result<HashSet<String>, Violation> {
        let mut referenced = HashSet::new();
        let Some(table) = view.table else { return Ok(referenced) };
        for snapshot in table.metadata().snapshots() {
            let contents = self.lake.contents(view, table, snapshot).await?;
            referenced.extend(locations(&contents).map(str::to_owned));
        }
        Ok(referenced)
    }
}

#[async_trait]
impl Checker for Litter {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation> {
        match view.records.commits.last().filter(|_| step == Step::Commit) {
            Some(commit) => self.note_expiry(view, commit).await,
            None => Ok(()),
        }
    }

    async fn at_end(&mut self, view: View<'_>) -> Result<(), Violation> {
        let referenced = self.referenced(view).await?;
        let deleted: HashSet<&str> = view.records.deleted.iter().map(|d| d.location.as_str()).collect();
        let troubles = Troubles::of(view.records);
        for written in &view.records.written {
            let ours = matches!(written.by.role, Role::Writer | Role::Compactor | Role::Maintenance);
            let location = written.location.as_str();
            let gone = deleted.contains(location) || referenced.contains(location);
            let excused = troubles.excuse(written) || self.is_left_by_expiry(&troubles, location);
            if !ours || gone || location.ends_with(".metadata.json") || excused {
                continue;
            }
            if view.stores.exists(location).await.unwrap_or(false) {
                return Err(Violation::new(
                    NAME,
                    format!(
                        "{location}, which {} wrote at {:.3} s, is left and nothing references it",
                        written.by.name,
                        written.at.as_secs_f64()
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// When commits of each process were settled, and when it met trouble.
#[derive(Debug, Default)]
struct Troubles<'a> {
    settled: BTreeMap<&'a Who, Vec<At>>,
    met: BTreeMap<&'a Who, Vec<At>>,
    crashed: BTreeMap<&'a Who, At>,
    /// Requests that a fault met.
    requests: Vec<&'a str>,
}

impl<'a> Troubles<'a> {
    fn of(records: &'a Records) -> Self {
        let mut troubles = Self::default();
        for struck in records.struck.iter().filter(|struck| struck.fault != SlowCommit::NAME) {
            troubles.requests.push(&struck.request);
            troubles.met.entry(&struck.by).or_default().push(struck.at);
        }
        for told in &records.told {
            match &told.what {
                Tale::Crashed => {
                    troubles.met.entry(&told.by).or_default().push(told.at);
                    troubles.crashed.insert(&told.by, told.at);
                }
                // Deadlines of its requests pass meanwhile.
                Tale::Paused(time) => {
                    troubles.met.entry(&told.by).or_default().extend([told.at, told.at + *time]);
                }
                Tale::Writer(event) => {
                    if matches!(event.as_ref(), Event::Committed(_) | Event::Overtaken { .. }) {
                        troubles.settled.entry(&told.by).or_default().push(told.at);
                    }
                }
                Tale::Compactor(firn_compactor::Event::Committed { .. }) => {
                    troubles.settled.entry(&told.by).or_default().push(told.at);
                }
                _ => {}
            }
        }
        troubles
    }

    /// Whether a file may stay behind.
    fn excuse(&self, written: &Touched) -> bool {
        let name = written.location.rsplit('/').next().unwrap_or(&written.location);
        // What was on its way when its process crashed arrives all the same.
        let crashed = self.crashed.get(&written.by).is_some_and(|at| *at <= written.at);
        if crashed || self.requests.iter().any(|request| request.contains(name)) {
            return true;
        }
        let empty = Vec::new();
        let settled = self.settled.get(&written.by).unwrap_or(&empty);
        let settled_between =
            |from: At, to: At| settled.iter().filter(|end| (from..to).contains(end)).count();
        let of_a_commit = written.location.contains("/metadata/");
        let unsettled_at = |at: &At| match *at >= written.at {
            true => settled_between(written.at, *at) < SETTLED_AFTER,
            false => of_a_commit && settled_between(*at, written.at) == 0,
        };
        self.met.get(&written.by).unwrap_or(&empty).iter().any(unsettled_at)
    }
}
