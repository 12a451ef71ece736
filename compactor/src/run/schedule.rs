//! Groups of a plan, several at a time.

use std::sync::Arc;

use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use firn_table::commit::TableHandle;
use firn_table::threads;
use iceberg::table::Table;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::observe::{Event, Observer};
use crate::plan::{GroupInputs, Plan, Prepared};
use crate::rewrite::{GroupTask, Rewriter, RewriterContext, Rewritten};
use crate::run::commits::Commits;
use crate::run::{CompactOptions, Resources, RunReport};
use crate::session::internal;
use crate::{Error, ErrorKind, Result};

/// What the batches of one group take between its reader and its writer, at most.
const BATCH_MEMORY_BYTES: u64 = 64 << 20;
/// The row groups that are read and written, at most (`write.parquet.row-group-size-bytes`): two that are fetched,
/// and one that is held encoded until it is written, with as much again for dictionaries and open pages.
const ROW_GROUP_BYTES: u64 = 128 << 20;

/// The caller's side of a run.
pub(crate) struct Run<'a> {
    pub(crate) handle: &'a TableHandle,
    pub(crate) options: &'a CompactOptions,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) stop: CancellationToken,
}

/// How a group ended, with its number in the plan.
type GroupEnd = (usize, Result<Option<Rewritten>>);

pub(crate) async fn run_prepared(run: Run<'_>, table: Table, prepared: Prepared) -> Result<RunReport> {
    let started = Instant::now();
    let Prepared { plan, inputs } = prepared;
    run.observer.observe(&Event::Planned {
        groups: plan.groups.len(),
        files: plan.input_files(),
        bytes: plan.input_bytes(),
        rows: plan.input_rows(),
    });
    let report =
        RunReport { planned_on: plan.planned_on, groups_planned: plan.groups.len(), ..RunReport::default() };
    let Some(planned_on) = plan.planned_on.filter(|_| !plan.is_empty()) else { return Ok(report) };
    // Version 7: names of outputs sort by time.
    let run_id = run.handle.surroundings().uuid();
    let mut commits = Commits {
        handle: run.handle,
        observer: run.observer.clone(),
        planned_on,
        run_id,
        verify: run.options.verify,
        target_bytes: plan.options.sizes.target_bytes,
        groups_per_commit: groups_per_commit(&plan),
        waiting: Vec::new(),
        sent: 0,
        report,
    };
    // Ends the tasks also where a commit fails or the caller drops this future, without stopping what else the
    // caller's token stops.
    let stop = run.stop.child_token();
    let _ends_tasks = stop.clone().drop_guard();
    let slots = concurrent_groups(&plan, &run.options.resources);
    let rewriter = Rewriter::new(RewriterContext {
        table,
        stores: run.handle.stores().clone(),
        session: session(&run.options.resources)?,
        sizes: plan.options.sizes,
        verify: run.options.verify,
        batch_memory_bytes: batch_memory_bytes(&run.options.resources, slots),
        run_id,
        observer: run.observer.clone(),
        stop: stop.clone(),
    })?;
    let mut tasks = JoinSet::new();
    spawn_groups(&mut tasks, &plan, inputs, Workers { rewriter: Arc::new(rewriter), slots }, &mut commits);
    let ended = collect(&mut tasks, &plan, &mut commits).await;
    if ended.is_err() {
        stop.cancel();
        while let Some(end) = tasks.join_next().await {
            if let Ok((_, Ok(Some(rewritten)))) = end {
                commits.waiting.push(rewritten);
            }
        }
        commits.abandon().await;
    }
    ended?;
    let mut report = commits.report;
    report.dropped.sort_by_key(|dropped| dropped.group);
    report.stopped =
        run.stop.is_cancelled() && report.groups_landed + report.dropped.len() < report.groups_planned;
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

struct Workers {
    rewriter: Arc<Rewriter>,
    slots: usize,
}

/// Starts a task for each group; as many as there are slots work at a time, in the plan's order.
fn spawn_groups(
    tasks: &mut JoinSet<GroupEnd>,
    plan: &Plan,
    inputs: Vec<GroupInputs>,
    workers: Workers,
    commits: &mut Commits<'_>,
) {
    let slots = Arc::new(Semaphore::new(workers.slots));
    for (group, inputs) in plan.groups.iter().zip(inputs) {
        if inputs.files.len() != group.files.len() {
            let gone = group.files.len() - inputs.files.len();
            commits.drop_group(
                group.id,
                group.partition.clone(),
                format!("{gone} of its files are not live any more"),
            );
            continue;
        }
        let GroupInputs { files, deletes } = inputs;
        let task = GroupTask { id: group.id, spec_id: group.spec_id, files, deletes };
        tasks.spawn(rewrite_in_turn(workers.rewriter.clone(), slots.clone(), task));
    }
}

async fn rewrite_in_turn(rewriter: Arc<Rewriter>, slots: Arc<Semaphore>, task: GroupTask) -> GroupEnd {
    let id = task.id;
    // The semaphore is fair and never closed.
    let Ok(_slot) = slots.acquire_owned().await else { return (id, Ok(None)) };
    if threads::is_inline() {
        return (id, rewriter.rewrite(task).await);
    }
    let runtime = Handle::current();
    // Encoding is CPU work: it keeps a thread of its own busy until the group is done.
    let rewritten = tokio::task::spawn_blocking(move || runtime.block_on(rewriter.rewrite(task))).await;
    let panicked = |cause: tokio::task::JoinError| {
        Error::new(ErrorKind::Internal, format!("its rewrite broke off: {cause}"))
    };
    (id, rewritten.map_err(panicked).and_then(|result| result))
}

/// Takes groups as they end, and commits.
async fn collect(tasks: &mut JoinSet<GroupEnd>, plan: &Plan, commits: &mut Commits<'_>) -> Result<()> {
    while let Some(end) = tasks.join_next().await {
        let (id, rewritten) =
            end.map_err(|cause| Error::new(ErrorKind::Internal, format!("a group's task ended: {cause}")))?;
        match rewritten {
            Ok(Some(rewritten)) => commits.add(rewritten).await?,
            Ok(None) => {}
            Err(error) => {
                let partition = plan.groups.get(id).map(|group| group.partition.clone()).unwrap_or_default();
                commits.drop_group(id, partition, error.to_string());
            }
        }
    }
    commits.flush().await
}

/// The session whose memory pool all groups share.
fn session(resources: &Resources) -> Result<SessionContext> {
    let spill = match &resources.spill_directory {
        Some(folder) => DiskManagerBuilder::default().with_mode(
            datafusion::execution::disk_manager::DiskManagerMode::Directories(vec![folder.clone()]),
        ),
        None => DiskManagerBuilder::default(),
    };
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(resources.memory_bytes)))
        .with_disk_manager_builder(spill)
        .build_arc()
        .map_err(internal)?;
    Ok(SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(1), runtime))
}

/// Groups of one commit, so that a run makes as many commits as it may: one at the end without partial progress.
fn groups_per_commit(plan: &Plan) -> usize {
    let commits = plan.options.max_commits.unwrap_or(1).max(1);
    let commits = usize::try_from(commits).unwrap_or(usize::MAX);
    plan.groups.len().div_ceil(commits).max(1)
}

/// Groups at a time: bounded by the option, the cores, and the memory that the largest of them needs.
fn concurrent_groups(plan: &Plan, resources: &Resources) -> usize {
    let largest_group = plan.groups.iter().map(|group| group.bytes).max().unwrap_or(0);
    let files = plan.groups.iter().flat_map(|group| &group.files);
    let largest_file = files.map(|file| file.bytes).max().unwrap_or(0);
    let row_groups = 2 * largest_group.min(ROW_GROUP_BYTES) + 2 * largest_file.min(ROW_GROUP_BYTES);
    let fitting = resources.memory_bytes as u64 / (row_groups + BATCH_MEMORY_BYTES);
    let wanted = plan.options.max_concurrent_groups.min(resources.cores as u64);
    usize::try_from(wanted.min(fitting).max(1)).unwrap_or(1)
}

/// A fourth of a group's share of the memory: the rest is for the row groups that are read and written.
fn batch_memory_bytes(resources: &Resources, slots: usize) -> usize {
    let most = usize::try_from(BATCH_MEMORY_BYTES).unwrap_or(usize::MAX);
    (resources.memory_bytes / slots / 4).min(most)
}

#[cfg(test)]
mod tests;
