//! Replaces: files of some groups are removed and others, with the same rows, are added.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use iceberg::spec::{ManifestFile, Operation};
use iceberg::table::Table;

use super::dangling::{self, Landing, Survey};
use super::deletes::{self, Deletes};
use super::filter::{Filters, Inputs};
use super::guard::check_table;
use super::handle::{Turn, within};
use super::protocol::{Finished, Landed, Producer, Step};
use super::request::NewSnapshot;
use super::summary::Changes;
use super::written::Written;
use super::{Replace, ReplaceGroup, ReplaceOutcome, TableHandle};
use crate::files::NewFile;
use crate::layout::{DeleteIndex, DeleteKey};
use crate::ledger::{CommitId, ancestors};
use crate::manifest::{
    MergePolicy, MetadataNames, Output, check_spec, has_live_files, schema_of_spec, write_added,
};
use crate::protections::{Protection, stands};
use crate::{Error, ErrorKind, Result};

const COMMIT_ID: &str = "firn.commit-id";

impl TableHandle {
    /// Commits a rewrite. Groups whose inputs are no longer live and unchanged are dropped alone.
    ///
    /// The check is made by state on the base of every attempt: each input is live there as it was planned, and the
    /// deletes that apply to it are those that were applied. So expiry and rollback meanwhile need no special case.
    /// Deletes that have nothing left to delete go with the inputs. Errors are those of [`TableHandle::append`].
    /// Outputs of what does not land are removed where that is safe.
    pub async fn replace(&self, replace: Replace) -> Result<ReplaceOutcome> {
        check_replace(&replace)?;
        let outputs = replace.groups.iter().flat_map(|group| &group.added);
        let written = Written::new(outputs.map(|file| file.file.file_path().to_owned()));
        let mut rewrite = Rewrite::new(self, replace);
        let finished = self.run(&mut rewrite, written).await?;
        let committed = match finished {
            Finished::Landed(committed) => Some(*committed),
            Finished::Stopped(()) => None,
        };
        let landed = rewrite.landed_groups(committed.as_ref().map(|committed| &committed.table));
        Ok(ReplaceOutcome { committed, dropped: rewrite.dropped_but(&landed), landed })
    }
}

/// What must hold of a rewrite, whatever table it is for: its rows are the same, and no path is used twice.
fn check_replace(replace: &Replace) -> Result<()> {
    let mut paths = HashSet::new();
    for group in &replace.groups {
        let rows_in: u64 = group.removed.iter().map(|input| input.file.record_count()).sum();
        let rows_out: u64 = group.added.iter().map(|output| output.file.record_count()).sum();
        if rows_out.checked_add(group.deleted_rows) != Some(rows_in) {
            let (id, deleted) = (group.id, group.deleted_rows);
            return Err(defect(format!(
                "group {id} has {rows_in} rows in, {deleted} deleted and {rows_out} out"
            )));
        }
        if group.deleted_rows > 0 && group.applied_deletes.is_empty() {
            return Err(defect(format!("group {} lost rows without a delete", group.id)));
        }
        if group.removed.is_empty() {
            return Err(defect(format!("group {} removes no file", group.id)));
        }
        let inputs = group.removed.iter().map(|input| input.file.file_path());
        let outputs = group.added.iter().map(|output| output.file.file_path());
        if let Some(path) = inputs.chain(outputs).find(|path| !paths.insert((*path).to_owned())) {
            return Err(defect(format!("`{path}` is in it twice")));
        }
    }
    Ok(())
}

fn defect(what: String) -> Error {
    Error::new(ErrorKind::Internal, format!("the rewrite is not right and was not committed: {what}"))
}

/// One rewrite on its way into the table.
struct Rewrite<'a> {
    handle: &'a TableHandle,
    replace: Replace,
    names: MetadataNames,
    /// The groups that may land on the base of this attempt, by their index.
    active: Vec<bool>,
    /// Why the others may not.
    dropped: Vec<(usize, String)>,
    /// The sequence number of the outputs.
    sequence_number: i64,
    /// The manifests of these groups' outputs.
    added: Option<(Vec<bool>, Vec<ManifestFile>)>,
    filters: Filters,
    deletes: Deletes,
    survey: Survey,
    /// What each request names, by its manifest list.
    sent: HashMap<String, SentList>,
}

struct SentList {
    manifests: Arc<Vec<ManifestFile>>,
    files: HashSet<String>,
    active: Vec<bool>,
}

impl<'a> Rewrite<'a> {
    fn new(handle: &'a TableHandle, replace: Replace) -> Self {
        let sequence_number = starting_sequence_number(&handle.table(), &replace);
        Self {
            handle,
            names: handle.names(),
            active: vec![true; replace.groups.len()],
            dropped: Vec::new(),
            sequence_number,
            added: None,
            filters: Filters::default(),
            deletes: Deletes::default(),
            survey: Survey::default(),
            sent: HashMap::new(),
            replace,
        }
    }

    fn snapshot_id(&self) -> i64 {
        self.replace.commit_id.snapshot_id()
    }

    fn active_groups(&self) -> impl Iterator<Item = &ReplaceGroup> {
        self.replace.groups.iter().zip(&self.active).filter(|(_, active)| **active).map(|(group, _)| group)
    }

    fn drop_group(&mut self, index: usize, reason: String) {
        tracing::info!(table = %self.handle.ident(), group = self.replace.groups[index].id, %reason, "a group was dropped");
        self.active[index] = false;
        self.dropped.push((self.replace.groups[index].id, reason));
    }

    /// Finds the inputs in the base's manifests and drops the groups whose inputs, or their deletes, are not as they
    /// were planned. What was found on another base does not count: it may have been behind, or rolled back.
    async fn validate(&mut self, base: &Table, manifests: &[ManifestFile]) -> Result<DeleteIndex> {
        self.active = vec![true; self.replace.groups.len()];
        self.dropped.clear();
        for index in 0..self.replace.groups.len() {
            let group = &self.replace.groups[index];
            let known = |spec_id: i32| base.metadata().partition_spec_by_id(spec_id);
            let specs = group.removed.iter().map(|input| input.spec_id);
            let gone =
                specs.chain(group.added.iter().map(|output| output.spec_id)).find(|id| known(*id).is_none());
            if let Some(spec_id) = gone.filter(|_| self.active[index]) {
                self.drop_group(index, format!("partition spec {spec_id} is not in the table any more"));
            }
        }
        let inputs = Inputs::of(&self.replace.groups);
        let limit = self.handle.limits.request_timeout;
        self.filters.find(base.file_io(), manifests, &inputs, limit).await?;
        let changed = self.filters.changed(manifests, &inputs)?;
        for (index, reason) in changed.into_iter().filter(|_| stands(Protection::LiveInputs)) {
            if self.active[index] {
                self.drop_group(index, reason);
            }
        }
        let metadata = base.metadata();
        let deletes = self.deletes.index(base.file_io(), manifests, metadata, limit).await?;
        for index in 0..self.replace.groups.len() {
            let group = &self.replace.groups[index];
            let reason = deletes::changed(&deletes, metadata, group, self.sequence_number);
            if let Some(reason) = reason.filter(|_| self.active[index] && stands(Protection::DeleteChecks)) {
                self.drop_group(index, reason);
            }
        }
        Ok(deletes)
    }

    /// The deletes that go with the inputs of the groups that land.
    async fn dangling(
        &mut self,
        base: &Table,
        manifests: &[ManifestFile],
        index: &DeleteIndex,
    ) -> Result<HashSet<DeleteKey>> {
        let groups = self.replace.groups.iter().zip(&self.active);
        let landing = Landing {
            groups: groups.filter(|(_, active)| **active).map(|(group, _)| group).collect(),
            sequence_number: self.sequence_number,
        };
        let base = dangling::Base {
            file_io: base.file_io(),
            metadata: base.metadata(),
            manifests,
            limit: self.handle.limits.request_timeout,
        };
        self.survey.dangling(base, index, &landing).await
    }

    async fn write_added(&mut self, base: &Table) -> Result<Vec<ManifestFile>> {
        if let Some((active, added)) = &self.added
            && *active == self.active
        {
            return Ok(added.clone());
        }
        let metadata = base.metadata();
        let files: Vec<NewFile> = self.active_groups().flat_map(|group| group.added.clone()).collect();
        for spec in files.iter().filter_map(|file| metadata.partition_spec_by_id(file.spec_id)) {
            check_spec(spec, &*schema_of_spec(metadata, spec)?)?;
        }
        let output = Output::on(base, &self.names, self.snapshot_id());
        let target_bytes = MergePolicy::of_properties(metadata.properties()).target_bytes;
        let sequence_number = stands(Protection::StartingSequenceNumber).then_some(self.sequence_number);
        let write = write_added(output, metadata, &files, sequence_number, target_bytes);
        let added = within(self.handle.limits.request_timeout, "writing a manifest", write).await??;
        self.added = Some((self.active.clone(), added.clone()));
        Ok(added)
    }

    /// The new list: outputs, the manifests that lost files as they are now, and all others unchanged.
    async fn manifests(
        &mut self,
        base: &Table,
        parent: &[ManifestFile],
        gone: &HashSet<DeleteKey>,
        changes: &mut Changes,
    ) -> Result<Vec<ManifestFile>> {
        let mut manifests = self.write_added(base).await?;
        changes.manifests_created = manifests.len();
        let output = Output::on(base, &self.names, self.snapshot_id());
        self.filters.write(output, parent, &self.active, self.handle.limits.request_timeout).await?;
        self.deletes.write(output, parent, gone, self.handle.limits.request_timeout).await?;
        for manifest in parent.iter().filter(|manifest| has_live_files(manifest)) {
            let filtered = self.filters.in_place_of(manifest, &self.active);
            if let Some(filtered) = filtered.or_else(|| self.deletes.in_place_of(manifest, gone)) {
                changes.manifests_replaced += 1;
                changes.manifests_created += 1;
                manifests.push(filtered.clone());
            } else {
                changes.manifests_kept += 1;
                manifests.push(manifest.clone());
            }
        }
        Ok(manifests)
    }

    fn changes(&self, index: &DeleteIndex, gone: &HashSet<DeleteKey>) -> Changes {
        let mut changes = Changes::default();
        for delete in index.deletes().iter().filter(|delete| gone.contains(&delete.key())) {
            changes.remove_delete(&delete.file, delete.spec_id);
        }
        for group in self.active_groups() {
            group.added.iter().for_each(|output| changes.add(&output.file, output.spec_id));
            group.removed.iter().for_each(|input| changes.remove(&input.file, input.spec_id));
        }
        changes
    }

    /// The groups of the request that landed.
    fn landed_groups(&self, table: Option<&Table>) -> Vec<usize> {
        let snapshot = table.and_then(|table| table.metadata().snapshot_by_id(self.snapshot_id()));
        let Some(snapshot) = snapshot else { return Vec::new() };
        let active = self.sent.get(snapshot.manifest_list()).map_or(&self.active, |sent| &sent.active);
        let groups = self.replace.groups.iter().zip(active);
        groups.filter(|(_, active)| **active).map(|(group, _)| group.id).collect()
    }

    /// All groups but those that landed, with the reason of the last attempt.
    fn dropped_but(&self, landed: &[usize]) -> Vec<(usize, String)> {
        let reasons: HashMap<usize, &String> =
            self.dropped.iter().map(|(id, reason)| (*id, reason)).collect();
        let missed = self.replace.groups.iter().map(|group| group.id).filter(|id| !landed.contains(id));
        let reason = |id| reasons.get(&id).map_or("the request that landed was made without it", |r| r);
        missed.map(|id| (id, reason(id).to_owned())).collect()
    }
}

/// The sequence number of the snapshot that was planned on: equality deletes that came after it still apply to the
/// outputs. Where it was expired, the highest of the inputs, which is never too high.
fn starting_sequence_number(table: &Table, replace: &Replace) -> i64 {
    let planned_on = table.metadata().snapshot_by_id(replace.planned_on);
    let inputs = replace.groups.iter().flat_map(|group| &group.removed);
    planned_on.map_or_else(
        || inputs.map(|input| input.sequence_number).max().unwrap_or(0),
        |snapshot| snapshot.sequence_number(),
    )
}

impl Producer for Rewrite<'_> {
    /// Every group was dropped.
    type Stop = ();

    fn commit_id(&self) -> Option<CommitId> {
        Some(self.replace.commit_id)
    }

    fn given(&self) -> Vec<String> {
        self.names.given()
    }

    fn landed(&self, table: &Table) -> Option<Landed> {
        let id = self.snapshot_id();
        table.metadata().snapshot_by_id(id)?;
        let mut history = ancestors(table.metadata(), self.handle.branch());
        let snapshot = history.find(|snapshot| snapshot.snapshot_id() == id)?;
        let own = snapshot.summary().additional_properties.get(COMMIT_ID);
        if own.map(String::as_str) != Some(self.replace.commit_id.to_string().as_str()) {
            return None;
        }
        let sent = self.sent.get(snapshot.manifest_list());
        let files = sent.map_or_else(
            || {
                // An earlier call's request: which groups it held is not known here.
                let outputs = self.replace.groups.iter().flat_map(|group| &group.added);
                outputs.map(|output| output.file.file_path().to_owned()).collect()
            },
            |sent| sent.files.clone(),
        );
        Some(Landed {
            snapshot_id: snapshot.snapshot_id(),
            sequence_number: snapshot.sequence_number(),
            files,
        })
    }

    async fn attempt(&mut self, turn: &mut Turn, base: &Table) -> Result<Step<()>> {
        check_table(base.metadata())?;
        let parent = self.handle.head_manifests(turn, base).await?;
        let deletes = self.validate(base, &parent).await?;
        if !self.active.contains(&true) {
            return Ok(Step::Stop(()));
        }
        let gone = self.dangling(base, &parent, &deletes).await?;
        let mut changes = self.changes(&deletes, &gone);
        let manifests = self.manifests(base, &parent, &gone, &mut changes).await?;
        let mut summary: BTreeMap<String, String> = self.replace.summary.clone();
        summary.insert(COMMIT_ID.to_owned(), self.replace.commit_id.to_string());
        let new = NewSnapshot {
            snapshot_id: self.snapshot_id(),
            operation: Operation::Replace,
            changes,
            summary,
            properties: HashMap::new(),
            manifests,
            names: &self.names,
        };
        let prepared = self.handle.prepare(base, new).await?;
        let mut request = prepared.request;
        let outputs = self.active_groups().flat_map(|group| &group.added);
        request.files.extend(outputs.map(|output| output.file.file_path().to_owned()));
        let files = request.files.iter().cloned().collect();
        let sent = SentList { manifests: prepared.manifests, files, active: self.active.clone() };
        self.sent.insert(prepared.list_location, sent);
        Ok(Step::Send(request))
    }

    fn confirm(&mut self, turn: &mut Turn, table: &Table) -> Result<()> {
        if let Some(snapshot) = table.metadata().snapshot_by_id(self.snapshot_id())
            && let Some(sent) = self.sent.get(snapshot.manifest_list())
        {
            turn.list = Some((snapshot.snapshot_id(), sent.manifests.clone()));
        }
        Ok(())
    }
}
