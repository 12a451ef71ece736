//! Maintenance from outside the writer: expiry of snapshots, again and again.

use std::time::Duration;

use firn_table::commit::ExpireOptions;
use firn_table::{ErrorKind, Result};

use super::super::process::{Hardship, Next, Process, supervise};
use super::super::records::Role;
use super::super::world::World;

/// An expiry.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpirerPlan {
    /// Between two runs.
    pub interval: Duration,
    /// Snapshots that stay.
    pub keep: usize,
    /// What happens to its processes.
    pub hardship: Hardship,
}

impl ExpirerPlan {
    /// What may go.
    #[must_use]
    pub fn options(&self) -> ExpireOptions {
        ExpireOptions {
            older_than_ms: Some(i64::MAX),
            retain_last: Some(self.keep),
            ..ExpireOptions::default()
        }
    }
}

/// Expires snapshots until the world stops.
pub async fn expirer(world: World, name: String, plan: ExpirerPlan) {
    let work = |process: Process| {
        let plan = plan.clone();
        async move { expire_again_and_again(&process, &plan).await }
    };
    supervise(world, (Role::Maintenance, name), plan.hardship, work, |_: &Result<()>| Next::Restart).await;
}

async fn expire_again_and_again(process: &Process, plan: &ExpirerPlan) -> Result<()> {
    let (handle, world) = (process.open().await?, process.world().clone());
    loop {
        tokio::select! {
            biased;
            () = world.stop().cancelled() => return Ok(()),
            () = tokio::time::sleep(plan.interval) => {}
        }
        match handle.expire(&plan.options()).await {
            Ok(report) if report.snapshot_ids.is_empty() => {}
            Ok(report) => {
                world.note(&process.who, format!("told: expired {} snapshots", report.snapshot_ids.len()));
            }
            Err(error) if passes(error.kind()) => {
                world.note(&process.who, format!("told: did not expire: {error}"));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether the next run may do better.
fn passes(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Conflict | ErrorKind::Unavailable | ErrorKind::UnknownOutcome | ErrorKind::NotFound
    )
}
