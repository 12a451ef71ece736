//! `firn write`: streams topics into a table until it is told to stop.

use std::sync::Arc;

use clap::Args;
use firn_table::ErrorKind;
use firn_table::catalog::OpenCatalog;
use firn_table::commit::TableHandle;
use firn_writer::decode::DecodeOptions;
use firn_writer::{WriterConfig, run as run_writer};
use iceberg::TableIdent;
use serde_json::json;

use crate::args::TableArgs;
use crate::config::sources::Given;
use crate::context::Context;
use crate::creation;
use crate::dry_run;
use crate::events::{self, EventPrinter};
use crate::exit::ExitCode;
use crate::flags::{Flags, Sections};
use crate::telemetry::Telemetry;
use crate::units;
use crate::writing;

/// How to write.
#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    flags: Flags<WriteSections>,
    /// Only shows what would become of this many messages
    #[arg(long, value_name = "N", requires = "dry_run", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    /// With --sample: reads and converts, writes nothing
    #[arg(long, requires = "sample")]
    dry_run: bool,
}

/// Sections that a writer reads.
#[derive(Debug)]
pub(crate) struct WriteSections;

impl Sections for WriteSections {
    const NAMES: &'static [&'static str] = &["kafka", "write", "dead-letters", "create", "decode"];
}

impl WriteArgs {
    /// What the flags set.
    pub(crate) fn given(&self) -> Vec<Given> {
        [self.table.given(), self.flags.given()].concat()
    }
}

/// Opens or creates the table, streams, and sums up.
pub(crate) async fn run(args: &WriteArgs, context: &Context) -> anyhow::Result<ExitCode> {
    if let (Some(messages), true) = (args.sample, args.dry_run) {
        return dry_run::run(messages as usize, context).await;
    }
    let mut config = writing::writer_config(&context.settings)?;
    config.validate()?;
    let ident = context.table_ident()?;
    let printer = EventPrinter::start(context);
    let telemetry = Telemetry::start(&context.settings, Arc::new(printer.observer())).await?;
    let catalog = context.open_catalog().await?;
    let handle = open_or_create(&catalog, &ident, &mut config, context).await?;
    warn_about_retention(&handle);

    let started = std::time::Instant::now();
    let result = run_writer(config, handle, telemetry.observer(), context.stop.clone()).await;
    telemetry.finish().await;
    let summary = printer.finish();
    let report = result?;
    let seconds = started.elapsed().as_secs_f64();
    let value = json!({
        "event": "finished",
        "rows": report.rows,
        "rejected": report.rejected,
        "dead_letters": report.dead_letters,
        "holes": report.holes,
        "files": report.files,
        "bytes": report.bytes,
        "commits": report.commits,
        "overtaken": report.overtaken,
        "expired_snapshots": report.expired_snapshots,
        "peak_memory_bytes": report.peak_memory_bytes,
        "seconds": seconds,
        "latency_ms": summary.latency(),
    });
    context.output.event(&value, |_| {
        format!(
            "\n{} rows in {} commits, {} files, {}; {} rejected; {}{}\n",
            units::format_count(report.rows),
            units::format_count(report.commits),
            units::format_count(report.files),
            units::format_bytes(report.bytes),
            units::format_count(report.rejected),
            if report.rows == 0 {
                String::new()
            } else {
                format!("latency {}; ", events::latency_text(&summary.latency()))
            },
            units::format_millis(seconds * 1_000.0),
        )
    })?;
    Ok(ExitCode::Done)
}

/// Opens the table; where it does not exist and `--create` was given, makes it first.
async fn open_or_create(
    catalog: &OpenCatalog,
    ident: &TableIdent,
    config: &mut WriterConfig,
    context: &Context,
) -> anyhow::Result<TableHandle> {
    let branch = context.settings.required("table.branch")?;
    let open =
        || TableHandle::open(Arc::clone(&catalog.catalog), catalog.stores.clone(), ident.clone(), branch);
    match open().await {
        Err(error) if error.kind() == ErrorKind::NotFound && context.settings.flag("create.enabled") => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(anyhow::Error::new(error).context(format!(
                "table `{ident}` is not there; --create makes it, with --schema FILE or --infer N"
            )));
        }
        opened => return Ok(opened?),
    }
    let created = creation::create(catalog, ident, config, context).await?;
    config.decode = writing::with_inferred(std::mem::take::<DecodeOptions>(&mut config.decode), created);
    Ok(open().await?)
}

/// A commit each second adds snapshots that only expiry removes: says so where the table keeps them for long.
fn warn_about_retention(handle: &TableHandle) {
    const HOURS_WORTH_A_WARNING: i64 = 6;
    const DEFAULT_AGE_MS: i64 = 5 * 86_400_000;
    let table = handle.table();
    let age_ms = table
        .metadata()
        .properties()
        .get("history.expire.max-snapshot-age-ms")
        .and_then(|text| text.parse::<i64>().ok())
        .unwrap_or(DEFAULT_AGE_MS);
    let hours = age_ms / 3_600_000;
    if hours >= HOURS_WORTH_A_WARNING {
        tracing::warn!(
            table = %table.identifier(),
            "the table keeps snapshots for {hours} h: one commit per second makes {} of them, about {} of metadata \
             that is written with every commit; set history.expire.max-snapshot-age-ms=3600000 for a table that is \
             streamed into",
            units::format_count(hours.unsigned_abs() * 3_600),
            units::format_bytes(hours.unsigned_abs() * 3_600 * BYTES_PER_SNAPSHOT),
        );
    }
}

/// What a snapshot adds to the metadata file (DESIGN 4.8).
const BYTES_PER_SNAPSHOT: u64 = 1_600;
