//! Appends: flushes of a writer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use iceberg::spec::{ManifestFile, Operation};
use iceberg::table::Table;
use tokio::time::Instant;

use super::guard::check_table;
use super::handle::{Turn, within};
use super::known_ledger::{find_commit, ledger_of};
use super::merging::Merges;
use super::protocol::{Finished, Landed, Producer, Step};
use super::request::NewSnapshot;
use super::summary::Changes;
use super::written::Written;
use super::{Flush, FlushOutcome, TableHandle};
use crate::files::NewFile;
use crate::ledger::{Advance, CommitId, CommitRecord, Cursor, Fenced, TopicPartition, fence, property_name};
use crate::manifest::{MergePolicy, MetadataNames, Output, check_spec, schema_of_spec, write_added};
use crate::protections::{Protection, stands};
use crate::{Error, ErrorKind, Result};

impl TableHandle {
    /// Commits a flush, or finds that it was overtaken. Flushes that wait are not merged here: the writer does that.
    ///
    /// A flush that is not committed is discarded: its files are removed where that is safe. Errors: `Ledger` where
    /// a person must decide (a gap, a rollback, another topic, a catalog that drops properties, a table that was
    /// created again), `NotFound` where the table was dropped, `Unsupported` where nothing was written,
    /// `Conflict` and `Unavailable` where the limits ended it, `UnknownOutcome` where it may have landed.
    ///
    /// Where the caller goes away before this returns, the outcome counts as unknown: nothing is deleted, and a
    /// later call with the same flush finds out.
    pub async fn append(&self, flush: Flush) -> Result<FlushOutcome> {
        check_flush(&flush)?;
        let mut append = Append::new(self, flush);
        let data_files = append.flush.files.iter().map(|file| file.file.file_path().to_owned());
        let written = Written::new(data_files);
        let began = Instant::now();
        if let Err(error) = append.prepare().await {
            tracing::debug!(table = %self.ident(), %error, "a manifest is written only when it is its commit's turn");
        }
        let beforehand = began.elapsed();
        match self.run(&mut append, written).await? {
            Finished::Landed(mut committed) => {
                committed.times.manifest += beforehand;
                self.check_kept(&append.flush).await?;
                Ok(FlushOutcome::Committed(committed))
            }
            Finished::Stopped((cursors, by)) => Ok(FlushOutcome::Overtaken { cursors, by }),
        }
    }

    pub(super) fn names(&self) -> MetadataNames {
        MetadataNames::of_table(self.table().metadata(), self.surroundings.uuid())
    }
}

/// What a sealed flush must hold, whatever table it is for.
fn check_flush(flush: &Flush) -> Result<()> {
    let mut seen = HashSet::new();
    for range in &flush.ranges {
        if !seen.insert(&range.partition) {
            return Err(defect(format!("`{}` is in the flush twice", range.partition)));
        }
        if !range.is_balanced() {
            return Err(defect(format!(
                "the range of `{}` accounts for {} of {} offsets",
                range.partition,
                range.rows + range.rejected + range.holes,
                range.len()
            )));
        }
    }
    let rows: u64 = flush.ranges.iter().map(|range| range.rows).sum();
    let stored: u64 = flush.files.iter().map(|file| file.file.record_count()).sum();
    if rows != stored {
        return Err(defect(format!("the ranges hold {rows} rows and the files {stored}")));
    }
    Ok(())
}

fn defect(what: String) -> Error {
    Error::new(ErrorKind::Internal, format!("{what}: the flush is not whole and was not committed"))
}

/// One flush on its way into the table.
struct Append<'a> {
    handle: &'a TableHandle,
    flush: Flush,
    names: MetadataNames,
    /// The manifests of the flush's files: written once, good for every attempt.
    added: Vec<ManifestFile>,
    merges: Merges,
    /// The manifest list of the last request, by its location.
    sent: HashMap<String, (Arc<Vec<ManifestFile>>, HashSet<String>)>,
}

impl<'a> Append<'a> {
    fn new(handle: &'a TableHandle, flush: Flush) -> Self {
        Self {
            handle,
            flush,
            names: handle.names(),
            added: Vec::new(),
            merges: Merges::default(),
            sent: HashMap::new(),
        }
    }

    fn snapshot_id(&self) -> i64 {
        self.flush.commit_id.snapshot_id()
    }

    /// Writes the manifests of the files before it is this commit's turn. What fails is done again then.
    async fn prepare(&mut self) -> Result<()> {
        let table = self.handle.table();
        check_table(table.metadata())?;
        check_specs(&table, &self.flush.files)?;
        self.write_added(&table).await
    }

    async fn write_added(&mut self, base: &Table) -> Result<()> {
        if self.flush.files.is_empty() || !self.added.is_empty() {
            return Ok(());
        }
        let metadata = base.metadata();
        let target_bytes = MergePolicy::of_properties(metadata.properties()).target_bytes;
        let write = write_added(self.output(base), metadata, &self.flush.files, None, target_bytes);
        self.added = within(self.handle.limits.request_timeout, "writing a manifest", write).await??;
        Ok(())
    }

    fn output<'b>(&'b self, base: &'b Table) -> Output<'b> {
        Output::on(base, &self.names, self.snapshot_id())
    }

    /// The manifests of the new snapshot: those of the flush's files, and the parent's, merged where that is due.
    async fn manifests(
        &mut self,
        turn: &mut Turn,
        base: &Table,
        changes: &mut Changes,
    ) -> Result<Vec<ManifestFile>> {
        let parent = self.handle.head_manifests(turn, base).await?;
        let output = Output::on(base, &self.names, self.snapshot_id());
        let policy = MergePolicy::of_properties(base.metadata().properties());
        let merging = self.merges.prepare(turn, &parent, policy, output);
        if let Err(error) = within(self.handle.limits.request_timeout, "merging manifests", merging).await {
            self.merges.give_up(&error);
        }
        let mut manifests = self.added.clone();
        self.merges.apply(&parent, &mut manifests, changes);
        Ok(manifests)
    }

    fn advance(&self, sequence_number: i64) -> Advance<'_> {
        Advance {
            writer: &self.flush.writer,
            commit_id: self.flush.commit_id,
            snapshot_id: self.snapshot_id(),
            sequence_number,
            ranges: &self.flush.ranges,
            source: &self.flush.source,
            guarantee: self.flush.guarantee,
            start_counts: self.sent.is_empty() || stands(Protection::LedgerCheck),
        }
    }

    fn record(&self) -> CommitRecord {
        CommitRecord {
            writer: self.flush.writer.clone(),
            commit_id: self.flush.commit_id,
            ranges: Some(self.flush.ranges.clone()),
            sets_cursors: false,
        }
    }
}

fn check_specs(base: &Table, files: &[NewFile]) -> Result<()> {
    let ids: HashSet<i32> = files.iter().map(|file| file.spec_id).collect();
    for spec in ids.into_iter().filter_map(|id| base.metadata().partition_spec_by_id(id)) {
        check_spec(spec, &*schema_of_spec(base.metadata(), spec)?)?;
    }
    Ok(())
}

type Overtaken = (BTreeMap<TopicPartition, Cursor>, Option<CommitId>);

impl Producer for Append<'_> {
    type Stop = Overtaken;

    fn commit_id(&self) -> Option<CommitId> {
        Some(self.flush.commit_id)
    }

    fn given(&self) -> Vec<String> {
        self.names.given()
    }

    fn landed(&self, table: &Table) -> Option<Landed> {
        let (snapshot_id, sequence_number, list) =
            find_commit(self.handle, table, self.flush.commit_id, &self.flush.writer)?;
        let sent = list.and_then(|list| self.sent.get(&list));
        // Where the snapshot was expired meanwhile, any of the requests may be the one that landed.
        let mut files = sent.map_or_else(
            || self.sent.values().flat_map(|(_, files)| files.clone()).collect(),
            |(_, files)| files.clone(),
        );
        files.extend(self.flush.files.iter().map(|file| file.file.file_path().to_owned()));
        Some(Landed { snapshot_id, sequence_number, files })
    }

    async fn attempt(&mut self, turn: &mut Turn, base: &Table) -> Result<Step<Overtaken>> {
        let metadata = base.metadata();
        check_table(metadata)?;
        check_specs(base, &self.flush.files)?;
        let current = ledger_of(base, self.handle.branch(), &self.flush.writer)?;
        let ledger = match fence(current.as_ref(), &self.advance(metadata.next_sequence_number()))? {
            Fenced::Pass(ledger) => ledger,
            Fenced::Overtaken { cursors, by } => return Ok(Step::Stop((cursors, by))),
        };
        self.write_added(base).await?;
        let mut changes = Changes::default();
        self.flush.files.iter().for_each(|file| changes.add(&file.file, file.spec_id));
        let manifests = self.manifests(turn, base, &mut changes).await?;
        let name = property_name(self.handle.branch(), &self.flush.writer);
        let new = NewSnapshot {
            snapshot_id: self.snapshot_id(),
            operation: Operation::Append,
            changes,
            summary: self.record().entries(),
            properties: HashMap::from([(name, ledger.to_text())]),
            manifests,
            names: &self.names,
        };
        let prepared = self.handle.prepare(base, new).await?;
        let mut files: HashSet<String> = prepared.request.files.iter().cloned().collect();
        files.insert(prepared.list_location.clone());
        self.sent.insert(prepared.list_location, (prepared.manifests, files));
        let mut request = prepared.request;
        request.files.extend(self.flush.files.iter().map(|file| file.file.file_path().to_owned()));
        Ok(Step::Send(request))
    }

    fn confirm(&mut self, turn: &mut Turn, table: &Table) -> Result<()> {
        let snapshot = table.metadata().snapshot_by_id(self.snapshot_id());
        if let Some(snapshot) = snapshot
            && let Some((list, _)) = self.sent.get(snapshot.manifest_list())
        {
            turn.list = Some((snapshot.snapshot_id(), list.clone()));
        }
        self.handle.check_cursors(table, &self.flush)
    }
}
