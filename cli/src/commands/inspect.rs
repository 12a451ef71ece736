//! `firn inspect`: the layout of a table, from its metadata alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Args, Subcommand};
use firn_compactor::{layout_session, sql};
use firn_table::commit::TableHandle;
use firn_table::layout;
use serde::Serialize;

use crate::args::TableArgs;
use crate::config::sources::Given;
use crate::context::Context;
use crate::exit::{ExitCode, Failure};
use crate::output::Format;
use crate::render::batches;
use crate::render::histogram::{self, Sizes};
use crate::render::listing::{Listing, Unit};

/// What to look at.
#[derive(Debug, Subcommand)]
pub(crate) enum InspectCommand {
    /// The live data files
    Files(RowsArgs),
    /// Partitions with their files, bytes and rows
    Partitions(RowsArgs),
    /// Snapshots, oldest first
    Snapshots(RowsArgs),
    /// The manifests of a snapshot
    Manifests(RowsArgs),
    /// Which Kafka offsets the table holds
    Offsets(RowsArgs),
    /// File sizes as a picture
    Histogram(HistogramArgs),
    /// Any query over files, partitions, manifests, snapshots and offsets
    Sql(SqlArgs),
}

impl InspectCommand {
    /// What the flags set.
    pub(crate) fn given(&self) -> Vec<Given> {
        match self {
            Self::Files(args)
            | Self::Partitions(args)
            | Self::Snapshots(args)
            | Self::Manifests(args)
            | Self::Offsets(args) => args.table.given(),
            Self::Histogram(args) => args.table.given(),
            Self::Sql(args) => args.table.given(),
        }
    }
}

/// Rows of one of the layout's tables.
#[derive(Debug, Args)]
pub(crate) struct RowsArgs {
    #[command(flatten)]
    table: TableArgs,
    /// A snapshot instead of the branch's head
    #[arg(long, value_name = "ID")]
    snapshot: Option<i64>,
    /// Only rows for which this SQL condition holds
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// At most this many rows
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

/// File sizes.
#[derive(Debug, Args)]
pub(crate) struct HistogramArgs {
    #[command(flatten)]
    table: TableArgs,
    /// A snapshot instead of the branch's head
    #[arg(long, value_name = "ID")]
    snapshot: Option<i64>,
    /// One histogram for the table, or one per partition
    #[arg(long, value_enum, default_value_t)]
    by: By,
}

/// How files are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// All files of the table.
    #[default]
    Table,
    /// Those of each partition.
    Partition,
}

/// A query.
#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// The query, for instance: select partition, count(*) from files group by partition
    #[arg(value_name = "QUERY")]
    query: String,
    #[command(flatten)]
    table: TableArgs,
    /// A snapshot instead of the branch's head
    #[arg(long, value_name = "ID")]
    snapshot: Option<i64>,
}

/// One of the layout's tables, and how its rows are shown.
struct Rows {
    table: &'static str,
    /// The columns that people get; programs get all.
    human: &'static str,
    order: &'static str,
}

const FILES: Rows = Rows {
    table: "files",
    human: "partition, file_name, file_size_bytes, record_count, sequence_number, added_at",
    order: "partition, file_path",
};
const PARTITIONS: Rows = Rows {
    table: "partitions",
    human: "partition, spec_id, file_count, record_count, total_bytes, mean_file_bytes, min_file_bytes, \
            max_file_bytes, last_added_at",
    order: "partition, spec_id",
};
const SNAPSHOTS: Rows = Rows {
    table: "snapshots",
    human: "sequence_number, snapshot_id, committed_at, operation, added_files, deleted_files, added_records, \
            total_files, total_records, total_bytes, refs",
    order: "sequence_number",
};
const MANIFESTS: Rows = Rows {
    table: "manifests",
    human: "sequence_number, content, spec_id, manifest_bytes, added_files, existing_files, deleted_files, \
            manifest_path",
    order: "sequence_number, manifest_path",
};
const OFFSETS: Rows = Rows {
    table: "offsets",
    human: "branch, writer, topic, \"partition\", start, next, \"rows\", rejected, holes, gaps",
    order: "branch, writer, topic, \"partition\"",
};

/// Prints it.
pub(crate) async fn run(command: &InspectCommand, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        InspectCommand::Files(args) => rows(&FILES, args, context).await,
        InspectCommand::Partitions(args) => rows(&PARTITIONS, args, context).await,
        InspectCommand::Snapshots(args) => rows(&SNAPSHOTS, args, context).await,
        InspectCommand::Manifests(args) => rows(&MANIFESTS, args, context).await,
        InspectCommand::Offsets(args) => rows(&OFFSETS, args, context).await,
        InspectCommand::Histogram(args) => histogram(args, context).await,
        InspectCommand::Sql(args) => query(&args.query, args.snapshot, context).await,
    }
}

async fn rows(rows: &Rows, args: &RowsArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let columns = if context.output.format() == Format::Human { rows.human } else { "*" };
    let mut text = format!("select {columns} from {}", rows.table);
    if let Some(condition) = &args.condition {
        let _ = write!(text, " where ({condition})");
    }
    let _ = write!(text, " order by {}", rows.order);
    if let Some(limit) = args.limit {
        let _ = write!(text, " limit {limit}");
    }
    query(&text, args.snapshot, context).await
}

async fn query(text: &str, snapshot: Option<i64>, context: &Context) -> anyhow::Result<ExitCode> {
    let handle = context.open_table().await?;
    let session = layout_session(&handle.table(), snapshot_id(&handle, snapshot)?).await?;
    let batches = sql(&session, text).await?;
    match batches.first() {
        Some(first) => context.output.listing(&batches::listing(&first.schema(), &batches)?)?,
        None => context.output.listing(&Listing::of(&[("rows", Unit::Count)]))?,
    }
    Ok(ExitCode::Done)
}

/// The snapshot that was asked for, or the branch's head; nothing where the branch has no snapshot yet.
pub(crate) fn snapshot_id(handle: &TableHandle, asked: Option<i64>) -> Result<Option<i64>, Failure> {
    let table = handle.table();
    let metadata = table.metadata();
    match asked {
        Some(id) if metadata.snapshot_by_id(id).is_none() => Err(Failure::configuration(format!(
            "snapshot `{id}` is not in the table: it was expired or never was; `firn inspect snapshots` lists them"
        ))),
        Some(id) => Ok(Some(id)),
        None => Ok(metadata.snapshot_for_ref(handle.branch()).map(|snapshot| snapshot.snapshot_id())),
    }
}

/// The files of the table or of one partition.
#[derive(Debug, Serialize)]
struct Part {
    /// The partition; absent for the table as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    #[serde(flatten)]
    sizes: Sizes,
}

async fn histogram(args: &HistogramArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let handle = context.open_table().await?;
    let files = match snapshot_id(&handle, args.snapshot)? {
        Some(id) => layout::live(&handle.table(), id).await?.files,
        None => Vec::new(),
    };
    let mut parts: BTreeMap<Option<String>, Vec<u64>> = BTreeMap::new();
    for file in &files {
        let partition = (args.by == By::Partition).then(|| file.partition_path.clone());
        parts.entry(partition).or_default().push(file.file.file_size_in_bytes());
    }
    if parts.is_empty() {
        parts.insert(None, Vec::new());
    }
    let parts: Vec<Part> =
        parts.into_iter().map(|(partition, sizes)| Part { partition, sizes: Sizes::of(sizes) }).collect();
    if context.output.format() == Format::Csv {
        context.output.listing(&buckets(&parts))?;
        return Ok(ExitCode::Done);
    }
    let name = handle.table().identifier().to_string();
    match args.by {
        By::Table => context.output.value(&parts.first(), |_| picture(&name, &parts))?,
        By::Partition => context.output.value(&parts, |parts| picture(&name, parts))?,
    }
    Ok(ExitCode::Done)
}

/// The width of pictures: fits a terminal of 80 characters.
pub(crate) const WIDTH: usize = 78;

fn picture(name: &str, parts: &[Part]) -> String {
    let mut out = String::new();
    for part in parts {
        let title = match part.partition.as_deref() {
            None => name.to_owned(),
            Some("") => "(unpartitioned)".to_owned(),
            Some(partition) => partition.to_owned(),
        };
        let _ = write!(
            out,
            "{title}: {}\n{}",
            part.sizes.summary(),
            histogram::lines(&part.sizes.histogram, WIDTH)
        );
    }
    out
}

fn buckets(parts: &[Part]) -> Listing {
    let mut listing = Listing::of(&[
        ("partition", Unit::Plain),
        ("from_bytes", Unit::Bytes),
        ("to_bytes", Unit::Bytes),
        ("files", Unit::Count),
        ("bytes", Unit::Bytes),
    ]);
    for part in parts {
        for bucket in &part.sizes.histogram.buckets {
            listing.push(vec![
                part.partition.clone().into(),
                bucket.from_bytes.into(),
                bucket.to_bytes.into(),
                bucket.files.into(),
                bucket.bytes.into(),
            ]);
        }
    }
    listing
}
