//! `firn generate`: messages from a template into a topic.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use firn_writer::generate::{Format, Template};
use firn_writer::kafka::cluster::{TopicSpec, create_topic, probe};
use firn_writer::kafka::producer::Deliveries;
use serde_json::json;

use crate::config::sources::Given;
use crate::config::{Problems, Settings};
use crate::context::Context;
use crate::exit::{ExitCode, Failure};
use crate::flags::{Flags, Sections};
use crate::load::{self, Limit, Load, Rate};
use crate::units;
use crate::writing;

/// What to produce.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    flags: Flags<GenerateSections>,
}

/// Sections that a generator reads.
#[derive(Debug)]
pub(crate) struct GenerateSections;

impl Sections for GenerateSections {
    const NAMES: &'static [&'static str] = &["kafka", "generate"];
}

impl GenerateArgs {
    /// What the flags set.
    pub(crate) fn given(&self) -> Vec<Given> {
        self.flags.given()
    }
}

/// Creates the topic where it is not there, produces, and sums up.
pub(crate) async fn run(context: &Context) -> anyhow::Result<ExitCode> {
    let settings = &context.settings;
    let kafka = writing::kafka_properties(settings)?;
    let topics = writing::topics(settings)?;
    let [topic] = topics.as_slice() else {
        return Err(
            Failure::usage(format!("one topic is needed to produce to, {} are given", topics.len())).into()
        );
    };
    let template = template(settings)?;
    let rate = rate(settings)?;
    if let Some(path) = settings.path("generate.schema-file") {
        write_schema(&template, &path)?;
    }
    let partitions = ensure_topic(topic, &kafka, settings).await?;
    let load = Load {
        kafka,
        topic: topic.clone(),
        generator: template
            .generator(settings.number("generate.seed").unwrap_or(1), partitions)
            .map_err(unusable)?,
        rate,
        limit: Limit {
            count: settings.number("generate.count"),
            time: settings.number("generate.seconds").map(Duration::from_secs),
        },
    };
    let progress = context.progress("produced", load.limit.count.unwrap_or(0));
    let started = Instant::now();
    let deliveries = load::run(load, context.stop.clone(), move |deliveries| {
        progress.at(deliveries.delivered, "messages")
    })
    .await?;
    report(topic, deliveries, started.elapsed(), context)
}

fn report(
    topic: &str,
    deliveries: Deliveries,
    elapsed: Duration,
    context: &Context,
) -> anyhow::Result<ExitCode> {
    let seconds = elapsed.as_secs_f64();
    let value = json!({
        "topic": topic,
        "messages": deliveries.delivered,
        "failed": deliveries.failed,
        "bytes": deliveries.bytes,
        "seconds": seconds,
    });
    context.output.value(&value, |_| {
        let per_second = |count: u64| (count as f64 / seconds.max(1e-9)) as u64;
        format!(
            "{} messages ({}) in topic {topic}, {}: {}/s, {}/s\n",
            units::format_count(deliveries.delivered),
            units::format_bytes(deliveries.bytes),
            units::format_duration(elapsed),
            units::format_count(per_second(deliveries.delivered)),
            units::format_bytes(per_second(deliveries.bytes)),
        )
    })?;
    Ok(if deliveries.failed == 0 { ExitCode::Done } else { ExitCode::PartlyDone })
}

/// The template of the settings, brought to the wanted size.
fn template(settings: &Settings) -> anyhow::Result<Template> {
    let mut template = match settings.path("generate.template") {
        None => Template::default_events(),
        Some(path) => {
            let what = || format!("the template `{}` cannot be used", path.display());
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Failure::configuration(error.to_string()))
                .with_context(what)?;
            Template::from_toml(&text).map_err(unusable).with_context(what)?
        }
    };
    if let Some(bytes) = settings.number("generate.message-size") {
        template.message_bytes = Some(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
    match settings.text("generate.message-format") {
        Some("avro") => template.format = Format::Avro,
        Some("json") => template.format = Format::Json,
        _ => {}
    }
    Ok(template)
}

fn unusable(error: impl std::fmt::Display) -> Failure {
    Failure::configuration(error.to_string())
}

fn rate(settings: &Settings) -> anyhow::Result<Rate> {
    let text = settings.required("generate.rate")?;
    if text == "max" {
        return Ok(Rate::Max);
    }
    if let Some(ramp) = ramp(text) {
        return Ok(ramp);
    }
    match units::parse_count(text) {
        Ok(per_second) if per_second > 0 => Ok(Rate::PerSecond(per_second)),
        _ => {
            let what = "a number of messages per second, a ramp such as 100..5000/60s, or `max`, is expected";
            Err(Problems(vec![settings.problem("generate.rate", what)]).into())
        }
    }
}

/// `FROM..TO/TIME`; one of both ends is above zero, or nothing would ever be sent.
fn ramp(text: &str) -> Option<Rate> {
    let (ends, over) = text.split_once('/')?;
    let (from, to) = ends.split_once("..")?;
    let (from, to) = (units::parse_count(from).ok()?, units::parse_count(to).ok()?);
    let over = units::parse_duration(over).ok()?;
    (from > 0 || to > 0).then_some(Rate::Ramp { from, to, over })
}

/// Writes what a table for these messages needs: an Avro schema, or Iceberg's.
fn write_schema(template: &Template, path: &std::path::Path) -> anyhow::Result<()> {
    let schema = match template.format {
        Format::Avro => template.avro_schema().map_err(unusable)?,
        Format::Json => serde_json::to_value(template.schema().map_err(unusable)?)?,
    };
    std::fs::write(path, serde_json::to_string_pretty(&schema)? + "\n")
        .map_err(|error| Failure::configuration(error.to_string()))
        .with_context(|| format!("the schema cannot be written to `{}`", path.display()))
}

/// The partitions of the topic, which is created where it is not there.
async fn ensure_topic(
    topic: &str,
    kafka: &std::collections::BTreeMap<String, String>,
    settings: &Settings,
) -> anyhow::Result<i32> {
    let found = probe(kafka, &[topic.to_owned()], writing::REQUEST_TIMEOUT).await?;
    if let Some(there) = found.topics.first().filter(|topic| topic.exists()) {
        return Ok(i32::try_from(there.partitions.len())?);
    }
    let partitions = i32::try_from(settings.number("generate.partitions").unwrap_or(8))?;
    let spec = TopicSpec { replication: -1, ..TopicSpec::new(topic, partitions) };
    create_topic(kafka, &spec).await?;
    tracing::info!(topic, partitions, "topic created");
    Ok(partitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_has_two_ends_and_a_time() {
        let expected = Rate::Ramp { from: 100, to: 5_000, over: Duration::from_secs(60) };
        assert_eq!(ramp("100..5_000/60s"), Some(expected));
        for text in ["100", "100..200", "100/60s", "0..0/60s", "a..b/60s", "1..2/soon"] {
            assert_eq!(ramp(text), None, "{text}");
        }
    }
}
