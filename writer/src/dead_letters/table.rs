//! The table of dead letters: opened or made, claimed, appended to.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use firn_table::catalog::OpenCatalog;
use firn_table::commit::{Claim, Flush, FlushOutcome, Guarantee, SourceIdentity, TableHandle};
use firn_table::files::{FileFormat, FileTarget, NewFile, data_file_location, encode_file, upload};
use firn_table::ledger::{Claims, CommitId, OffsetRange, TopicPartition, WriterName};
use iceberg::TableIdent;
use iceberg::spec::Struct;
use iceberg::table::Table;

use super::schema::{dead_letter_schema, to_batch};
use super::{DeadLetter, DeadOffsets};
use crate::config::DeadLetters;
use crate::create::{NewTable, create_table};
use crate::pipeline::{Cpu, on_cpu};
use crate::{Error, ErrorKind, Result};

/// The property of a table of dead letters that names the table whose messages they were.
const OF: &str = "firn.dead-letters-of";

/// Where letters come from, the same for all of a commit.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub writer: String,
    pub table: String,
    pub topic_ids: BTreeMap<String, String>,
    pub now_ms: i64,
}

/// The table of dead letters as one writer process knows it.
#[derive(Debug, Clone)]
pub(crate) struct DeadLetterTable {
    handle: TableHandle,
    format: FileFormat,
    of: String,
    cpu: Cpu,
}

/// Letters of one flush, to be appended before its rows.
#[derive(Debug)]
pub(crate) struct Letters {
    pub commit_id: CommitId,
    pub writer: WriterName,
    pub letters: Vec<DeadLetter>,
    /// The ranges of the flush.
    pub ranges: Vec<OffsetRange>,
    pub source: SourceIdentity,
    pub guarantee: Guarantee,
    pub claims: Claims,
    pub now_ms: i64,
}

/// The name of the table of dead letters where none is configured: `<table>_dlq`, or `<table>_<branch>_dlq` off main.
#[must_use]
pub fn default_name(of: &TableIdent, branch: &str) -> TableIdent {
    let name =
        if branch == "main" { format!("{}_dlq", of.name()) } else { format!("{}_{branch}_dlq", of.name()) };
    TableIdent::new(of.namespace().clone(), name)
}

impl DeadLetterTable {
    /// Opens the table of dead letters of `rows`, or makes it.
    pub(crate) async fn open(rows: &TableHandle, config: &DeadLetters, cpu: Cpu) -> Result<Self> {
        let ident = config.table.clone().unwrap_or_else(|| default_name(rows.ident(), rows.branch()));
        let of = format!("{}@{}", rows.ident(), rows.branch());
        let open =
            || TableHandle::open(Arc::clone(rows.catalog()), rows.stores().clone(), ident.clone(), "main");
        let handle = match open().await {
            Err(error) if error.kind() == ErrorKind::NotFound && config.create => {
                let catalog =
                    OpenCatalog { catalog: Arc::clone(rows.catalog()), stores: rows.stores().clone() };
                make(&catalog, &ident, &of).await?;
                open().await?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let hint =
                    format!("the table of dead letters `{ident}` is not there: create it, or allow it");
                return Err(error.context(hint));
            }
            opened => opened?,
        };
        let handle = handle.with_limits(rows.limits().clone()).with_surroundings(rows.surroundings().clone());
        check_of(&handle, &of)?;
        let format = FileFormat::of_table(&handle.table())?;
        Ok(Self { handle, format, of, cpu })
    }

    /// Claims partitions and tells which of their offsets, from these on, are dead already.
    pub(crate) async fn claim(
        &self,
        commit_id: CommitId,
        writer: &WriterName,
        from: &BTreeMap<TopicPartition, i64>,
        identity: &SourceIdentity,
    ) -> Result<(Claims, DeadOffsets)> {
        let claim = Claim {
            commit_id,
            writer: writer.clone(),
            partitions: from.keys().cloned().collect(),
            source: SourceIdentity::default(),
        };
        let (claims, committed) = self.handle.claim(claim).await?;
        let dead = DeadOffsets::read(self.handle.stores(), &committed.table, from, identity).await?;
        Ok((claims, dead))
    }

    /// Appends letters, exactly once under their claims. Trouble with the store is waited out.
    pub(crate) async fn append(&self, all: Letters) -> Result<FlushOutcome> {
        let Letters { commit_id, writer, letters, ranges, source, guarantee, claims, now_ms } = all;
        let ranges = covering(&letters, &ranges);
        let (topic_ids, table) = (source.topic_ids.clone(), self.of.clone());
        let origin = Origin { writer: writer.to_string(), table, topic_ids, now_ms };
        let format = self.format.clone();
        let encoded = on_cpu(self.cpu, move || {
            let batch = to_batch(format.arrow_schema(), &letters, &origin)?;
            encode_file(&format, &[batch])
        });
        let Some(encoded) = encoded.await?? else {
            return Err(Error::new(ErrorKind::Internal, "dead letters have no file"));
        };
        let table = self.handle.table();
        let target = target(&table, &format!("{writer}-{commit_id}-dlq.parquet"))?;
        let file = self.upload(&target, encoded).await?;
        let files = vec![file];
        self.handle
            .append_letters(Flush { commit_id, writer, ranges, files, source, guarantee }, claims)
            .await
    }

    async fn upload(&self, target: &FileTarget, encoded: firn_table::files::EncodedFile) -> Result<NewFile> {
        let mut wait = Duration::from_millis(50);
        loop {
            match upload(self.handle.stores(), target, encoded.clone()).await {
                Err(e) if e.kind() == ErrorKind::Unavailable => {
                    tracing::warn!(location = target.location, error = %e, "dead letters are not stored yet");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(Duration::from_secs(5));
                }
                done => return done,
            }
        }
    }
}

fn target(table: &Table, name: &str) -> Result<FileTarget> {
    let spec = Arc::clone(table.metadata().default_partition_spec());
    if !spec.is_unpartitioned() {
        let message = format!(
            "the table of dead letters `{}` is partitioned: firn writes them unpartitioned. Name another table",
            table.identifier()
        );
        return Err(Error::new(ErrorKind::Configuration, message));
    }
    let partition = Struct::empty();
    let location = data_file_location(table, &spec, &partition, name)?;
    Ok(FileTarget { spec, partition, location })
}

/// Of the ranges of a flush, those with letters, with how many each has.
fn covering(letters: &[DeadLetter], ranges: &[OffsetRange]) -> Vec<OffsetRange> {
    let mut found: BTreeMap<&TopicPartition, u64> = BTreeMap::new();
    letters.iter().for_each(|letter| *found.entry(&letter.partition).or_default() += 1);
    let of_range = |range: &OffsetRange| {
        let rows = *found.get(&range.partition)?;
        let holes = range.len().saturating_sub(rows);
        Some(OffsetRange { rows, rejected: 0, holes, ..range.clone() })
    };
    ranges.iter().filter_map(of_range).collect()
}

async fn make(catalog: &OpenCatalog, ident: &TableIdent, of: &str) -> Result<()> {
    let properties = HashMap::from([(OF.to_owned(), of.to_owned())]);
    let new = NewTable { schema: dead_letter_schema()?, partition: None, location: None, properties };
    match create_table(catalog, ident, new).await {
        // Another process of this writer was faster.
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

fn check_of(handle: &TableHandle, of: &str) -> Result<()> {
    let table = handle.table();
    match table.metadata().properties().get(OF) {
        Some(named) if named != of => Err(Error::new(
            ErrorKind::Configuration,
            format!(
                "table `{}` holds the dead letters of `{named}`, not those of `{of}`: each table needs its own, since \
                 offsets of both would be mixed up. Name another one with `dead-letters.table`",
                handle.ident()
            ),
        )),
        _ => Ok(()),
    }
}
