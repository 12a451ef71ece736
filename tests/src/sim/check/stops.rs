//! Stops: a process stops by itself only for a reason that is true.
//!
//! A defect, a setting or a message is never the reason here. What may pass is one where something went wrong between
//! the process and the servers. Where a person must decide, somebody must have done what it is about.

use async_trait::async_trait;
use firn_table::ErrorKind;

use super::super::records::{Commit, Records, Role, Tale, Told};
use super::super::view::{Checker, Step, View, Violation};

const NAME: &str = "stops";

/// The checker.
#[derive(Debug, Default)]
pub struct Stops {
    taken: usize,
}

impl Stops {
    fn take(&mut self, view: View<'_>) -> Result<(), Violation> {
        let told = &view.records.told[self.taken..];
        self.taken = view.records.told.len();
        for told in told {
            let Tale::Ended(Err((kind, why))) = &told.what else { continue };
            let ours = matches!(told.by.role, Role::Writer | Role::Compactor | Role::Maintenance);
            if ours && !is_true(view.records, told, *kind) {
                let what = format!("{} stopped without reason ({kind:?}): {why}", told.by.name);
                return Err(Violation::new(NAME, what));
            }
        }
        Ok(())
    }
}

fn is_true(records: &Records, told: &Told, kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Internal | ErrorKind::Configuration | ErrorKind::Unsupported | ErrorKind::Data => false,
        ErrorKind::AlreadyExists | ErrorKind::Held => false,
        ErrorKind::Unavailable | ErrorKind::UnknownOutcome => met_trouble(records, told),
        // Others commit, expire and drop.
        ErrorKind::Conflict | ErrorKind::NotFound => records.commits.iter().any(|c| c.by != told.by),
        ErrorKind::Overtaken => has_rivals(records, told),
        ErrorKind::Ledger => was_tampered_with(records) || was_cut(records) || dropped_properties(records),
    }
}

/// A fault met the process, or it was not scheduled while its requests waited.
fn met_trouble(records: &Records, told: &Told) -> bool {
    records.struck.iter().any(|struck| struck.by == told.by)
        || records.told.iter().any(|other| other.by == told.by && matches!(other.what, Tale::Paused(_)))
}

/// Another process of a writer committed.
fn has_rivals(records: &Records, told: &Told) -> bool {
    records.commits.iter().any(|commit| commit.by.role == Role::Writer && commit.by != told.by)
}

/// Another engine, or a person, moved a branch or a property, or dropped the table.
fn was_tampered_with(records: &Records) -> bool {
    let tampers = |commit: &Commit| {
        let adds = commit.added_snapshots().next().is_some();
        matches!(commit.by.role, Role::Foreign | Role::World) && commit.before.is_some() && !adds
    };
    records.commits.iter().any(tampers)
}

/// Messages were lost, or the topic is another one.
fn was_cut(records: &Records) -> bool {
    !records.truncated.is_empty() || records.incarnation > 0
}

fn dropped_properties(records: &Records) -> bool {
    records.struck.iter().any(|struck| struck.fault == "dropped-properties")
}

#[async_trait]
impl Checker for Stops {
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
