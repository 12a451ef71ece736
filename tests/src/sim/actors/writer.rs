//! A writer process: the real pipeline on the log in memory.

use std::sync::Arc;
use std::time::Duration;

use firn_table::commit::{ExpireOptions, TableHandle};
use firn_table::ledger::WriterName;
use firn_table::{ErrorKind, Result};
use firn_writer::WriterConfig;
use firn_writer::budget::Budget;
use firn_writer::config::{
    AfterRollback, ExpirySchedule, FlushLimits, Mode, OnBadMessage, OnGap, OnNewSource,
};
use firn_writer::observe::{Event, Observer};
use firn_writer::pipeline::{Cpu, Environment, Parts, run_pipeline};

use super::super::process::{Hardship, Next, Process, supervise};
use super::super::records::{Role, Tale};
use super::super::world::World;
use super::producer::TOPIC;

/// A writer.
#[derive(Debug, Clone)]
pub struct WriterPlan {
    /// The name under which its cursors stand.
    pub name: WriterName,
    /// Its consumer group. Two groups of one writer name are two deployments.
    pub group: String,
    /// When it seals a flush.
    pub flush_age: Duration,
    /// How rows become files.
    pub mode: Mode,
    /// What follows from a rollback.
    pub after_rollback: AfterRollback,
    /// Snapshots that it keeps; `None` where it expires none.
    pub keep_snapshots: Option<usize>,
    /// What happens to its processes.
    pub hardship: Hardship,
}

impl WriterPlan {
    /// The configuration of its processes.
    #[must_use]
    pub fn config(&self) -> WriterConfig {
        let expiry = self.keep_snapshots.map(|keep| ExpirySchedule {
            every: Duration::from_secs(5),
            options: ExpireOptions {
                older_than_ms: Some(i64::MAX),
                retain_last: Some(keep),
                max_snapshots: Some(20),
                ..ExpireOptions::default()
            },
        });
        WriterConfig {
            flush: FlushLimits { age: self.flush_age, bytes: 1 << 20, rows: 5_000 },
            mode: self.mode,
            on_bad_message: OnBadMessage::Skip,
            on_gap: OnGap::Record,
            on_new_source: OnNewSource::Restart,
            after_rollback: self.after_rollback,
            memory_bytes: 64 << 20,
            expiry,
            revoke_deadline: Duration::from_secs(3),
            unhealthy_after: Duration::from_secs(20),
            ..WriterConfig::new(self.name.clone(), vec![TOPIC.to_owned()], "log in memory")
        }
    }
}

/// Hands what a writer tells to the records.
pub struct Teller(pub Process);

impl Observer for Teller {
    fn on_event(&self, event: &Event) {
        self.0.world().tell(&self.0.who, Tale::Writer(Box::new(event.clone())));
    }
}

impl std::fmt::Debug for Teller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Teller").field(&self.0.who).finish()
    }
}

/// What a pipeline of this process is made of.
///
/// # Errors
/// The table cannot be opened.
pub async fn writer_parts(process: &Process, config: WriterConfig, group: &str) -> Result<Parts> {
    Ok(writer_parts_on(process.open().await?, process, config, group))
}

/// What a pipeline of this process is made of that commits through this handle.
#[must_use]
pub fn writer_parts_on(handle: TableHandle, process: &Process, config: WriterConfig, group: &str) -> Parts {
    let budget = Budget::new(config.memory_bytes);
    let source = process.world().log().join(group, &config.topics, Arc::clone(&budget));
    let clock = process.surroundings.clone();
    let environment =
        Environment { instance: clock.uuid(), now_ms: Arc::new(move || clock.now_ms()), cpu: Cpu::Inline };
    Parts { config, handle, source: Box::new(source), budget, environment }
}

/// Runs writer processes, one after the other, until the world stops.
pub async fn writer(world: World, name: String, plan: WriterPlan) {
    let work = |process: Process| {
        let plan = plan.clone();
        async move {
            let parts = writer_parts(&process, plan.config(), &plan.group).await?;
            let stop = process.world().stop().clone();
            run_pipeline(parts, Arc::new(Teller(process)), stop).await.map(drop)
        }
    };
    let after = |ended: &Result<()>| match ended {
        // A person would stop one of two deployments.
        Err(error) if error.kind() == ErrorKind::Overtaken => Next::Leave,
        _ => Next::Restart,
    };
    supervise(world, (Role::Writer, name), plan.hardship, work, after).await;
}
