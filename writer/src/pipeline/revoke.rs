//! Partitions taken back, flushes discarded, positions sought.

use std::collections::BTreeMap;

use firn_table::ledger::TopicPartition;
use firn_table::protections::{Protection, stands};
use tokio::time::Instant;

use super::engine::{Pipeline, Revoking};
use super::fence::Touched;
use crate::observe::Event;
use crate::source::Position;

impl Pipeline {
    /// Partitions are to be given up. What is in the open flush is committed first; what is not decoded yet is left
    /// to the next owner.
    pub(super) fn begin_revoke(&mut self, partitions: Vec<TopicPartition>) {
        for partition in &partitions {
            self.owned.remove(partition);
        }
        let owned = &self.owned;
        self.decoding.retain(|f| owned.contains_key(f.messages.partition()));
        let deadline = Instant::now() + self.config.revoke_deadline;
        match &mut self.revoking {
            Some(revoking) => revoking.partitions.extend(partitions),
            None => self.revoking = Some(Revoking { partitions: partitions.into_iter().collect(), deadline }),
        }
    }

    /// Answers a revoke as soon as nothing of its partitions is left to be committed, or discards it at the deadline.
    pub(super) fn pump_revoke(&mut self) {
        let Some(revoking) = &self.revoking else { return };
        let late = Instant::now() >= revoking.deadline;
        if late {
            let partitions: Vec<_> = revoking.partitions.iter().cloned().collect();
            tracing::warn!(?partitions, "a revoke cannot wait for its commit: what was read is discarded");
            let starts = self.discard(partitions);
            self.seek_back(starts);
        }
        let Some(revoking) = &self.revoking else { return };
        let touches = |partition: &TopicPartition| {
            self.line.iter().any(|f| f.ranges.contains(partition))
                || self.committing.as_ref().is_some_and(|c| c.ranges().contains(partition))
        };
        // A commit that is still out at the deadline cannot be taken back; the fence decides about it.
        let drains = !late && stands(Protection::DrainOnRevoke);
        if drains && revoking.partitions.iter().any(touches) {
            return;
        }
        if let Some(Revoking { partitions, .. }) = self.revoking.take() {
            let partitions: Vec<_> = partitions.into_iter().collect();
            self.source.release(partitions.clone());
            self.tell(Event::Revoked { partitions });
        }
    }

    /// Discards all flushes but the one in flight that touch these partitions, or partitions of flushes that do.
    /// Returns where the discarded ranges began.
    pub(super) fn discard(
        &mut self,
        partitions: impl IntoIterator<Item = TopicPartition>,
    ) -> BTreeMap<TopicPartition, i64> {
        let mut touched = Touched::new(partitions);
        let mut kept = std::collections::VecDeque::with_capacity(self.line.len());
        for flush in std::mem::take(&mut self.line) {
            if touched.takes(flush.ranges.iter()) {
                flush.discarded.cancel();
                self.writes.delete_unsent(flush.number, flush.files);
            } else {
                kept.push_back(flush);
            }
        }
        self.line = kept;
        touched.into_starts()
    }

    /// Goes back in partitions that are still owned; what is on its way from there is of an older epoch.
    pub(super) fn seek_back(&mut self, offsets: BTreeMap<TopicPartition, i64>) {
        let mut positions = Vec::with_capacity(offsets.len());
        for (partition, offset) in offsets {
            if let Some(owned) = self.owned.get_mut(&partition) {
                owned.epoch = self.next_epoch;
                owned.next = offset;
                positions.push(Position { partition, offset, epoch: self.next_epoch });
                self.next_epoch += 1;
            }
        }
        let owned = &self.owned;
        self.decoding.retain(|f| owned.get(f.messages.partition()).is_some_and(|o| o.epoch == f.epoch));
        if !positions.is_empty() {
            self.source.seek(positions);
        }
    }

    /// Ends after an error: deletes what no commit was asked to hold, and waits for the commit in flight for a while,
    /// so that its files are not left in doubt without need.
    pub(super) async fn abandon(&mut self) {
        let all: Vec<_> = self.line.iter().flat_map(|f| f.ranges.partitions().cloned()).collect();
        self.discard(all);
        let rest = async {
            if let Some(committing) = self.committing.take() {
                committing.finish().await;
            }
            while self.writes.in_flight() > 0
                && let Ok(done) = self.writes.next().await
            {
                self.writes.delete_unsent(done.flush, done.outcome.ok().flatten());
            }
        };
        if tokio::time::timeout(ABANDON_TIMEOUT, rest).await.is_err() {
            tracing::warn!("files of the last flushes may be left behind for orphan removal");
        }
    }
}

const ABANDON_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
