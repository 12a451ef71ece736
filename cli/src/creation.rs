//! Making the table that `firn write --create` fills.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use firn_table::ErrorKind;
use firn_table::catalog::OpenCatalog;
use firn_writer::WriterConfig;
use firn_writer::create::{NewTable, create_table};
use firn_writer::decode::{ColumnOptions, Format as DecodeFormat};
use firn_writer::kafka::sample::{SampleLimits, sample_messages};
use firn_writer::schema::{
    Inference, OnConflict, SchemaError, parse_partition_spec, parse_schema, raw_schema, with_kafka_columns,
};
use iceberg::TableIdent;
use iceberg::spec::{Schema, UnboundPartitionSpec};

use crate::config::Settings;
use crate::context::Context;
use crate::exit::{ExitCode, Failure};
use crate::writing;

/// What a table that does not exist is made of.
#[derive(Debug)]
pub(crate) struct Design {
    /// Its schema, with `_kafka` where that was asked for.
    pub schema: Schema,
    /// Its partition spec, where it has one.
    pub partition: Option<UnboundPartitionSpec>,
    /// What the decoder must know about inferred columns.
    pub columns: BTreeMap<String, ColumnOptions>,
}

/// Reads the schema that was given, takes the one that the format implies, or infers one from messages.
pub(crate) async fn design(
    ident: &TableIdent,
    config: &WriterConfig,
    settings: &Settings,
) -> anyhow::Result<Design> {
    let infer_from = settings.number("create.infer");
    let (mut schema, columns) = match (settings.path("create.schema"), &config.decode.format, infer_from) {
        (Some(path), _, _) => (read_schema(&path)?, BTreeMap::new()),
        (None, DecodeFormat::Avro { schema }, _) => {
            (parse_schema(schema).map_err(schema_failure)?, BTreeMap::new())
        }
        (None, DecodeFormat::Raw, _) => (raw_schema().map_err(schema_failure)?, BTreeMap::new()),
        (None, DecodeFormat::Json, Some(messages)) => infer(messages, &config.kafka, settings).await?,
        (None, DecodeFormat::Json, None) => {
            return Err(Failure::configuration(format!(
                "table `{ident}` cannot be created without a schema: give --schema FILE (Iceberg or Avro, JSON), or \
                 --infer N to infer it from N messages"
            ))
            .into());
        }
    };
    if settings.flag("create.kafka-columns") {
        schema = with_kafka_columns(&schema).map_err(schema_failure)?;
    }
    let partition = match settings.list("create.partition-by") {
        [] => None,
        fields => Some(parse_partition_spec(fields, &schema).map_err(schema_failure)?),
    };
    Ok(Design { schema, partition, columns })
}

/// Creates the table, and returns what the decoder must know about inferred columns.
///
/// Another process that creates the same table at the same time is no error: what it made is opened.
pub(crate) async fn create(
    catalog: &OpenCatalog,
    ident: &TableIdent,
    config: &WriterConfig,
    context: &Context,
) -> anyhow::Result<BTreeMap<String, ColumnOptions>> {
    let settings = &context.settings;
    let Design { schema, partition, columns } = design(ident, config, settings).await?;
    let properties = settings.properties("create.properties").into_iter().collect();
    let new = NewTable { schema, partition, location: None, properties };
    match create_table(catalog, ident, new).await {
        Ok(table) => {
            tracing::info!(table = %ident, location = table.metadata().location(), "table created");
            Ok(columns)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(columns),
        Err(error) => Err(error.into()),
    }
}

fn read_schema(path: &Path) -> anyhow::Result<Schema> {
    let what = || format!("the schema `{}` cannot be read, so the table cannot be created", path.display());
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::configuration(error.to_string()))
        .with_context(what)?;
    parse_schema(&text).map_err(schema_failure).with_context(what)
}

async fn infer(
    messages: u64,
    kafka: &BTreeMap<String, String>,
    settings: &Settings,
) -> anyhow::Result<(Schema, BTreeMap<String, ColumnOptions>)> {
    let limits =
        SampleLimits { messages: usize::try_from(messages).unwrap_or(usize::MAX), ..SampleLimits::default() };
    let mut inference = Inference::default();
    for batch in sample_messages(kafka, &writing::topics(settings)?, limits).await? {
        for message in batch.messages() {
            inference.observe(&message);
        }
    }
    let on_conflict = match settings.text("create.on-conflict") {
        Some("string") => OnConflict::String,
        _ => OnConflict::Fail,
    };
    let inferred = inference.finish(on_conflict).map_err(schema_failure)?;
    for (field, reason) in &inferred.omitted {
        tracing::warn!(field, reason, "left out of the inferred schema");
    }
    if let Some(first) = &inferred.first_unusable {
        tracing::warn!(messages = inferred.unusable, first, "messages that tell nothing about the schema");
    }
    tracing::info!(messages = inferred.messages, schema = %inferred.schema, "schema inferred");
    Ok((inferred.schema, inferred.columns))
}

/// Schemas and partition expressions are the user's to mend; what messages contradict is bad data.
fn schema_failure(error: SchemaError) -> Failure {
    let code = match error {
        SchemaError::Conflicts(_) | SchemaError::NoColumns { .. } => ExitCode::BadData,
        _ => ExitCode::Configuration,
    };
    Failure::new(code, error.to_string())
}
