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
use super::{Claim, Committed, Flush, FlushOutcome, Guarantee, TableHandle};
use crate::files::NewFile;
use crate::ledger::{
    Advance, Claims, CommitId, CommitRecord, Cursor, Fenced, Ledger, TopicPartition, WriterName,
    claim_property, fence, property_name, take_letters,
};
use crate::ledger::{Replayed, replayed_property};
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
        self.append_fenced(flush, Fencing::Starts).await
    }

    /// [`Self::append`] under claims: overtaken also where a partition of the flush was claimed anew since.
    pub async fn append_claimed(&self, flush: Flush, claims: Claims) -> Result<FlushOutcome> {
        self.append_fenced(flush, Fencing::Claimed(claims)).await
    }

    /// Appends dead letters to the table that holds them. A range says how far the flush looked for them, its rows
    /// how many it found; they may stand before the cursor. Under exactly once the claims are the fence.
    pub async fn append_letters(&self, letters: Flush, claims: Claims) -> Result<FlushOutcome> {
        self.append_fenced(letters, Fencing::Letters(claims)).await
    }

    /// Appends rows of dead letters that decode by now, together with the record of their offsets. Overtaken where
    /// one of them was replayed before. A range reaches from the first to the last of its partition's offsets.
    pub async fn append_replayed(&self, rows: Flush, offsets: Replayed) -> Result<FlushOutcome> {
        self.append_fenced(rows, Fencing::Replayed(offsets)).await
    }

    /// Claims topic partitions for a process, in an empty append: what others have in flight for them lands before
    /// it or never. Returns the claims, and the table's head as of then ([`Committed::table`]).
    pub async fn claim(&self, claim: Claim) -> Result<(Claims, Committed)> {
        let Claim { commit_id, writer, partitions, source } = claim;
        let claims = Claims::by(commit_id.snapshot_id(), partitions);
        let guarantee = Guarantee::ExactlyOnce;
        let (ranges, files) = (Vec::new(), Vec::new());
        let flush = Flush { commit_id, writer, ranges, files, source, guarantee };
        match self.append_fenced(flush, Fencing::Claiming(claims.clone())).await? {
            FlushOutcome::Committed(committed) => Ok((claims, *committed)),
            FlushOutcome::Overtaken { .. } => {
                Err(Error::new(ErrorKind::Internal, "a claim was overtaken, though it covers no offset"))
            }
        }
    }

    /// Loads the head and tells whether claims of these partitions stand there.
    pub async fn claims_stand(
        &self,
        writer: &WriterName,
        held: &Claims,
        partitions: &[TopicPartition],
    ) -> Result<bool> {
        let table = self.refresh().await?;
        let claims = Claims::read(table.metadata().properties(), self.branch(), writer)?;
        Ok(claims.hold(held, partitions))
    }

    async fn append_fenced(&self, flush: Flush, fencing: Fencing) -> Result<FlushOutcome> {
        check_flush(&flush)?;
        let mut append = Append::new(self, flush, fencing);
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

/// What must hold in the base beside the ledger's standing.
enum Fencing {
    /// Each range starts at its cursor.
    Starts,
    /// That, and these claims stand.
    Claimed(Claims),
    /// Nothing: these claims are made.
    Claiming(Claims),
    /// These claims stand (exactly once); cursors are moved as those of dead letters.
    Letters(Claims),
    /// None of these offsets was replayed; they are from now on.
    Replayed(Replayed),
}

/// One flush on its way into the table.
struct Append<'a> {
    handle: &'a TableHandle,
    flush: Flush,
    fencing: Fencing,
    names: MetadataNames,
    /// The manifests of the flush's files: written once, good for every attempt.
    added: Vec<ManifestFile>,
    merges: Merges,
    /// The manifest list of the last request, by its location.
    sent: HashMap<String, (Arc<Vec<ManifestFile>>, HashSet<String>)>,
}

impl<'a> Append<'a> {
    fn new(handle: &'a TableHandle, flush: Flush, fencing: Fencing) -> Self {
        Self {
            handle,
            flush,
            fencing,
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

    /// The ledger after the flush, or that it was overtaken.
    fn fenced(&self, base: &Table, current: Option<&Ledger>) -> Result<Fenced> {
        let advance = self.advance(base.metadata().next_sequence_number());
        if let Fencing::Claimed(held) | Fencing::Letters(held) = &self.fencing
            && self.flush.guarantee == Guarantee::ExactlyOnce
            && !self.claims(base)?.allow(held, &self.flush.ranges)
        {
            let known = |at: &TopicPartition| Some((at.clone(), current?.cursors.get(at)?.clone()));
            let cursors = self.flush.ranges.iter().filter_map(|range| known(&range.partition)).collect();
            return Ok(Fenced::Overtaken { cursors, by: current.map(|ledger| ledger.commit_id) });
        }
        if let Fencing::Replayed(offsets) = &self.fencing
            && self.replayed(base)?.joined(offsets).is_none()
        {
            return Ok(Fenced::Overtaken {
                cursors: BTreeMap::new(),
                by: current.map(|ledger| ledger.commit_id),
            });
        }
        match self.fencing {
            Fencing::Letters(_) | Fencing::Replayed(_) => Ok(Fenced::Pass(take_letters(current, &advance))),
            _ => fence(current, &advance),
        }
    }

    fn claims(&self, base: &Table) -> Result<Claims> {
        Claims::read(base.metadata().properties(), self.handle.branch(), &self.flush.writer)
    }

    fn replayed(&self, base: &Table) -> Result<Replayed> {
        Replayed::read(base.metadata().properties(), self.handle.branch(), &self.flush.writer)
    }

    /// The properties that are set with the snapshot.
    fn properties(&self, base: &Table, ledger: &Ledger) -> Result<HashMap<String, String>> {
        let (branch, writer) = (self.handle.branch(), &self.flush.writer);
        let mut properties = HashMap::from([(property_name(branch, writer), ledger.to_text())]);
        if let Fencing::Claiming(newer) = &self.fencing {
            let mut claims = self.claims(base)?;
            claims.extend(newer.clone());
            properties.insert(claim_property(branch, writer), claims.to_text());
        }
        if let Fencing::Replayed(offsets) = &self.fencing
            && let Some(all) = self.replayed(base)?.joined(offsets)
        {
            properties.insert(replayed_property(branch, writer), all.to_text()?);
        }
        Ok(properties)
    }

    fn record(&self) -> CommitRecord {
        // Dead letters may stand before the cursor: their ranges do not follow each other.
        let follow = !matches!(self.fencing, Fencing::Letters(_) | Fencing::Replayed(_));
        CommitRecord {
            writer: self.flush.writer.clone(),
            commit_id: self.flush.commit_id,
            ranges: follow.then(|| self.flush.ranges.clone()),
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
        let ledger = match self.fenced(base, current.as_ref())? {
            Fenced::Pass(ledger) => ledger,
            Fenced::Overtaken { cursors, by } => return Ok(Step::Stop((cursors, by))),
        };
        self.write_added(base).await?;
        let mut changes = Changes::default();
        self.flush.files.iter().for_each(|file| changes.add(&file.file, file.spec_id));
        let manifests = self.manifests(turn, base, &mut changes).await?;
        let new = NewSnapshot {
            snapshot_id: self.snapshot_id(),
            operation: Operation::Append,
            changes,
            summary: self.record().entries(),
            properties: self.properties(base, &ledger)?,
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
