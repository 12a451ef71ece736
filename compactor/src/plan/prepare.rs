//! From a table to a plan: layout, selection, policy.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use firn_policies::{Debt, Decision, FileStats, Histogram, RewriteOptions, SkipReason, bin_pack};
use firn_table::layout::{LiveFile, live_files};
use iceberg::spec::{FormatVersion, SnapshotRef, Transform};
use iceberg::table::Table;

use super::partition::partition_key;
use super::selection::selected_paths;
use super::{Plan, PlanOptions, PlannedFile, PlannedGroup, SkippedFile};
use crate::run::{RUN, TARGET_BYTES};
use crate::{Error, ErrorKind, Result};

/// A plan and the live files of its groups.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    /// For each group of the plan, its files in the plan's order.
    pub(crate) inputs: Vec<Vec<LiveFile>>,
}

/// What keeps a file from being considered at all; `None` where the policy decides.
type Exclusions = Vec<Option<SkipReason>>;

pub(crate) async fn prepare(table: &Table, options: &PlanOptions) -> Result<Prepared> {
    refuse_unsupported(table)?;
    let rewrite = rewrite_options(table, options)?;
    let branch = options.branch.as_deref().unwrap_or("main");
    let planned_on = planning_snapshot(table, branch, options.snapshot_id)?;
    let files = match planned_on {
        Some(snapshot_id) => live_files(table, snapshot_id).await?,
        None => Vec::new(),
    };
    let selected = selected_paths(table, &files, options).await?;
    let exclusions = exclusions(table, &files, selected.as_ref());
    let runs = runs(table, rewrite.sizes.target_bytes);
    let decision = decide(&files, exclusions, &runs, &rewrite);
    let mut plan = Plan {
        table: table.identifier().to_string(),
        table_uuid: table.metadata().uuid().to_string(),
        branch: branch.to_owned(),
        planned_on,
        debt: Debt::of(&decision),
        histogram: files.iter().map(|file| file.file.file_size_in_bytes()).collect(),
        expected_histogram: expected_histogram(&files, &decision, &rewrite),
        options: rewrite,
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
        inputs.push(members);
    }
    Ok(Prepared { plan, inputs })
}

/// Finds the files of a plan that was made before, in its snapshot where that still exists, else in the head: the
/// commit checks them once more. Groups with a file that is not found keep what was found and are dropped there.
pub(crate) async fn resolve(table: &Table, plan: &Plan) -> Result<Prepared> {
    refuse_unsupported(table)?;
    if table.metadata().uuid().to_string() != plan.table_uuid {
        return Err(Error::new(
            ErrorKind::Configuration,
            format!("the plan is of a table with uuid `{}`, not of this one: plan again", plan.table_uuid),
        ));
    }
    let known = plan.planned_on.filter(|&id| table.metadata().snapshot_by_id(id).is_some());
    let head = table.metadata().snapshot_for_ref(&plan.branch).map(|snapshot| snapshot.snapshot_id());
    let files = match known.or(head) {
        Some(snapshot_id) => live_files(table, snapshot_id).await?,
        None => Vec::new(),
    };
    let by_path: HashMap<&str, &LiveFile> = files.iter().map(|file| (file.file.file_path(), file)).collect();
    let members = |group: &PlannedGroup| -> Vec<LiveFile> {
        group.files.iter().filter_map(|file| by_path.get(&*file.path).map(|&file| file.clone())).collect()
    };
    let inputs = plan.groups.iter().map(members).collect();
    Ok(Prepared { plan: plan.clone(), inputs })
}

/// Refuses what a rewrite would get wrong. Delete files are refused where manifests are read.
fn refuse_unsupported(table: &Table) -> Result<()> {
    if table.metadata().format_version() > FormatVersion::V2 {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "table `{}` has format version {}: its row lineage would be lost, so it is not rewritten",
                table.identifier(),
                table.metadata().format_version(),
            ),
        ));
    }
    Ok(())
}

fn rewrite_options(table: &Table, options: &PlanOptions) -> Result<RewriteOptions> {
    let rewrite = RewriteOptions::parse(table.metadata().properties(), &options.overrides)
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

/// What keeps files from being considered: the user's selection, and specs that firn cannot write.
fn exclusions(table: &Table, files: &[LiveFile], selected: Option<&HashSet<String>>) -> Exclusions {
    let causes: HashMap<i32, Option<String>> = {
        let spec_ids: HashSet<i32> = files.iter().map(|file| file.spec_id).collect();
        spec_ids.into_iter().map(|id| (id, unsupported_spec(table, id))).collect()
    };
    let exclusion = |file: &LiveFile| {
        if selected.is_some_and(|paths| !paths.contains(file.file.file_path())) {
            return Some(SkipReason::NotSelected);
        }
        causes.get(&file.spec_id).cloned().flatten().map(|cause| SkipReason::Unsupported { cause })
    };
    files.iter().map(exclusion).collect()
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
fn decide(files: &[LiveFile], exclusions: Exclusions, runs: &Runs, options: &RewriteOptions) -> Decision {
    let mut keys = PartitionKeys::default();
    let considered: Vec<usize> = (0..files.len()).filter(|&index| exclusions[index].is_none()).collect();
    let stats: Vec<FileStats> =
        considered.iter().map(|&index| stats(&files[index], &mut keys, runs)).collect();
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

fn stats(file: &LiveFile, keys: &mut PartitionKeys, runs: &Runs) -> FileStats {
    FileStats {
        path: Arc::from(file.file.file_path()),
        partition: keys.of(file),
        spec_id: file.spec_id,
        bytes: file.file.file_size_in_bytes(),
        rows: file.file.record_count(),
        sequence_number: file.sequence_number,
        // Snapshots with delete files are refused when their manifests are read.
        delete_files: 0,
        deleted_rows: 0,
        made_by: runs.get(&file.snapshot_id).cloned(),
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
