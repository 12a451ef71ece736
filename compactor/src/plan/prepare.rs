//! From a table to a plan: layout, selection, policy.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use firn_policies::{Debt, Decision, FileStats, Histogram, RewriteOptions, SkipReason, bin_pack};
use firn_table::layout::{
    DeleteIndex, DeleteKey, DeleteScope, Live, LiveDelete, LiveFile, live, partition_key,
};
use iceberg::spec::{DataFileFormat, SnapshotRef, Transform};
use iceberg::table::Table;

use super::policy::{busy, limited};
use super::selection::selected_paths;
use super::{Plan, PlanOptions, PlannedFile, PlannedGroup, SkippedFile};
use crate::run::{RUN, TARGET_BYTES};
use crate::{Error, ErrorKind, Result};

/// A plan and the live files of its groups.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    /// For each group of the plan, what it reads.
    pub(crate) inputs: Vec<GroupInputs>,
}

/// What a group reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupInputs {
    /// Its files, in the plan's order.
    pub(crate) files: Vec<LiveFile>,
    /// The deletes that apply to one of them.
    pub(crate) deletes: Vec<LiveDelete>,
}

impl GroupInputs {
    fn new(files: Vec<LiveFile>, deletes: &DeleteIndex) -> Self {
        let applying = files.iter().flat_map(|file| deletes.applying_to(file));
        let deletes: BTreeMap<DeleteKey, LiveDelete> =
            applying.map(|delete| (delete.key(), delete.clone())).collect();
        Self { files, deletes: deletes.into_values().collect() }
    }
}

/// What keeps a file from being considered at all; `None` where the policy decides.
pub(super) type Exclusions = Vec<Option<SkipReason>>;

pub(crate) async fn prepare(table: &Table, options: &PlanOptions) -> Result<Prepared> {
    let rewrite = rewrite_options(table, options)?;
    let branch = options.branch.as_deref().unwrap_or("main");
    let planned_on = planning_snapshot(table, branch, options.snapshot_id)?;
    let Live { files, deletes } = match planned_on {
        Some(snapshot_id) => live(table, snapshot_id).await?,
        None => Live::default(),
    };
    let deletes = DeleteIndex::new(table.metadata(), deletes);
    let selected = selected_paths(table, &files, options).await?;
    let mut exclusions = exclusions(table, &files, &deletes, selected.as_ref());
    busy(table, &files, options.policy.as_ref(), &mut exclusions);
    let known = Known { runs: runs(table, rewrite.sizes.target_bytes), deletes };
    let decision = decide(&files, exclusions, &known, &rewrite);
    let decision = match (&options.policy, planned_on) {
        (Some(policy), Some(head)) => limited(table, head, &files, (decision, policy)),
        _ => decision,
    };
    let mut plan = Plan {
        table: table.identifier().to_string(),
        table_uuid: table.metadata().uuid().to_string(),
        branch: branch.to_owned(),
        planned_on,
        debt: Debt::of(&decision),
        histogram: files.iter().map(|file| file.file.file_size_in_bytes()).collect(),
        expected_histogram: expected_histogram(&files, &decision, &rewrite),
        options: rewrite,
        policy: options.policy.as_ref().map(|at| at.policy.name.clone()),
        groups: Vec::new(),
        skipped: skipped(&files, &decision),
    };
    let mut inputs = Vec::with_capacity(decision.groups.len());
    for group in decision.groups {
        let members: Vec<LiveFile> = group.files.iter().map(|&index| files[index].clone()).collect();
        plan.groups.push(PlannedGroup {
            id: group.id,
            partition: members.first().map(|file| file.partition_path.clone()).unwrap_or_default(),
            spec_id: group.spec_id,
            files: members.iter().map(planned_file).collect(),
            bytes: group.bytes,
            rows: group.rows,
            expected_outputs: group.expected_outputs,
            split_bytes: group.split_bytes,
        });
        inputs.push(GroupInputs::new(members, &known.deletes));
    }
    Ok(Prepared { plan, inputs })
}

/// Finds the files of a plan that was made before, in its snapshot where that still exists, else in the head: the
/// commit checks them once more. Groups with a file that is not found keep what was found and are dropped there.
pub(crate) async fn resolve(table: &Table, plan: &Plan) -> Result<Prepared> {
    if table.metadata().uuid().to_string() != plan.table_uuid {
        return Err(Error::new(
            ErrorKind::Configuration,
            format!("the plan is of a table with uuid `{}`, not of this one: plan again", plan.table_uuid),
        ));
    }
    let known = plan.planned_on.filter(|&id| table.metadata().snapshot_by_id(id).is_some());
    let head = table.metadata().snapshot_for_ref(&plan.branch).map(|snapshot| snapshot.snapshot_id());
    let Live { files, deletes } = match known.or(head) {
        Some(snapshot_id) => live(table, snapshot_id).await?,
        None => Live::default(),
    };
    let deletes = DeleteIndex::new(table.metadata(), deletes);
    let by_path: HashMap<&str, &LiveFile> = files.iter().map(|file| (file.file.file_path(), file)).collect();
    let members = |group: &PlannedGroup| -> Vec<LiveFile> {
        group.files.iter().filter_map(|file| by_path.get(&*file.path).map(|&file| file.clone())).collect()
    };
    let inputs = plan.groups.iter().map(|group| GroupInputs::new(members(group), &deletes)).collect();
    Ok(Prepared { plan: plan.clone(), inputs })
}

fn rewrite_options(table: &Table, options: &PlanOptions) -> Result<RewriteOptions> {
    let overrides = match &options.policy {
        Some(at) => at.policy.options_with(&options.overrides),
        None => options.overrides.clone(),
    };
    let rewrite = RewriteOptions::parse(table.metadata().properties(), &overrides)
        .map_err(|problems| Error::new(ErrorKind::Configuration, problems.to_string()))?;
    if !rewrite.use_starting_sequence_number {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "`use-starting-sequence-number` = `false` would bring back rows that are deleted meanwhile: leave it on",
        ));
    }
    Ok(rewrite)
}

fn planning_snapshot(table: &Table, branch: &str, snapshot_id: Option<i64>) -> Result<Option<i64>> {
    let metadata = table.metadata();
    let missing = |what: String| {
        Error::new(ErrorKind::NotFound, format!("table `{}` has no {what}", table.identifier()))
    };
    match (snapshot_id, metadata.snapshot_for_ref(branch)) {
        (Some(id), _) if metadata.snapshot_by_id(id).is_some() => Ok(Some(id)),
        (Some(id), _) => Err(missing(format!("snapshot `{id}`"))),
        (None, Some(head)) => Ok(Some(head.snapshot_id())),
        (None, None) if branch == "main" => Ok(None),
        (None, None) => Err(missing(format!("branch `{branch}`"))),
    }
}

/// What keeps files from being considered: the user's selection, specs that firn cannot write, and deletes that a
/// rewrite cannot apply.
fn exclusions(
    table: &Table,
    files: &[LiveFile],
    deletes: &DeleteIndex,
    selected: Option<&HashSet<String>>,
) -> Exclusions {
    let causes: HashMap<i32, Option<String>> = {
        let spec_ids: HashSet<i32> = files.iter().map(|file| file.spec_id).collect();
        spec_ids.into_iter().map(|id| (id, unsupported_spec(table, id))).collect()
    };
    let exclusion = |file: &LiveFile| {
        if selected.is_some_and(|paths| !paths.contains(file.file.file_path())) {
            return Some(SkipReason::NotSelected);
        }
        if let Some(cause) = causes.get(&file.spec_id).cloned().flatten() {
            return Some(SkipReason::Unsupported { cause });
        }
        let applying = deletes.applying_to(file);
        let delete_files = applying.iter().filter(|delete| !is_applied(delete)).count() as u64;
        (delete_files > 0).then_some(SkipReason::HasDeletes { delete_files })
    };
    files.iter().map(exclusion).collect()
}

/// Whether a rewrite applies this kind of delete when it reads.
fn is_applied(delete: &LiveDelete) -> bool {
    match delete.scope() {
        DeleteScope::Vector(_) => true,
        DeleteScope::File(_) | DeleteScope::Paths => delete.file.file_format() == DataFileFormat::Parquet,
        DeleteScope::Equality => false,
    }
}

/// Why files of a spec are left alone.
fn unsupported_spec(table: &Table, spec_id: i32) -> Option<String> {
    let Some(spec) = table.metadata().partition_spec_by_id(spec_id) else {
        return Some(format!("the table has no partition spec `{spec_id}`"));
    };
    let unknown = spec.fields().iter().find(|field| field.transform == Transform::Unknown)?;
    Some(format!("the transform of its partition field `{}` is unknown", unknown.name))
}

/// The policy's decision on the files without an exclusion, in terms of all files.
fn decide(files: &[LiveFile], exclusions: Exclusions, known: &Known, options: &RewriteOptions) -> Decision {
    let mut keys = PartitionKeys::default();
    let considered: Vec<usize> = (0..files.len()).filter(|&index| exclusions[index].is_none()).collect();
    let stats: Vec<FileStats> =
        considered.iter().map(|&index| stats(&files[index], &mut keys, known)).collect();
    let mut decision = bin_pack(&stats, options);
    for group in &mut decision.groups {
        for index in &mut group.files {
            *index = considered[*index];
        }
    }
    for (index, _) in &mut decision.skipped {
        *index = considered[*index];
    }
    let excluded = exclusions.into_iter().enumerate().filter_map(|(index, reason)| Some((index, reason?)));
    decision.skipped.extend(excluded);
    decision.skipped.sort_unstable_by_key(|&(index, _)| index);
    decision
}

/// Partition keys, each kept once.
#[derive(Debug, Default)]
struct PartitionKeys(BTreeMap<String, Arc<str>>);

impl PartitionKeys {
    fn of(&mut self, file: &LiveFile) -> Arc<str> {
        // The path comes first so that groups are in the order that a reader expects.
        let key = format!("{}\0{}", file.partition_path, partition_key(file.file.partition()));
        self.0.entry(key).or_insert_with_key(|key| Arc::from(key.as_str())).clone()
    }
}

/// What the policy is told of files beside their own entries.
#[derive(Debug)]
struct Known {
    runs: Runs,
    deletes: DeleteIndex,
}

/// Rewrites by the snapshot that they committed, as far as it is in the metadata.
type Runs = HashMap<i64, Arc<str>>;

/// The rewrites that made files of this target size.
fn runs(table: &Table, target_bytes: u64) -> Runs {
    let target = target_bytes.to_string();
    let run = |snapshot: &SnapshotRef| {
        let summary = &snapshot.summary().additional_properties;
        let made = summary.get(TARGET_BYTES).is_some_and(|made| *made == target);
        let run = summary.get(RUN).filter(|_| made)?;
        Some((snapshot.snapshot_id(), Arc::from(run.as_str())))
    };
    table.metadata().snapshots().filter_map(run).collect()
}

fn stats(file: &LiveFile, keys: &mut PartitionKeys, known: &Known) -> FileStats {
    let deletes = known.deletes.applying_to(file);
    let of_this_file = deletes.iter().filter(|delete| delete.scope() != DeleteScope::Paths);
    FileStats {
        path: Arc::from(file.file.file_path()),
        partition: keys.of(file),
        spec_id: file.spec_id,
        bytes: file.file.file_size_in_bytes(),
        rows: file.file.record_count(),
        sequence_number: file.sequence_number,
        delete_files: deletes.len() as u64,
        deleted_rows: of_this_file.map(|delete| delete.file.record_count()).sum(),
        made_by: known.runs.get(&file.snapshot_id).cloned(),
    }
}

fn planned_file(file: &LiveFile) -> PlannedFile {
    PlannedFile {
        path: file.file.file_path().to_owned(),
        bytes: file.file.file_size_in_bytes(),
        rows: file.file.record_count(),
    }
}

fn skipped(files: &[LiveFile], decision: &Decision) -> Vec<SkippedFile> {
    let skipped = |(index, reason): &(usize, SkipReason)| SkippedFile {
        path: files[*index].file.file_path().to_owned(),
        partition: files[*index].partition_path.clone(),
        bytes: files[*index].file.file_size_in_bytes(),
        reason: reason.clone(),
    };
    decision.skipped.iter().map(skipped).collect()
}

fn expected_histogram(files: &[LiveFile], decision: &Decision, options: &RewriteOptions) -> Histogram {
    let kept = decision.skipped.iter().map(|&(index, _)| files[index].file.file_size_in_bytes());
    let made = decision.groups.iter().flat_map(|group| match group.rows {
        0 => Vec::new(),
        _ => options.sizes.output_sizes(group.bytes),
    });
    kept.chain(made).collect()
}
