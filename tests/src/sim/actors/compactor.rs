//! A compactor process: the real plan, rewrite and replace commit, again and again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use firn_compactor::{
    CompactOptions, ContinuousOptions, Event, Observer, PlanOptions, Resources, Trigger, Verify, continuous,
};
use firn_table::Result;

use super::super::process::{Hardship, Next, Process, supervise};
use super::super::records::{Role, Tale};
use super::super::world::World;

/// A compactor.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactorPlan {
    /// Between two looks at the table.
    pub interval: Duration,
    /// Files that a run must save to be worth it.
    pub excess_files: u64,
    /// The size of file that it makes, in bytes.
    pub target_bytes: u64,
    /// What happens to its processes.
    pub hardship: Hardship,
}

impl CompactorPlan {
    /// How it looks for work.
    #[must_use]
    pub fn options(&self) -> ContinuousOptions {
        let overrides = BTreeMap::from([
            ("target-file-size-bytes".to_owned(), self.target_bytes.to_string()),
            ("min-input-files".to_owned(), "3".to_owned()),
        ]);
        ContinuousOptions {
            compact: CompactOptions {
                plan: PlanOptions { overrides, ..PlanOptions::default() },
                verify: Verify::Full,
                resources: Resources { memory_bytes: 256 << 20, cores: 2, spill_directory: None },
            },
            trigger: Trigger { excess_files: Some(self.excess_files), bytes: None },
            interval: self.interval,
        }
    }
}

struct Teller(Process);

impl fmt::Debug for Teller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Teller").field(&self.0.who).finish()
    }
}

impl Observer for Teller {
    fn observe(&self, event: &Event) {
        self.0.world().tell(&self.0.who, Tale::Compactor(event.clone()));
    }
}

/// Hands what a compactor tells to the records.
#[must_use]
pub fn compactor_observer(process: &Process) -> Arc<dyn Observer> {
    Arc::new(Teller(process.clone()))
}

/// Runs compactor processes, one after the other, until the world stops.
pub async fn compactor(world: World, name: String, plan: CompactorPlan) {
    let work = |process: Process| {
        let options = plan.options();
        async move {
            let handle = process.open().await?;
            let stop = process.world().stop().clone();
            continuous(&handle, &options, compactor_observer(&process), stop).await.map(drop)
        }
    };
    supervise(world, (Role::Compactor, name), plan.hardship, work, |_: &Result<()>| Next::Restart).await;
}
