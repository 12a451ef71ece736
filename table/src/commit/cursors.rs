//! Cursors that a person sets: an empty append that bypasses the fence.

use std::collections::{BTreeMap, HashMap, HashSet};

use iceberg::spec::{ManifestFile, Operation};
use iceberg::table::Table;

use super::guard::check_table;
use super::handle::Turn;
use super::known_ledger::{dropped_property, find_commit};
use super::protocol::{Finished, Landed, Producer, Step};
use super::request::NewSnapshot;
use super::summary::Changes;
use super::written::Written;
use super::{Committed, CursorChange, TableHandle};
use crate::ledger::{CommitId, CommitRecord, Cursor, Guarantee, Ledger, TopicPartition, property_name};
use crate::manifest::{MetadataNames, has_live_files};
use crate::{Error, ErrorKind, Result};

impl TableHandle {
    /// Sets cursors in an empty append (`firn offsets set`, `--after-rollback replay`, gaps), bypassing the fence.
    ///
    /// The decision was made on what this handle knows ([`TableHandle::table`], after [`TableHandle::standing`]):
    /// `Conflict`, and nothing changed, where the cursors in question have moved since, for then a late request or
    /// another process has changed what there is to decide. A ledger that cannot be read is replaced where all
    /// cursors are (`replace_all`).
    pub async fn set_cursors(&self, change: CursorChange) -> Result<Committed> {
        let mut set = SetCursors { handle: self, names: self.names(), change, seen: None, expected: None };
        set.seen = set.read(&self.table())?;
        match self.run(&mut set, Written::new([])).await? {
            Finished::Landed(committed) => Ok(*committed),
            Finished::Stopped(never) => match never {},
        }
    }
}

/// Cursors that a person sets, on their way into the table.
struct SetCursors<'a> {
    handle: &'a TableHandle,
    names: MetadataNames,
    change: CursorChange,
    /// The ledger on which the decision was made.
    seen: Option<Ledger>,
    /// The property of the last request.
    expected: Option<String>,
}

/// There is always something to send.
enum Never {}

impl SetCursors<'_> {
    fn read(&self, table: &Table) -> Result<Option<Ledger>> {
        match Ledger::read(table.metadata().properties(), self.handle.branch(), &self.change.writer) {
            Err(error) if self.change.replace_all => {
                tracing::warn!(table = %self.handle.ident(), %error, "a ledger that cannot be read is replaced");
                Ok(None)
            }
            read => read,
        }
    }

    /// Whether the cursors in question are as they were when the decision was made.
    fn check_seen(&self, current: Option<&Ledger>) -> Result<()> {
        let of = |ledger: Option<&Ledger>| -> BTreeMap<TopicPartition, Cursor> {
            let cursors = ledger.map(|ledger| ledger.cursors.clone()).unwrap_or_default();
            let in_question =
                |at: &TopicPartition| self.change.replace_all || self.change.cursors.contains_key(at);
            cursors.into_iter().filter(|(at, _)| in_question(at)).collect()
        };
        if of(self.seen.as_ref()) == of(current) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "the cursors of writer `{}` moved since they were looked at, by commit {}: nothing was changed; look \
                 again and decide anew",
                self.change.writer,
                current.map_or_else(|| "none".to_owned(), |ledger| ledger.commit_id.to_string())
            ),
        ))
    }

    fn ledger(&self, current: Option<Ledger>, sequence_number: i64) -> Ledger {
        let mut ledger = current.unwrap_or_else(|| Ledger {
            commit_id: self.change.commit_id,
            snapshot_id: 0,
            sequence_number: 0,
            guarantee: Guarantee::default(),
            cluster_id: None,
            topic_ids: BTreeMap::new(),
            cursors: BTreeMap::new(),
        });
        if self.change.replace_all {
            ledger.cursors.clear();
        }
        if let Some(source) = &self.change.source {
            ledger.cluster_id = None;
            let topics: HashSet<&String> = self.change.cursors.keys().map(|at| &at.topic).collect();
            ledger.topic_ids.retain(|topic, _| !topics.contains(topic));
            ledger.set_source(source);
        }
        ledger.cursors.extend(self.change.cursors.clone());
        ledger.commit_id = self.change.commit_id;
        ledger.snapshot_id = self.change.commit_id.snapshot_id();
        ledger.sequence_number = sequence_number;
        ledger
    }
}

impl Producer for SetCursors<'_> {
    type Stop = Never;

    fn commit_id(&self) -> Option<CommitId> {
        Some(self.change.commit_id)
    }

    fn given(&self) -> Vec<String> {
        self.names.given()
    }

    fn landed(&self, table: &Table) -> Option<Landed> {
        let (snapshot_id, sequence_number, list) =
            find_commit(self.handle, table, self.change.commit_id, &self.change.writer)?;
        Some(Landed { snapshot_id, sequence_number, files: list.into_iter().collect() })
    }

    async fn attempt(&mut self, turn: &mut Turn, base: &Table) -> Result<Step<Never>> {
        let metadata = base.metadata();
        check_table(metadata)?;
        let current = self.read(base)?;
        self.check_seen(current.as_ref())?;
        let text = self.ledger(current, metadata.next_sequence_number()).to_text();
        self.expected = Some(text.clone());
        let parent = self.handle.head_manifests(turn, base).await?;
        let mut changes = Changes::default();
        let manifests: Vec<ManifestFile> = parent.iter().filter(|m| has_live_files(m)).cloned().collect();
        changes.manifests_kept = manifests.len();
        let record = CommitRecord {
            writer: self.change.writer.clone(),
            commit_id: self.change.commit_id,
            ranges: None,
            sets_cursors: true,
        };
        let new = NewSnapshot {
            snapshot_id: self.change.commit_id.snapshot_id(),
            operation: Operation::Append,
            changes,
            summary: record.entries(),
            properties: HashMap::from([(property_name(self.handle.branch(), &self.change.writer), text)]),
            manifests,
            names: &self.names,
        };
        Ok(Step::Send(self.handle.prepare(base, new).await?.request))
    }

    fn confirm(&mut self, _turn: &mut Turn, table: &Table) -> Result<()> {
        let name = property_name(self.handle.branch(), &self.change.writer);
        let current = table.metadata().properties().get(&name);
        let head = table.metadata().snapshot_for_ref(self.handle.branch());
        let later = head.is_some_and(|head| head.snapshot_id() != self.change.commit_id.snapshot_id());
        if current.is_some() && (later || current == self.expected.as_ref() || self.expected.is_none()) {
            return Ok(());
        }
        Err(dropped_property(self.handle, &self.change.writer))
    }
}
