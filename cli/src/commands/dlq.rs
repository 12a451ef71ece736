//! `firn dlq`: looks at dead letters, and makes rows of those that decode by now.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::{Args, Subcommand};
use firn_table::catalog::parse_table_ident;
use firn_table::commit::TableHandle;
use firn_table::ledger::{TopicPartition, WriterName};
use firn_writer::dead_letters::{Stored, default_name, read_letters, replay, replayed};
use serde_json::{Value, json};

use crate::args::TableArgs;
use crate::config::sources::Given;
use crate::context::Context;
use crate::exit::{ExitCode, Failure};
use crate::flags::{Flags, Sections};
use crate::render::listing::{Listing, Unit};
use crate::{units, writing};

/// What to do with dead letters.
#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    /// How many there are, by code and field, each with a sample
    List(ListArgs),
    /// One letter with everything that is known of it
    Show(ShowArgs),
    /// Decode them again with the table's schema of now, and append those that are rows
    ///
    /// All of a replay is one commit, which records the offsets together with the rows: a letter becomes a row once,
    /// however often it is replayed, and through crashes. The letters stay; `list` tells which were replayed.
    Replay(ReplayArgs),
}

impl DlqCommand {
    /// What the flags set.
    pub(crate) fn given(&self) -> Vec<Given> {
        let letters = |args: &LettersArgs| [args.table.given(), args.flags.given()].concat();
        match self {
            Self::List(args) => letters(&args.letters),
            Self::Show(args) => letters(&args.letters),
            Self::Replay(args) => letters(&args.letters),
        }
    }
}

/// Sections that say where letters are and how they are decoded.
#[derive(Debug)]
pub(crate) struct DlqSections;

impl Sections for DlqSections {
    const NAMES: &'static [&'static str] = &["dead-letters", "decode"];
}

/// Which letters: by the table that their messages were meant for.
#[derive(Debug, Args)]
pub(crate) struct LettersArgs {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    flags: Flags<DlqSections>,
    /// Whose letters [default: write.writer]
    #[arg(long, value_name = "NAME")]
    writer: Option<String>,
}

/// All letters.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    letters: LettersArgs,
}

/// Which letter.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    letters: LettersArgs,
    /// The message
    #[arg(long = "message", value_name = "TOPIC:PARTITION:OFFSET", value_parser = parse_message)]
    message: (TopicPartition, i64),
}

/// Which letters to replay.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    letters: LettersArgs,
}

fn parse_message(text: &str) -> Result<(TopicPartition, i64), String> {
    let parse = || {
        let (place, offset) = text.rsplit_once(':')?;
        let (topic, partition) = place.rsplit_once(':')?;
        let at = TopicPartition { topic: topic.to_owned(), partition: partition.parse().ok()? };
        Some((at, offset.parse().ok()?))
    };
    parse()
        .ok_or_else(|| "it is not of the form TOPIC:PARTITION:OFFSET, for instance events:0:4200".to_owned())
}

/// The tables of rows and of letters, and whose letters are meant.
struct Tables {
    rows: TableHandle,
    letters: TableHandle,
    writer: WriterName,
}

impl Tables {
    async fn open(args: &LettersArgs, context: &Context) -> anyhow::Result<Self> {
        let rows = context.open_table().await?;
        let ident = match context.settings.text("dead-letters.table") {
            Some(name) => parse_table_ident(name)?,
            None => default_name(rows.ident(), rows.branch()),
        };
        let (catalog, stores) = (Arc::clone(rows.catalog()), rows.stores().clone());
        let letters = TableHandle::open(catalog, stores, ident, "main").await?;
        let name = match &args.writer {
            Some(name) => name,
            None => context.settings.required("write.writer")?,
        };
        Ok(Self { rows, letters, writer: WriterName::new(name)? })
    }

    /// The letters, with whether each was replayed.
    async fn letters(&self) -> anyhow::Result<Vec<(Stored, bool)>> {
        let table = self.letters.table();
        let mut all = read_letters(self.letters.stores(), &table, i64::MIN).await?;
        all.retain(|stored| stored.writer == self.writer.as_str());
        all.sort_by(|a, b| {
            (&a.letter.partition, a.letter.offset).cmp(&(&b.letter.partition, b.letter.offset))
        });
        let done = replayed(&self.rows, &self.writer)?;
        let is_done = |stored: &Stored| {
            let at = &stored.letter.partition;
            done.contains(&at.topic, stored.topic_id.as_deref(), at.partition, stored.letter.offset)
        };
        Ok(all
            .into_iter()
            .map(|stored| (is_done(&stored), stored))
            .map(|(done, stored)| (stored, done))
            .collect())
    }
}

/// Runs it.
pub(crate) async fn run(command: &DlqCommand, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        DlqCommand::List(args) => list(&Tables::open(&args.letters, context).await?, context).await,
        DlqCommand::Show(args) => {
            show(&Tables::open(&args.letters, context).await?, &args.message, context).await
        }
        DlqCommand::Replay(args) => {
            replay_letters(&Tables::open(&args.letters, context).await?, context).await
        }
    }
}

async fn list(tables: &Tables, context: &Context) -> anyhow::Result<ExitCode> {
    let letters = tables.letters().await?;
    let mut groups: BTreeMap<(&str, &str), Vec<&(Stored, bool)>> = BTreeMap::new();
    for one in &letters {
        groups.entry((&one.0.letter.code, &one.0.letter.path)).or_default().push(one);
    }
    let mut listing = Listing::of(&[
        ("code", Unit::Plain),
        ("path", Unit::Plain),
        ("letters", Unit::Count),
        ("replayed", Unit::Count),
        ("expected", Unit::Plain),
        ("sample", Unit::Plain),
        ("message", Unit::Plain),
    ]);
    for ((code, path), letters) in groups {
        let sample = &letters[0].0.letter;
        let at = &sample.partition;
        listing.push(vec![
            json!(code),
            json!(path),
            json!(letters.len()),
            json!(letters.iter().filter(|(_, replayed)| *replayed).count()),
            json!(sample.expected),
            json!(sample.found),
            json!(format!("{}:{}:{}", at.topic, at.partition, sample.offset)),
        ]);
    }
    context.output.listing(&listing)?;
    Ok(ExitCode::Done)
}

async fn show(
    tables: &Tables,
    (at, offset): &(TopicPartition, i64),
    context: &Context,
) -> anyhow::Result<ExitCode> {
    let letters = tables.letters().await?;
    let found = letters.iter().find(|(s, _)| s.letter.partition == *at && s.letter.offset == *offset);
    let Some((stored, replayed)) = found else {
        let what =
            format!("offset {offset} of `{at}` is not in the dead letters of writer `{}`", tables.writer);
        return Err(Failure::usage(what).into());
    };
    let letter = &stored.letter;
    let headers: Vec<Value> = letter
        .headers
        .iter()
        .map(|(key, value)| json!({"key": key, "value": text(value.as_deref())}))
        .collect();
    let value = json!({
        "topic": letter.partition.topic,
        "partition": letter.partition.partition,
        "offset": letter.offset,
        "timestamp_ms": letter.timestamp_ms,
        "key": text(letter.key.as_deref()),
        "value": text(letter.value.as_deref()),
        "headers": headers,
        "schema_id": letter.schema_id,
        "code": letter.code,
        "path": letter.path,
        "expected": letter.expected,
        "found": letter.found,
        "reason": letter.reason,
        "writer": stored.writer,
        "table": stored.table,
        "topic_id": stored.topic_id,
        "dead_at_ms": stored.dead_at_ms,
        "replayed": replayed,
    });
    context.output.value(&value, human)?;
    Ok(ExitCode::Done)
}

/// Text as it is; bytes that are no text in hexadecimal digits.
fn text(bytes: Option<&[u8]>) -> Value {
    let Some(bytes) = bytes else { return Value::Null };
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!(format!("0x{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())),
    }
}

/// One line for each field that says something.
fn human(value: &Value) -> String {
    let fields = value.as_object().into_iter().flatten();
    let said = fields.filter(|(_, value)| !value.is_null() && *value != "" && **value != json!([]));
    let line = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{name:<13} {value}\n")
    };
    said.map(line).collect()
}

async fn replay_letters(tables: &Tables, context: &Context) -> anyhow::Result<ExitCode> {
    let options = writing::decode_options(&context.settings)?;
    let report = replay(&tables.rows, &tables.letters, &tables.writer, &options).await?;
    let value = json!({
        "replayed": report.replayed,
        "still_dead": report.still_dead,
        "replayed_before": report.replayed_before,
        "pending": report.pending,
        "snapshot_id": report.snapshot_id,
    });
    context.output.value(&value, |_| {
        format!(
            "{} letters became rows; {} still cannot be decoded, {} were replayed before, {} are not passed by the \
             cursor yet\n",
            units::format_count(report.replayed),
            units::format_count(report.still_dead),
            units::format_count(report.replayed_before),
            units::format_count(report.pending),
        )
    })?;
    Ok(ExitCode::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_named_by_topic_partition_and_offset() {
        let at = TopicPartition { topic: "a:b".to_owned(), partition: 2 };
        assert_eq!(parse_message("a:b:2:17"), Ok((at, 17)));
        assert!(parse_message("a:17").is_err());
        assert!(parse_message("a:x:17").is_err());
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_digits() {
        assert_eq!(text(Some(b"{}")), json!("{}"));
        assert_eq!(text(Some(&[0xff, 0x00])), json!("0xff00"));
        assert_eq!(text(None), Value::Null);
    }
}
