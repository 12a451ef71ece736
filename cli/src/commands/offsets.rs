//! `firn offsets`: the way out of every stop of a writer.

use std::collections::BTreeMap;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use firn_table::commit::{CursorChange, SourceIdentity, TableHandle};
use firn_table::ledger::{CommitId, Cursor, Ledger, TopicPartition, WriterName};
use serde_json::json;
use uuid::Uuid;

use crate::args::TableArgs;
use crate::config::sources::Given;
use crate::context::Context;
use crate::exit::{ExitCode, Failure};
use crate::flags::{Flags, Sections};
use crate::render::listing::{Listing, Unit};
use crate::writing;

/// What to do with the offsets.
#[derive(Debug, Subcommand)]
pub(crate) enum OffsetsCommand {
    /// The cursors of all writers
    Show(ShowArgs),
    /// Set cursors by hand, in a commit of its own
    ///
    /// Forward, the offsets in between are recorded as a gap. Backward, or where there was no cursor, the record
    /// begins anew at the given offset: rows that are in the table from there on will be there twice, unless they
    /// were removed before.
    Set(SetArgs),
    /// Take over the cursors of another writer name, or of a consumer group
    Adopt(AdoptArgs),
}

impl OffsetsCommand {
    /// What the flags set.
    pub(crate) fn given(&self) -> Vec<Given> {
        match self {
            Self::Show(args) => args.table.given(),
            Self::Set(args) => args.table.given(),
            Self::Adopt(args) => [args.table.given(), args.kafka.given()].concat(),
        }
    }
}

/// Nothing but the table.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    table: TableArgs,
}

/// The new cursors.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    table: TableArgs,
    /// Whose cursors [default: write.writer]
    #[arg(long, value_name = "NAME")]
    writer: Option<String>,
    /// A cursor: the next offset to read
    #[arg(long = "cursor", value_name = "TOPIC:PARTITION=OFFSET", required = true, value_parser = parse_cursor)]
    cursors: Vec<(TopicPartition, i64)>,
    /// Forget all other cursors of the writer
    #[arg(long)]
    replace_all: bool,
    /// Change nothing; show what would be set
    #[arg(long)]
    dry_run: bool,
}

/// Where the cursors come from.
#[derive(Debug, Args)]
pub(crate) struct AdoptArgs {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    kafka: Flags<KafkaSection>,
    /// Who takes over [default: write.writer]
    #[arg(long, value_name = "NAME")]
    writer: Option<String>,
    /// The writer name whose cursors are taken over
    #[arg(long, value_name = "NAME", required_unless_present = "from_group", conflicts_with = "from_group")]
    from_writer: Option<String>,
    /// The consumer group whose committed offsets become cursors
    #[arg(long, value_name = "GROUP")]
    from_group: Option<String>,
    /// Change nothing; show what would be set
    #[arg(long)]
    dry_run: bool,
}

/// Section `[kafka]`.
#[derive(Debug)]
pub(crate) struct KafkaSection;

impl Sections for KafkaSection {
    const NAMES: &'static [&'static str] = &["kafka"];
}

fn parse_cursor(text: &str) -> Result<(TopicPartition, i64), String> {
    let parse = || {
        let (place, offset) = text.rsplit_once('=')?;
        let (topic, partition) = place.rsplit_once(':')?;
        let partition = partition.parse::<i32>().ok().filter(|partition| *partition >= 0)?;
        let offset = offset.parse::<i64>().ok().filter(|offset| *offset >= 0)?;
        Some((TopicPartition { topic: topic.to_owned(), partition }, offset))
    };
    parse()
        .ok_or_else(|| "it is not of the form TOPIC:PARTITION=OFFSET, for instance events:0=4200".to_owned())
}

/// Runs it.
pub(crate) async fn run(command: &OffsetsCommand, context: &Context) -> anyhow::Result<ExitCode> {
    let handle = context.open_table().await?;
    match command {
        OffsetsCommand::Show(_) => show(&handle, context),
        OffsetsCommand::Set(args) => set(args, &handle, context).await,
        OffsetsCommand::Adopt(args) => adopt(args, &handle, context).await,
    }
}

fn show(handle: &TableHandle, context: &Context) -> anyhow::Result<ExitCode> {
    let mut listing = cursor_listing();
    for (branch, writer, ledger) in Ledger::read_all(handle.table().metadata().properties())? {
        push_cursors(&mut listing, &branch, &writer, &ledger.cursors);
    }
    context.output.listing(&listing)?;
    Ok(ExitCode::Done)
}

async fn set(args: &SetArgs, handle: &TableHandle, context: &Context) -> anyhow::Result<ExitCode> {
    let writer = writer_name(args.writer.as_deref(), context)?;
    let there = ledger(handle, &writer)?.map(|ledger| ledger.cursors).unwrap_or_default();
    let cursors =
        args.cursors.iter().map(|(place, next)| (place.clone(), moved(there.get(place), *next))).collect();
    let change =
        CursorChange { commit_id: commit_id(), writer, cursors, source: None, replace_all: args.replace_all };
    commit(change, args.dry_run, handle, context).await
}

/// The cursor after a person moved it to `next`.
///
/// Forward, what lies between is a gap. Otherwise what the cursor says about rows is no longer known to be true of
/// `start..next`, so it begins anew.
fn moved(there: Option<&Cursor>, next: i64) -> Cursor {
    match there {
        Some(cursor) if cursor.next <= next => {
            Cursor { next, gaps: cursor.gaps + cursor.next.abs_diff(next), ..cursor.clone() }
        }
        _ => fresh(next),
    }
}

fn fresh(next: i64) -> Cursor {
    Cursor { start: next, next, rows: 0, rejected: 0, holes: 0, gaps: 0 }
}

async fn adopt(args: &AdoptArgs, handle: &TableHandle, context: &Context) -> anyhow::Result<ExitCode> {
    let writer = writer_name(args.writer.as_deref(), context)?;
    let there = ledger(handle, &writer)?.map(|ledger| ledger.cursors).unwrap_or_default();
    let (cursors, source) = match (&args.from_writer, &args.from_group) {
        (Some(from), _) => of_writer(from, handle)?,
        (None, Some(group)) => of_group(group, context).await?,
        (None, None) => return Err(Failure::usage("neither --from-writer nor --from-group is given").into()),
    };
    if let Some(place) = cursors.keys().find(|place| there.contains_key(place)) {
        return Err(Failure::configuration(format!(
            "writer `{writer}` has a cursor for {place} already, so nothing was taken over; set single cursors with \
             `firn offsets set`"
        ))
        .into());
    }
    let change =
        CursorChange { commit_id: commit_id(), writer, cursors, source: Some(source), replace_all: false };
    commit(change, args.dry_run, handle, context).await
}

type Adopted = (BTreeMap<TopicPartition, Cursor>, SourceIdentity);

fn of_writer(from: &str, handle: &TableHandle) -> anyhow::Result<Adopted> {
    let from = WriterName::new(from)?;
    let found = ledger(handle, &from)?.ok_or_else(|| {
        Failure::configuration(format!(
            "writer `{from}` has no cursors on branch `{}`, so nothing was taken over; `firn offsets show` lists all",
            handle.branch()
        ))
    })?;
    let Ledger { cluster_id, topic_ids, cursors, .. } = found;
    Ok((cursors, SourceIdentity { cluster_id, topic_ids }))
}

async fn of_group(group: &str, context: &Context) -> anyhow::Result<Adopted> {
    let kafka = writing::kafka_properties(&context.settings)?;
    let topics = writing::topics(&context.settings)?;
    let (offsets, source) =
        firn_writer::kafka::group::committed_offsets(&kafka, group, &topics, writing::REQUEST_TIMEOUT)
            .await
            .with_context(|| format!("the offsets of group `{group}` cannot be read"))?;
    if offsets.is_empty() {
        return Err(Failure::configuration(format!(
            "group `{group}` has committed no offset of topic `{}`, so nothing was taken over",
            topics.join("`, `")
        ))
        .into());
    }
    Ok((offsets.into_iter().map(|(place, next)| (place, fresh(next))).collect(), source))
}

async fn commit(
    change: CursorChange,
    dry_run: bool,
    handle: &TableHandle,
    context: &Context,
) -> anyhow::Result<ExitCode> {
    let mut listing = cursor_listing();
    push_cursors(&mut listing, handle.branch(), &change.writer, &change.cursors);
    if !dry_run {
        let committed = handle.set_cursors(change).await?;
        tracing::info!(snapshot_id = committed.snapshot_id, "cursors set");
    }
    context.output.listing(&listing)?;
    Ok(ExitCode::Done)
}

fn cursor_listing() -> Listing {
    Listing::of(&[
        ("branch", Unit::Plain),
        ("writer", Unit::Plain),
        ("topic", Unit::Plain),
        ("partition", Unit::Id),
        ("start", Unit::Id),
        ("next", Unit::Id),
        ("rows", Unit::Count),
        ("rejected", Unit::Count),
        ("holes", Unit::Count),
        ("gaps", Unit::Count),
    ])
}

fn push_cursors(
    listing: &mut Listing,
    branch: &str,
    writer: &WriterName,
    cursors: &BTreeMap<TopicPartition, Cursor>,
) {
    for (place, cursor) in cursors {
        listing.push(vec![
            json!(branch),
            json!(writer.as_str()),
            json!(place.topic),
            json!(place.partition),
            json!(cursor.start),
            json!(cursor.next),
            json!(cursor.rows),
            json!(cursor.rejected),
            json!(cursor.holes),
            json!(cursor.gaps),
        ]);
    }
}

fn ledger(handle: &TableHandle, writer: &WriterName) -> anyhow::Result<Option<Ledger>> {
    Ok(Ledger::read(handle.table().metadata().properties(), handle.branch(), writer)?)
}

fn writer_name(given: Option<&str>, context: &Context) -> anyhow::Result<WriterName> {
    let name = match given {
        Some(name) => name,
        None => context.settings.required("write.writer")?,
    };
    Ok(WriterName::new(name)?)
}

fn commit_id() -> CommitId {
    CommitId { instance: Uuid::now_v7(), counter: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_from_text() {
        let place = TopicPartition { topic: "a:b".to_owned(), partition: 3 };
        assert_eq!(parse_cursor("a:b:3=42"), Ok((place, 42)));
        for text in ["events", "events:0", "events=1", "events:x=1", "events:0=-1", "events:-1=1"] {
            assert!(parse_cursor(text).is_err(), "{text}");
        }
    }

    fn balanced(cursor: &Cursor) -> bool {
        let counted = cursor.rows + cursor.rejected + cursor.holes + cursor.gaps;
        i64::try_from(counted) == Ok(cursor.next - cursor.start)
    }

    #[test]
    fn a_cursor_that_is_moved_stays_balanced() {
        let there = Cursor { start: 10, next: 100, rows: 85, rejected: 3, holes: 2, gaps: 0 };
        assert!(balanced(&there));
        let forward = moved(Some(&there), 150);
        assert_eq!((forward.start, forward.next, forward.gaps, forward.rows), (10, 150, 50, 85));
        let backward = moved(Some(&there), 40);
        assert_eq!((backward.start, backward.next, backward.rows), (40, 40, 0));
        assert_eq!(moved(Some(&there), 100), there);
        for cursor in [forward, backward, moved(None, 7)] {
            assert!(balanced(&cursor), "{cursor:?}");
        }
    }
}
