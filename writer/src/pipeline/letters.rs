//! Dead letters on their way: claims on assignment, letters before rows (see [`crate::dead_letters`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use firn_table::commit::{Claim, FlushOutcome, Guarantee, SourceIdentity, TableHandle};
use firn_table::ledger::{Claims, CommitId, Ledger, TopicPartition};

use super::assign::{FIRST_WAIT, MAX_WAIT, passes};
use super::engine::Pipeline;
use super::files::delete;
use super::flush::Flush;
use crate::config::OnBadMessage;
use crate::dead_letters::{DeadLetterTable, DeadOffsets, Letters, Share};
use crate::source::Position;
use crate::{Error, Result};

/// What a pipeline knows of its dead letters.
#[derive(Debug)]
pub(super) struct DeadLetterState {
    /// The table that holds them, once it is open.
    table: Option<Arc<DeadLetterTable>>,
    /// Claims in the table of rows.
    rows: Claims,
    /// Claims in the table of letters.
    letters: Claims,
    dead: DeadOffsets,
    pub(super) share: Share,
}

impl DeadLetterState {
    pub(super) fn new(share: Share) -> Self {
        let (rows, letters) = (Claims::default(), Claims::default());
        Self { table: None, rows, letters, dead: DeadOffsets::default(), share }
    }
}

/// The letters of a flush, before its rows.
#[derive(Debug)]
pub(super) struct LettersFirst {
    table: Arc<DeadLetterTable>,
    letters: Letters,
}

impl Pipeline {
    /// Whether commits stand under claims: dead letters, exactly once.
    pub(super) fn holds_claims(&self) -> bool {
        self.config.on_bad_message == OnBadMessage::DeadLetter
            && self.config.guarantee == Guarantee::ExactlyOnce
    }

    /// Claims partitions in the table of rows, where dead letters need it. Returns the ledger of then.
    pub(super) async fn claim_rows(
        &mut self,
        partitions: &[TopicPartition],
        ledger: Option<Ledger>,
    ) -> Result<Option<Ledger>> {
        if !self.holds_claims() {
            return Ok(ledger);
        }
        let mut wait = FIRST_WAIT;
        loop {
            let claim = Claim {
                commit_id: self.new_commit_id(),
                writer: self.config.name.clone(),
                partitions: partitions.to_vec(),
                source: SourceIdentity::default(),
            };
            match self.handle.claim(claim).await {
                Ok((claims, committed)) => {
                    self.letters.rows.extend(claims);
                    let properties = committed.table.metadata().properties();
                    return Ledger::read(properties, self.handle.branch(), &self.config.name);
                }
                Err(e) => wait = waited(e, wait).await?,
            }
        }
    }

    /// Whether the claims in the table of rows stand, after those in the table of letters were made: only then is no
    /// claim of another process newer in the one table and older in the other.
    pub(super) async fn row_claims_stand(&mut self, partitions: &[TopicPartition]) -> Result<bool> {
        if !self.holds_claims() {
            return Ok(true);
        }
        let mut wait = FIRST_WAIT;
        loop {
            match self.handle.claims_stand(&self.config.name, &self.letters.rows, partitions).await {
                Ok(stand) => return Ok(stand),
                Err(e) => wait = waited(e, wait).await?,
            }
        }
    }

    /// Claims partitions in the table of letters, and learns what is dead at or after these positions.
    pub(super) async fn claim_letters(&mut self, positions: &[Position]) -> Result<()> {
        if !self.holds_claims() {
            return Ok(());
        }
        let from: BTreeMap<TopicPartition, i64> =
            positions.iter().map(|p| (p.partition.clone(), p.offset)).collect();
        let mut wait = FIRST_WAIT;
        loop {
            match self.try_claim_letters(&from).await {
                Ok((claims, dead)) => {
                    self.letters.letters.extend(claims);
                    self.letters.dead.replace(dead);
                    self.decoding.set_dead(self.letters.dead.clone());
                    return Ok(());
                }
                Err(e) => wait = waited(e, wait).await?,
            }
        }
    }

    async fn try_claim_letters(
        &mut self,
        from: &BTreeMap<TopicPartition, i64>,
    ) -> Result<(Claims, DeadOffsets)> {
        let commit_id = self.new_commit_id();
        let table = self.letter_table().await?;
        table.claim(commit_id, &self.config.name, from, &self.identity).await
    }

    async fn letter_table(&mut self) -> Result<Arc<DeadLetterTable>> {
        if let Some(table) = &self.letters.table {
            return Ok(Arc::clone(table));
        }
        let (handle, cpu) = (&self.handle, self.environment.cpu);
        let table = Arc::new(DeadLetterTable::open(handle, &self.config.dead_letters, cpu).await?);
        self.letters.table = Some(Arc::clone(&table));
        Ok(table)
    }

    /// Opens the table of letters before anything is read, so that what is wrong with it is told at once.
    pub(super) async fn open_letters(&mut self) -> Result<()> {
        if self.config.on_bad_message != OnBadMessage::DeadLetter {
            return Ok(());
        }
        let mut wait = FIRST_WAIT;
        loop {
            match self.letter_table().await {
                Ok(_) => return Ok(()),
                Err(e) => wait = waited(e, wait).await?,
            }
        }
    }

    /// The letters of a flush that is about to be committed.
    pub(super) fn letters_of(&mut self, flush: &mut Flush) -> Option<LettersFirst> {
        let letters = flush.letters.take();
        let table = self.letters.table.clone()?;
        if letters.is_empty() {
            return None;
        }
        let letters = Letters {
            commit_id: self.new_commit_id(),
            writer: self.config.name.clone(),
            letters,
            ranges: flush.ranges.iter().cloned().collect(),
            source: self.identity.clone(),
            guarantee: self.config.guarantee,
            claims: self.letters.letters.clone(),
            now_ms: (self.environment.now_ms)(),
        };
        Some(LettersFirst { table, letters })
    }

    /// How the rows of a flush are committed.
    pub(super) fn row_claims(&self) -> Option<Claims> {
        self.holds_claims().then(|| self.letters.rows.clone())
    }
}

/// Commits letters, then rows. Where the letters are overtaken so is the flush: its files were never sent.
pub(super) async fn commit(
    handle: TableHandle,
    letters: Option<LettersFirst>,
    rows: firn_table::commit::Flush,
    claims: Option<Claims>,
) -> Result<FlushOutcome> {
    if let Some(LettersFirst { table, letters }) = letters {
        let kept = table.append(letters).await;
        if !matches!(kept, Ok(FlushOutcome::Committed(_))) {
            delete(handle.stores(), &rows.files).await;
            return Ok(FlushOutcome::Overtaken { cursors: BTreeMap::new(), by: by(kept?) });
        }
    }
    match claims {
        Some(claims) => handle.append_claimed(rows, claims).await,
        None => handle.append(rows).await,
    }
}

fn by(outcome: FlushOutcome) -> Option<CommitId> {
    match outcome {
        FlushOutcome::Overtaken { by, .. } => by,
        FlushOutcome::Committed(_) => None,
    }
}

/// Waits where an error passes.
async fn waited(error: Error, wait: std::time::Duration) -> Result<std::time::Duration> {
    if !passes(error.kind()) {
        return Err(error);
    }
    tracing::warn!(%error, "dead letters cannot be claimed, trying again");
    tokio::time::sleep(wait).await;
    Ok((wait * 2).min(MAX_WAIT))
}
