//! What every catalog and every store must do, whatever it is made of.
//!
//! A kit is a list of behaviours. Each works in a place of its own, so that a kit runs beside others on one server;
//! all behaviours run, and the error names each one that failed.

pub mod catalog;
pub mod store;

use anyhow::{Result, bail};
use uuid::Uuid;

/// The outcome of one behaviour.
type Outcome = (&'static str, Result<()>);

fn all_hold(kind: &str, outcomes: Vec<Outcome>) -> Result<()> {
    let count = outcomes.len();
    let failed: Vec<String> = outcomes
        .into_iter()
        .filter_map(|(behaviour, outcome)| Some(format!("{behaviour}: {:#}", outcome.err()?)))
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{kind} fails in {} of {count} behaviours:\n  {}", failed.len(), failed.join("\n  "))
}

/// A name that nothing else has.
fn unique(prefix: &str) -> String {
    format!("{prefix}_{}", &Uuid::new_v4().simple().to_string()[..10])
}
