//! `firn write --sample N --dry-run`: what the writer would make of real messages. Nothing is written or created.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use firn_table::ErrorKind;
use firn_table::catalog::{CatalogOptions, IfMissing, OpenCatalog, open_catalog};
use firn_table::commit::TableHandle;
use firn_table::files::FileFormat;
use firn_writer::WriterConfig;
use firn_writer::kafka::sample::{SampleLimits, sample_messages};
use firn_writer::preview::{Flushes, Preview, Target, preview};
use iceberg::TableIdent;
use iceberg::spec::{PartitionSpec, Schema, SortOrder, UnboundPartitionSpec};
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::{ExitCode, Failure};
use crate::{creation, units, writing};

/// Partitions that people are shown one by one.
const MAX_SHOWN: usize = 20;

/// Reads, converts, prints.
pub(crate) async fn run(messages: usize, context: &Context) -> anyhow::Result<ExitCode> {
    let mut config = writing::writer_config(&context.settings)?;
    config.validate()?;
    let ident = context.table_ident()?;
    let target = match open(&ident, context).await? {
        Some(handle) => Target::of_table(&handle.table())?,
        None => designed(&ident, &mut config, context).await?,
    };
    let limits = SampleLimits { messages, ..SampleLimits::default() };
    let batches = sample_messages(&config.kafka, &config.topics, limits).await?;
    let preview = preview(&target, &config, &batches)?;
    let schema = target.format.schema();
    let value = document(&ident, schema, &target.spec, &preview);
    context.output.value(&value, |_| human(&ident, schema, &target.spec, &preview))?;
    Ok(if preview.rejects.is_empty() { ExitCode::Done } else { ExitCode::BadData })
}

/// The table, where it is there; it may be missing only where it would be created.
async fn open(ident: &TableIdent, context: &Context) -> anyhow::Result<Option<TableHandle>> {
    let options = CatalogOptions { if_missing: IfMissing::Refuse, ..context.catalog_options()? };
    let branch = context.settings.required("table.branch")?;
    let opened = match open_catalog(&options, None).await {
        Ok(OpenCatalog { catalog, stores }) => {
            TableHandle::open(catalog, stores, ident.clone(), branch).await
        }
        Err(error) => Err(error),
    };
    match opened {
        Ok(handle) => Ok(Some(handle)),
        Err(error) if error.kind() == ErrorKind::NotFound && context.settings.flag("create.enabled") => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// What the table would be, were it created.
async fn designed(
    ident: &TableIdent,
    config: &mut WriterConfig,
    context: &Context,
) -> anyhow::Result<Target> {
    let creation::Design { schema, partition, columns } =
        creation::design(ident, config, &context.settings).await?;
    config.decode = writing::with_inferred(std::mem::take(&mut config.decode), columns);
    let schema = Arc::new(schema);
    let spec = partition.unwrap_or_else(|| UnboundPartitionSpec::builder().build());
    let spec = spec.bind(Arc::clone(&schema)).map_err(|error| Failure::configuration(error.to_string()))?;
    let mut properties: HashMap<String, String> =
        firn_table::catalog::default_properties().into_iter().collect();
    properties.extend(context.settings.properties("create.properties"));
    let format = FileFormat::new(schema, &SortOrder::unsorted_order(), &properties)?;
    Ok(Target { format, spec: Arc::new(spec) })
}

fn document(ident: &TableIdent, schema: &Schema, spec: &PartitionSpec, preview: &Preview) -> Value {
    let rejects: Vec<Value> = preview
        .rejects
        .iter()
        .map(|(code, group)| json!({"code": code.as_str(), "messages": group.messages, "first": group.first}))
        .collect();
    let partitions: Vec<Value> = preview
        .partitions
        .iter()
        .map(|partition| {
            json!({"partition": partition.path, "rows": partition.rows, "bytes": partition.bytes})
        })
        .collect();
    json!({
        "table": ident.to_string(),
        "schema": schema,
        "partition_spec": spec,
        "messages": preview.messages,
        "message_bytes": preview.message_bytes,
        "rows": preview.rows,
        "skipped": preview.skipped,
        "unknown_fields": preview.unknown_fields,
        "rejected": preview.rejected(),
        "rejects": rejects,
        "partitions": partitions,
        "bytes_per_row": preview.bytes_per_row(),
        "expected": preview.flushes.map(|flushes| json!({
            "messages_per_second": flushes.messages_per_second,
            "seconds_per_flush": flushes.seconds,
            "files_per_second": flushes.files_per_second,
            "bytes_per_file": flushes.bytes_per_file,
        })),
    })
}

fn human(ident: &TableIdent, schema: &Schema, spec: &PartitionSpec, preview: &Preview) -> String {
    let mut out = format!("{ident} (nothing was written)\n\nschema\n");
    for field in schema.as_struct().fields() {
        let need = if field.required { "required" } else { "optional" };
        let _ = writeln!(out, "    {} {} {need}", field.name, field.field_type);
    }
    let fields: Vec<String> =
        spec.fields().iter().map(|field| format!("{} ({})", field.name, field.transform)).collect();
    let spec = if fields.is_empty() { "none".to_owned() } else { fields.join(", ") };
    let _ = writeln!(out, "\npartition fields: {spec}");
    for partition in preview.partitions.iter().take(MAX_SHOWN) {
        let path = if partition.path.is_empty() { "(whole table)" } else { &partition.path };
        let (rows, bytes) = (units::format_count(partition.rows), units::format_bytes(partition.bytes));
        let _ = writeln!(out, "    {path}: {rows} rows, {bytes}");
    }
    if let Some(more) = preview.partitions.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(out, "    and {more} more");
    }
    let _ = writeln!(
        out,
        "\n{} messages of {}: {} rows, {} rejected, {} skipped, {} unknown fields passed over",
        units::format_count(preview.messages),
        units::format_bytes(preview.message_bytes),
        units::format_count(preview.rows),
        units::format_count(preview.rejected()),
        units::format_count(preview.skipped),
        units::format_count(preview.unknown_fields),
    );
    for (code, group) in &preview.rejects {
        let _ = writeln!(out, "    {} {code}, first {}", units::format_count(group.messages), group.first);
    }
    out.push_str(&expected(preview.flushes.as_ref()));
    out
}

fn expected(flushes: Option<&Flushes>) -> String {
    match flushes {
        Some(flushes) => format!(
            "\nexpected at {:.1} messages/s, the rate of the sample: {:.2} files/s of {}, a flush each {:.2} s\n",
            flushes.messages_per_second,
            flushes.files_per_second,
            units::format_bytes(flushes.bytes_per_file),
            flushes.seconds,
        ),
        None => "\nno expectation: the sample has no rows, or its timestamps show no rate\n".to_owned(),
    }
}
