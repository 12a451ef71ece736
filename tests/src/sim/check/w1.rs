//! W1: every message whose offset the ledger covers is in the table, or declared rejected, once.
//!
//! Each append must add exactly the rows of the offsets by which its ledger advances, take nothing away, and count
//! what is no row. So what holds of the whole table follows from step to step, and is counted once more at the end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use async_trait::async_trait;
use firn_table::ledger::{CommitRecord, Cursor, Guarantee, Ledger, TopicPartition, WriterName};
use iceberg::TableUpdate;
use iceberg::table::Table;

use super::super::records::{Commit, Role, Tale};
use super::super::view::{Checker, Step, View, Violation};
use super::lake::{Added, Lake};
use super::messages::{Expected, Messages};

const NAME: &str = "W1";

/// The checker.
#[derive(Debug)]
pub struct W1 {
    lake: Lake,
    messages: Messages,
    /// The snapshots in which a writer added a row, by its id.
    adders: HashMap<(WriterName, i64), Vec<i64>>,
    /// Rows that others took out of the table.
    taken: HashSet<i64>,
}

impl W1 {
    /// A new one.
    #[must_use]
    pub fn new(lake: &Lake) -> Self {
        let lake = lake.clone();
        Self { lake, messages: Messages::default(), adders: HashMap::new(), taken: HashSet::new() }
    }

    /// An append of a writer against the messages by whose offsets its ledger advances.
    async fn append(&mut self, view: View<'_>, commit: &Commit, added: &Added) -> Result<(), Violation> {
        let summary = &added.contents.snapshot.summary().additional_properties;
        let (Some(record), Some(after)) = (CommitRecord::read(summary), &commit.after) else {
            return broken(format!("snapshot {} of a writer does not name its commit", added.id()));
        };
        let changes = self.lake.changes(added).await?;
        if !changes.removed.is_empty() || !changes.deletes_removed.is_empty() {
            let paths: Vec<&str> = changes.removed.iter().map(|entry| entry.file.file_path()).collect();
            return broken(format!("append {} took files out of the table: {paths:?}", added.id()));
        }
        let rows = self.lake.rows_of_files(view, after, &changes.added).await?;
        let mut found: Vec<i64> = rows.iter().filter_map(|row| row.id).collect();
        found.sort_unstable();
        for branch in &added.branches {
            let Some(advance) = Advance::of(commit, branch, &record.writer)? else {
                if view.records.struck.iter().any(|struck| struck.fault == "dropped-properties") {
                    continue;
                }
                return broken(format!(
                    "append {} of `{}` does not set its ledger",
                    added.id(),
                    record.writer
                ));
            };
            if record.sets_cursors || advance.guarantee == Guarantee::AtLeastOnce {
                continue;
            }
            let expected = self.expected(&advance, &found)?;
            if expected != found {
                return broken(format!(
                    "append {} of `{}` on `{branch}` covers {}, whose rows are {}; it has {}",
                    added.id(),
                    record.writer,
                    advance.text(),
                    difference(&expected, &found),
                    difference(&found, &expected),
                ));
            }
        }
        self.note_adder(&record.writer, added.id(), &found).await
    }

    /// The ids of the rows that an advance must add, where its counts are right.
    fn expected(&self, advance: &Advance, found: &[i64]) -> Result<Vec<i64>, Violation> {
        let mut all = Vec::new();
        for (partition, (before, after)) in &advance.cursors {
            let range = before.next..after.next;
            let counted = |expected: &Expected| {
                after.rows - before.rows == expected.ids.len() as u64
                    && after.rejected - before.rejected == expected.rejected
                    && after.holes - before.holes == expected.holes
                    && expected.unknown == 0
            };
            let candidates: Vec<Expected> = self
                .messages
                .incarnations(partition)
                .map(|incarnation| self.messages.expected(partition, incarnation, range.clone()))
                .collect();
            let fits = |expected: &&Expected| {
                counted(expected) && expected.ids.iter().all(|id| found.binary_search(id).is_ok())
            };
            let Some(expected) = candidates.iter().find(fits).or(candidates.first()) else {
                return Err(Violation::new(NAME, format!("nobody produced to {partition}")));
            };
            if !counted(expected) {
                return Err(Violation::new(
                    NAME,
                    format!(
                        "{partition} {range:?} holds {} rows, {} rejects, {} holes and {} unknown offsets; the \
                         ledger went from {before:?} to {after:?}",
                        expected.ids.len(),
                        expected.rejected,
                        expected.holes,
                        expected.unknown
                    ),
                ));
            }
            all.extend(&expected.ids);
        }
        all.sort_unstable();
        Ok(all)
    }

    /// A row is not added again below a snapshot that has it already.
    async fn note_adder(&mut self, writer: &WriterName, snapshot: i64, ids: &[i64]) -> Result<(), Violation> {
        for id in ids {
            let adders = self.adders.entry((writer.clone(), *id)).or_default();
            for earlier in adders.iter() {
                if self.lake.is_in_line(*earlier, snapshot).await && !self.taken.contains(id) {
                    return broken(format!(
                        "row {id} of `{writer}` was added by snapshot {earlier} and again by {snapshot}"
                    ));
                }
            }
            adders.push(snapshot);
        }
        Ok(())
    }

    /// Rows that another engine took away are no loss of ours.
    async fn note_taken(&mut self, view: View<'_>, commit: &Commit) -> Result<(), Violation> {
        let (Some(before), Some(after)) = (&commit.before, &commit.after) else { return Ok(()) };
        let head = |table: &Table| table.metadata().current_snapshot_id();
        if head(before) == head(after) {
            return Ok(());
        }
        let mut ids = Vec::new();
        for (table, head) in [(before, head(before)), (after, head(after))] {
            let rows = match head {
                Some(head) => self.lake.live_rows(view, table, head).await?,
                None => Vec::new(),
            };
            ids.push(rows.iter().filter_map(|row| row.id).collect::<HashSet<i64>>());
        }
        self.taken.extend(ids[0].difference(&ids[1]));
        Ok(())
    }

    /// The whole table against all messages.
    async fn whole(&self, view: View<'_>, table: &Table) -> Result<(), Violation> {
        let metadata = table.metadata();
        let Some(head) = metadata.current_snapshot() else { return Ok(()) };
        let ledgers = Ledger::read_all(metadata.properties());
        let ledgers = ledgers.map_err(|error| Violation::new(NAME, error.to_string()))?;
        let coverage = self.coverage(view, ledgers, head.snapshot_id()).await;
        let mut found: BTreeMap<i64, u64> = BTreeMap::new();
        for id in self.lake.live_rows(view, table, head.snapshot_id()).await?.iter().filter_map(|row| row.id)
        {
            *found.entry(id).or_default() += 1;
        }
        found.retain(|id, _| {
            !coverage.unjudged.iter().any(|writer| self.adders.contains_key(&(writer.clone(), *id)))
        });
        for (id, times) in &coverage.on_main {
            let found = found.get(id).copied().unwrap_or(0);
            if found < *times && !self.taken.contains(id) {
                return broken(format!(
                    "row {id} is covered {times} times and is in the table {found} times"
                ));
            }
        }
        for (id, times) in found {
            let below = u64::from(coverage.below.contains(&id));
            let covered = coverage.somewhere.get(&id).copied().unwrap_or(below);
            if id >= 0 && times > covered && !self.messages.is_of_an_older_incarnation(id) {
                return broken(format!(
                    "row {id} is covered {covered} times and is in the table {times} times"
                ));
            }
        }
        Ok(())
    }

    /// How often ledgers cover each row.
    async fn coverage(
        &self,
        view: View<'_>,
        ledgers: Vec<(String, WriterName, Ledger)>,
        head: i64,
    ) -> Coverage {
        let mut coverage = Coverage::default();
        let mut somewhere: BTreeSet<(i64, String)> = BTreeSet::new();
        for (branch, writer, ledger) in ledgers {
            let current = branch != "main" || self.lake.is_in_line(ledger.snapshot_id, head).await;
            if ledger.guarantee == Guarantee::AtLeastOnce || !current {
                coverage.unjudged.push(writer);
                continue;
            }
            for (partition, cursor) in &ledger.cursors {
                coverage.below.extend(self.below(partition, cursor));
                for (id, certain) in self.covered(view, partition, cursor) {
                    somewhere.insert((id, writer.to_string()));
                    if branch == "main" && certain {
                        *coverage.on_main.entry(id).or_default() += 1;
                    }
                }
            }
        }
        somewhere.into_iter().for_each(|(id, _)| *coverage.somewhere.entry(id).or_default() += 1);
        coverage
    }

    /// The ids of the rows that a cursor covers, of the newest incarnation, and whether it does for certain: a gap that
    /// was told may not have been recorded as it was told, where others committed meanwhile.
    fn covered(&self, view: View<'_>, partition: &TopicPartition, cursor: &Cursor) -> Vec<(i64, bool)> {
        let Some(newest) = self.messages.incarnations(partition).next() else { return Vec::new() };
        let gaps: Vec<(i64, i64)> = view
            .records
            .told
            .iter()
            .filter_map(|told| match &told.what {
                Tale::Writer(event) => match event.as_ref() {
                    firn_writer::Event::Gap { partition: of, from, to } if of == partition => {
                        Some((*from, *to))
                    }
                    _ => None,
                },
                _ => None,
            })
            .collect();
        let in_a_gap = |offset: i64| gaps.iter().any(|(from, to)| (*from..*to).contains(&offset));
        let ids = |offset: i64| {
            let certain = cursor.gaps == 0 || !in_a_gap(offset);
            let ids = self.messages.expected(partition, newest, offset..offset + 1).ids;
            ids.into_iter().map(move |id| (id, certain))
        };
        (cursor.start..cursor.next).flat_map(ids).collect()
    }

    /// The ids of the rows before a cursor's start, of the newest incarnation.
    fn below(&self, partition: &TopicPartition, cursor: &Cursor) -> Vec<i64> {
        let newest = self.messages.incarnations(partition).next();
        newest.map_or_else(Vec::new, |newest| self.messages.expected(partition, newest, 0..cursor.start).ids)
    }
}

/// How often ledgers cover each row, by its id.
#[derive(Default)]
struct Coverage {
    on_main: BTreeMap<i64, u64>,
    /// By the writers that cover it on any branch: one may have become `main`, with rows that `main`'s own ledger does
    /// not cover.
    somewhere: BTreeMap<i64, u64>,
    /// Rows before a cursor's start. After two rollbacks and an expiry the history that is left tells where a cursor
    /// stands and no longer where it began: what was appended before is in the table, once, and nothing tells of it.
    below: BTreeSet<i64>,
    /// Writers of which a rollback left what no ledger tells: each of their steps was judged.
    unjudged: Vec<WriterName>,
}

/// How a commit moves a ledger.
struct Advance {
    guarantee: Guarantee,
    /// Cursors that move: before and after.
    cursors: BTreeMap<TopicPartition, (Cursor, Cursor)>,
}

impl Advance {
    /// From the table before the commit to what the commit set; `None` where it set nothing.
    fn of(commit: &Commit, branch: &str, writer: &WriterName) -> Result<Option<Self>, Violation> {
        let failed = |error: firn_table::Error| Violation::new(NAME, error.to_string());
        let read =
            |properties: &HashMap<String, String>| Ledger::read(properties, branch, writer).map_err(failed);
        let mut set = HashMap::new();
        for update in &commit.updates {
            if let TableUpdate::SetProperties { updates } = update {
                set.extend(updates.clone());
            }
        }
        let before = match &commit.before {
            Some(table) => read(table.metadata().properties())?,
            None => None,
        };
        let Some(after) = read(&set)? else { return Ok(None) };
        let before = before.map(|ledger| ledger.cursors).unwrap_or_default();
        let mut cursors = BTreeMap::new();
        for (partition, cursor) in after.cursors {
            let fresh = Cursor::starting_at(cursor.start);
            let from = before.get(&partition).cloned().unwrap_or(fresh);
            if from != cursor {
                cursors.insert(partition, (from, cursor));
            }
        }
        Ok(Some(Self { guarantee: after.guarantee, cursors }))
    }

    fn text(&self) -> String {
        let ranges = self.cursors.iter().map(|(p, (from, to))| format!("{p} {}..{}", from.next, to.next));
        ranges.collect::<Vec<_>>().join(", ")
    }
}

/// The ids of `a` that are not, or less often, in `b`, shortened.
fn difference(a: &[i64], b: &[i64]) -> String {
    let mut left: HashMap<i64, i64> = HashMap::new();
    b.iter().for_each(|id| *left.entry(*id).or_default() += 1);
    let mut only = Vec::new();
    for id in a {
        let count = left.entry(*id).or_default();
        *count -= 1;
        if *count < 0 {
            only.push(*id);
        }
    }
    let shown: Vec<String> = only.iter().take(5).map(i64::to_string).collect();
    format!("{} of its own ({})", only.len(), shown.join(" "))
}

fn broken<T>(what: String) -> Result<T, Violation> {
    Err(Violation::new(NAME, what))
}

#[async_trait]
impl Checker for W1 {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation> {
        let Some(commit) = view.records.commits.last().filter(|_| step == Step::Commit) else {
            return Ok(());
        };
        self.messages.take(view.records);
        let added = self.lake.added(view).await?;
        match commit.by.role {
            Role::Writer => {
                for added in &added {
                    self.append(view, commit, added).await?;
                }
                Ok(())
            }
            Role::Foreign | Role::World => self.note_taken(view, commit).await,
            Role::Compactor | Role::Maintenance => Ok(()),
        }
    }

    async fn at_end(&mut self, view: View<'_>) -> Result<(), Violation> {
        self.messages.take(view.records);
        match view.table {
            Some(table) => self.whole(view, table).await,
            None => Ok(()),
        }
    }
}
