//! Partitions handed over: the table, the topic and the configuration decide where to begin.

use std::collections::BTreeMap;
use std::time::Duration;

use firn_table::commit::{CursorChange, Guarantee, SourceIdentity, TableHandle};
use firn_table::ledger::{CommitId, Cursor, Ledger, Standing, TopicPartition, WriterName};
use tokio_util::sync::CancellationToken;

use super::engine::{Owned, Phase, Pipeline};
use super::start::{Begin, Identity, after_gap, begin, fresh, identity, is_created_again, restarted};
use crate::config::{AfterRollback, End, Start};
use crate::observe::Event;
use crate::ranges::place;
use crate::source::{Bounds, BoundsRequest, GroupOffsets, Position};
use crate::{Error, ErrorKind, Result};

impl Pipeline {
    /// Answers an assignment.
    pub(super) async fn assign(
        &mut self,
        partitions: Vec<TopicPartition>,
        stop: &CancellationToken,
    ) -> Result<()> {
        if !matches!(self.phase, Phase::Running) || partitions.is_empty() {
            self.source.start(Vec::new());
            return Ok(());
        }
        let positions = tokio::select! {
            biased;
            positions = self.positions(partitions) => positions?,
            () = stop.cancelled() => Vec::new(),
        };
        let starts = positions.iter().map(|p| (p.partition.clone(), p.offset)).collect();
        self.source.start(positions);
        self.tell(Event::Assigned { starts });
        Ok(())
    }

    /// Looks again where to read on in all partitions; nothing is in hand.
    pub(super) async fn reposition(&mut self, stop: &CancellationToken) -> Result<()> {
        let partitions = self.owned.keys().cloned().collect();
        let positions = tokio::select! {
            biased;
            positions = self.positions(partitions) => positions?,
            () = stop.cancelled() => return Ok(()),
        };
        self.source.seek(positions);
        Ok(())
    }

    /// Where to begin in these partitions. They are owned from then on. Where another process claimed one of them in
    /// between, what was learnt of the one table may not fit the other: it is learnt again.
    async fn positions(&mut self, partitions: Vec<TopicPartition>) -> Result<Vec<Position>> {
        loop {
            let positions = self.try_positions(partitions.clone()).await?;
            if self.row_claims_stand(&partitions).await? {
                return Ok(positions);
            }
        }
    }

    async fn try_positions(&mut self, partitions: Vec<TopicPartition>) -> Result<Vec<Position>> {
        let identity = self.source.identity().await?;
        self.leave_former_topics(&partitions, &identity)?;
        self.identity = identity;
        let request = BoundsRequest {
            partitions,
            timestamp_ms: match self.config.start {
                Start::Timestamp(at) => Some(at),
                _ => None,
            },
            group: match (self.config.start, self.config.guarantee) {
                (Start::Group, _) | (_, Guarantee::AtLeastOnce) => GroupOffsets::Ask,
                _ => GroupOffsets::Ignore,
            },
        };
        // The topic is asked after the table: while that is waited for, another process may commit what is produced
        // meanwhile, and its cursors must not be held against an end of the topic from before.
        let ledger = match self.config.guarantee {
            Guarantee::AtLeastOnce => None,
            Guarantee::ExactlyOnce => {
                let ledger = self.ledger().await?;
                self.claim_rows(&request.partitions, ledger).await?
            }
        };
        let bounds = self.bounds(request).await?;
        let cursors = match ledger {
            Some(ledger) => self.cursors(ledger, &bounds).await?,
            None => BTreeMap::new(),
        };
        let mut positions = Vec::with_capacity(bounds.len());
        let mut gaps = BTreeMap::new();
        for (partition, bounds) in bounds {
            let cursor = cursors.get(&partition);
            let offset = match begin(&self.config, &partition, cursor, &bounds)? {
                Begin::At(offset) => offset,
                Begin::AfterGap { from, to } => {
                    self.tell(Event::Gap { partition: partition.clone(), from, to });
                    let before = cursor.cloned().unwrap_or_else(|| fresh(from));
                    gaps.insert(partition.clone(), after_gap(&before, to));
                    to
                }
            };
            positions.push(self.own(partition, offset, bounds.high));
        }
        if !gaps.is_empty() {
            self.set_cursors(gaps, Others::Keep).await?;
        }
        self.claim_letters(&positions).await?;
        Ok(positions)
    }

    /// What is in hand of a topic that was created again since must not be committed as the new one's. What was given
    /// up is discarded; where partitions of it are still read, nothing can be done but to start again.
    fn leave_former_topics(&mut self, handed_over: &[TopicPartition], now: &SourceIdentity) -> Result<()> {
        let former = |partition: &&TopicPartition| {
            !handed_over.contains(partition) && is_created_again(&self.identity, now, &partition.topic)
        };
        if let Some(partition) = self.owned.keys().find(former) {
            return Err(recreated(&partition.topic));
        }
        let in_hand = self.line.iter().flat_map(|flush| flush.ranges.partitions());
        let stale: Vec<TopicPartition> = in_hand.filter(former).cloned().collect();
        let starts = self.discard(stale);
        self.seek_back(starts);
        Ok(())
    }

    /// Asks the source; trouble with the brokers is waited out.
    async fn bounds(&mut self, request: BoundsRequest) -> Result<BTreeMap<TopicPartition, Bounds>> {
        let mut wait = FIRST_WAIT;
        loop {
            match self.source.bounds(request.clone()).await {
                Err(e) if passes(e.kind()) => {
                    tracing::warn!(error = %e, "the brokers do not tell their offsets, trying again");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(MAX_WAIT);
                }
                other => return other,
            }
        }
    }

    fn own(&mut self, partition: TopicPartition, offset: i64, high: i64) -> Position {
        let epoch = self.next_epoch;
        self.next_epoch += 1;
        let before = self.owned.get(&partition).and_then(|o| o.end);
        let end = (self.config.end == End::AtEndsOfStart).then(|| before.unwrap_or(high));
        self.owned.insert(partition.clone(), Owned { epoch, next: offset, end });
        Position { partition, offset, epoch }
    }

    /// The table's cursors, after whatever the configuration says about new topics was done.
    async fn cursors(
        &mut self,
        ledger: Ledger,
        bounds: &BTreeMap<TopicPartition, Bounds>,
    ) -> Result<BTreeMap<TopicPartition, Cursor>> {
        match identity(self.config.on_new_source, &ledger, &self.identity)? {
            Identity::Same => Ok(ledger.cursors),
            Identity::Restart(topics) => {
                let cursors = restarted(&ledger, &topics, bounds);
                self.set_cursors(cursors.clone(), Others::Forget).await?;
                Ok(cursors)
            }
        }
    }

    /// The ledger that holds, after whatever the configuration says about rollbacks was done; `None` where the table
    /// never saw this writer.
    async fn ledger(&mut self) -> Result<Option<Ledger>> {
        for _ in 0..MAX_REPAIRS {
            let (ledger, ancestry, unknown) = match standing(&self.handle, &self.config.name).await? {
                Standing::Absent => return Ok(None),
                Standing::Current(ledger) => return Ok(Some(ledger)),
                Standing::Missing { last_snapshot_id } => return Err(missing(self, last_snapshot_id)),
                Standing::RolledBack { ledger, ancestry, unknown } => (ledger, ancestry, unknown),
            };
            match self.config.after_rollback {
                AfterRollback::Stop => return Err(rolled_back(&ledger, ancestry.as_ref(), &unknown)),
                AfterRollback::Keep => self.set_cursors(ledger.cursors, Others::Forget).await?,
                AfterRollback::Replay if !unknown.is_empty() => {
                    return Err(rolled_back(&ledger, ancestry.as_ref(), &unknown));
                }
                AfterRollback::Replay => {
                    let cursors = replayed(&ledger, ancestry.as_ref());
                    self.set_cursors(cursors, Others::Forget).await?;
                }
            }
        }
        Err(Error::new(ErrorKind::Conflict, "the table is rolled back again and again while cursors are set"))
    }

    async fn set_cursors(&mut self, cursors: BTreeMap<TopicPartition, Cursor>, others: Others) -> Result<()> {
        let change = CursorChange {
            commit_id: self.new_commit_id(),
            writer: self.config.name.clone(),
            cursors,
            source: Some(self.identity.clone()),
            replace_all: matches!(others, Others::Forget),
        };
        self.handle.set_cursors(change).await.map(drop)
    }

    pub(super) fn new_commit_id(&mut self) -> CommitId {
        let counter = self.next_commit;
        self.next_commit += 1;
        CommitId { instance: self.environment.instance, counter }
    }
}

/// What the head says; trouble with the catalog is waited out.
async fn standing(handle: &TableHandle, writer: &WriterName) -> Result<Standing> {
    let mut wait = FIRST_WAIT;
    loop {
        match handle.standing(writer).await {
            Err(e) if passes(e.kind()) => {
                tracing::warn!(error = %e, "the table cannot be read, trying again");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(MAX_WAIT);
            }
            other => return other,
        }
    }
}

/// What becomes of cursors that a change does not name.
#[derive(Debug, Clone, Copy)]
enum Others {
    Keep,
    Forget,
}

const MAX_REPAIRS: usize = 3;
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(100);
pub(super) const MAX_WAIT: Duration = Duration::from_secs(5);

/// Whether an error of the table is worth waiting out.
pub(super) fn passes(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::Conflict | ErrorKind::UnknownOutcome)
}

/// Cursors as of the history that is left; partitions that it does not know begin where they began at first.
fn replayed(ledger: &Ledger, ancestry: Option<&Ledger>) -> BTreeMap<TopicPartition, Cursor> {
    let kept = |partition: &TopicPartition| ancestry.and_then(|a| a.cursors.get(partition)).cloned();
    let back = |(p, c): (&TopicPartition, &Cursor)| (p.clone(), kept(p).unwrap_or_else(|| fresh(c.start)));
    ledger.cursors.iter().map(back).collect()
}

fn rolled_back(ledger: &Ledger, ancestry: Option<&Ledger>, unknown: &[TopicPartition]) -> Error {
    let before = replayed(ledger, ancestry);
    let left = ledger.cursors.iter().filter_map(|(p, c)| {
        let from = before.get(p)?.next;
        (from < c.next && !unknown.contains(p)).then(|| format!("{}, offsets {from} to {}", place(p), c.next))
    });
    let untold = unknown.iter().map(|p| {
        let until = ledger.cursors.get(p).map_or(0, |c| c.next);
        format!("some or none of {} before offset {until} (the commits that tell are expired)", place(p))
    });
    let gone: Vec<String> = left.chain(untold).collect();
    let advice = if unknown.is_empty() {
        "Read them again with `--after-rollback replay`, or leave them out with `--after-rollback keep`"
    } else {
        "What is not known is not read again, since it could be doubled: say where to go on with `firn offsets set`, or \
         leave it out with `--after-rollback keep`"
    };
    let message = format!(
        "the table was rolled back or replaced: snapshot {} of commit `{}` is not in its history any more, and with it \
         went {}. {advice}",
        ledger.snapshot_id,
        ledger.commit_id,
        gone.join("; ")
    );
    Error::new(ErrorKind::Ledger, message)
}

fn recreated(topic: &str) -> Error {
    let message = format!(
        "topic `{topic}` was deleted and created again while partitions of it were read: what is in hand of them means \
         other messages, and was discarded. Start again: `--on-new-source` decides what becomes of the new topic"
    );
    Error::new(ErrorKind::Ledger, message)
}

fn missing(pipeline: &Pipeline, last_snapshot_id: i64) -> Error {
    let branch = pipeline.handle.branch();
    let message = format!(
        "the table property `{}` is gone, though snapshot {last_snapshot_id} holds rows of this writer: going on would \
         double them. Set the cursors with `firn offsets set` or `firn offsets adopt`",
        firn_table::ledger::property_name(branch, &pipeline.config.name)
    );
    Error::new(ErrorKind::Ledger, message)
}
