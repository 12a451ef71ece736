//! The settings of a writer as the library takes them.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::Utc;
use firn_table::catalog::parse_table_ident;
use firn_table::commit::{ExpireOptions, Guarantee};
use firn_table::ledger::WriterName;
use firn_writer::WriterConfig;
use firn_writer::config::{
    AfterRollback, DeadLetters, End, ExpirySchedule, FlushLimits, FreshnessGoal, Mode, OnBadMessage, OnGap,
    OnNewSource, Start,
};
use firn_writer::decode::{ColumnOptions, DecodeOptions};
use serde_json::{Map, Value, json};

use crate::config::settings::missing;
use crate::config::{Problems, Settings};
use crate::exit::Failure;
use crate::units;

/// The time that one question to a broker may take.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// librdkafka's properties, the brokers among them.
pub(crate) fn kafka_properties(settings: &Settings) -> Result<BTreeMap<String, String>, Failure> {
    let mut properties = settings.properties("kafka.properties");
    match settings.text("kafka.brokers") {
        Some(brokers) => {
            properties.insert("bootstrap.servers".to_owned(), brokers.to_owned());
        }
        None if properties.contains_key("bootstrap.servers") => {}
        None => return Err(missing("kafka.brokers")),
    }
    Ok(properties)
}

/// The topics; at least one.
pub(crate) fn topics(settings: &Settings) -> Result<Vec<String>, Failure> {
    match settings.list("kafka.topics") {
        [] => Err(missing("kafka.topics")),
        topics => Ok(topics.to_vec()),
    }
}

/// Everything that a writer is told, without what was learnt from a sample.
pub(crate) fn writer_config(settings: &Settings) -> anyhow::Result<WriterConfig> {
    let name = WriterName::new(settings.required("write.writer")?)?;
    let mut config = WriterConfig::new(name, topics(settings)?, "");
    config.kafka = kafka_properties(settings)?;
    config.start = start(settings)?;
    config.guarantee = guarantee(settings);
    config.mode = mode(settings, config.mode);
    config.flush = flush(settings, config.flush);
    config.freshness = freshness(settings)?;
    config.on_bad_message = match settings.text("write.on-bad-message") {
        Some("skip") => OnBadMessage::Skip,
        Some("dead-letter") => OnBadMessage::DeadLetter,
        _ => OnBadMessage::Stop,
    };
    config.dead_letters = dead_letters(settings)?;
    config.on_gap = match settings.text("write.on-gap") {
        Some("record") => OnGap::Record,
        _ => OnGap::Stop,
    };
    config.after_rollback = match settings.text("write.after-rollback") {
        Some("replay") => AfterRollback::Replay,
        Some("keep") => AfterRollback::Keep,
        _ => AfterRollback::Stop,
    };
    config.on_new_source = match settings.text("write.on-new-source") {
        Some("restart") => OnNewSource::Restart,
        _ => OnNewSource::Stop,
    };
    config.decode = decode_options(settings)?;
    config.expiry = settings.flag("write.expire").then(|| expiry(settings));
    config.end = if settings.flag("write.until-end") { End::AtEndsOfStart } else { End::Never };
    limits(settings, &mut config);
    Ok(config)
}

fn dead_letters(settings: &Settings) -> anyhow::Result<DeadLetters> {
    let table = settings.text("dead-letters.table").map(parse_table_ident).transpose()?;
    let max_share = settings.required("dead-letters.max-share")?.parse().map_err(|_| {
        let what = "it is not a number from 0 to 1".to_owned();
        Problems(vec![settings.problem("dead-letters.max-share", what)])
    })?;
    let window = settings.number("dead-letters.window").unwrap_or(DeadLetters::default().window);
    Ok(DeadLetters { table, create: settings.flag("dead-letters.create"), max_share, window })
}

fn limits(settings: &Settings, config: &mut WriterConfig) {
    if let Some(bytes) = size(settings, "write.memory") {
        config.memory_bytes = bytes;
    }
    if let Some(count) = size(settings, "write.upload-concurrency") {
        config.upload_concurrency = count;
    }
    if let Some(deadline) = settings.duration("write.revoke-deadline") {
        config.revoke_deadline = deadline;
    }
    if let Some(age) = settings.duration("write.unhealthy-after") {
        config.unhealthy_after = age;
    }
    if let Some(count) = settings.number("write.max-overtaken") {
        config.max_overtaken = u32::try_from(count).unwrap_or(u32::MAX);
    }
}

fn start(settings: &Settings) -> anyhow::Result<Start> {
    match settings.required("write.start")? {
        "earliest" => Ok(Start::Earliest),
        "latest" => Ok(Start::Latest),
        "group" => Ok(Start::Group),
        text => {
            let time = units::parse_time(text, Utc::now()).map_err(|what| {
                let what = format!("{what}, nor one of earliest, latest, group");
                Problems(vec![settings.problem("write.start", what)])
            })?;
            Ok(Start::Timestamp(time.timestamp_millis()))
        }
    }
}

fn guarantee(settings: &Settings) -> Guarantee {
    match settings.text("write.guarantee") {
        Some("at-least-once") => Guarantee::AtLeastOnce,
        _ => Guarantee::ExactlyOnce,
    }
}

fn mode(settings: &Settings, default: Mode) -> Mode {
    let shards = size(settings, "write.shards").unwrap_or(1);
    match settings.text("write.mode") {
        Some("low-latency") => match settings.duration("write.min-interval") {
            Some(min_interval) => Mode::LowLatency { min_interval },
            None => Mode::low_latency(),
        },
        Some("auto") => {
            let most = size(settings, "write.max-shards").unwrap_or(shards);
            Mode::Auto { min_shards: shards, max_shards: most.max(shards) }
        }
        Some("grouped") => {
            let window = settings.duration("write.window").unwrap_or(DEFAULT_WINDOW);
            Mode::Grouped { window, shards }
        }
        Some(_) => Mode::Fixed { shards },
        None => default,
    }
}

/// How long rows are collected where nothing is said.
const DEFAULT_WINDOW: Duration = Duration::from_secs(10);

fn freshness(settings: &Settings) -> Result<Option<FreshnessGoal>, Problems> {
    let Some(text) = settings.text("write.freshness") else { return Ok(None) };
    let problem = |what: String| Problems(vec![settings.problem("write.freshness", what)]);
    parse_freshness(text).map(Some).map_err(problem)
}

/// `p99 2s`: a percentile, or `max`, and a duration.
fn parse_freshness(text: &str) -> Result<FreshnessGoal, String> {
    let shape = "is not a percentile and a duration such as \"p99 2s\" or \"max 30s\"";
    let (share, within) = text.trim().split_once(char::is_whitespace).ok_or(shape)?;
    let within = units::parse_duration(within.trim()).map_err(|what| format!("{shape}: its time {what}"))?;
    let permille = match share.strip_prefix('p') {
        None if share == "max" => 1000,
        Some(percent) => {
            percent.parse::<f64>().ok().map(|p| p * 10.0).filter(|p| p.fract() == 0.0).ok_or(shape)? as u16
        }
        None => return Err(shape.to_owned()),
    };
    match permille {
        1..=1000 if !within.is_zero() => Ok(FreshnessGoal { permille, within }),
        _ => Err(format!("{shape}: p0.1 to p100, and a time above zero")),
    }
}

fn flush(settings: &Settings, default: FlushLimits) -> FlushLimits {
    FlushLimits {
        age: settings.duration("write.flush-age").unwrap_or(default.age),
        bytes: size(settings, "write.flush-bytes").unwrap_or(default.bytes),
        rows: settings.number("write.flush-rows").unwrap_or(default.rows),
    }
}

fn expiry(settings: &Settings) -> ExpirySchedule {
    let default = ExpirySchedule::default();
    let max_snapshots = size(settings, "write.expire-max-snapshots").or(default.options.max_snapshots);
    ExpirySchedule {
        every: settings.duration("write.expire-every").unwrap_or(default.every),
        options: ExpireOptions { max_snapshots, ..default.options },
    }
}

/// How messages become rows. A column's own table says what differs from all columns.
pub(crate) fn decode_options(settings: &Settings) -> Result<DecodeOptions, Failure> {
    let mut root = object(settings, "decode", &["unknown-fields", "tombstones", "kafka-columns"]);
    for limit in ["max-depth", "max-values"] {
        if let Some(value) = settings.number(&format!("decode.{limit}")) {
            root.insert(limit.to_owned(), json!(value));
        }
    }
    let defaults = object(settings, "decode.defaults", COLUMN_OPTIONS);
    let mut columns = Map::new();
    for column in settings.names(&["decode", "columns"]) {
        let mut options = defaults.clone();
        options.extend(object(settings, &format!("decode.columns.{column}"), COLUMN_OPTIONS));
        columns.insert(column.to_owned(), Value::Object(options));
    }
    root.insert("format".to_owned(), format(settings)?);
    root.insert("defaults".to_owned(), Value::Object(defaults));
    root.insert("columns".to_owned(), Value::Object(columns));
    serde_json::from_value(Value::Object(root)).map_err(|error| {
        Failure::internal(format!("the declared decode options are not the library's: {error}"))
    })
}

/// What messages are, as the library reads it; the schema of Avro messages stands in a file.
fn format(settings: &Settings) -> Result<Value, Failure> {
    let format = settings.required("write.format")?;
    if format != "avro" {
        return Ok(json!(format));
    }
    let path = settings.required("write.avro-schema")?;
    match std::fs::read_to_string(path) {
        Ok(schema) => Ok(json!({ "avro": { "schema": schema } })),
        Err(error) => Err(Failure::configuration(format!(
            "the Avro schema `{path}` cannot be read, so messages cannot be decoded: {error}"
        ))),
    }
}

/// The names of [`ColumnOptions`]'s fields in the configuration.
const COLUMN_OPTIONS: &[&str] = &["timestamp-numbers", "timestamp-precision", "binary", "numbers", "strings"];

fn object(settings: &Settings, section: &str, names: &[&str]) -> Map<String, Value> {
    names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), json!(settings.text(&format!("{section}.{name}"))?))))
        .collect()
}

/// Adds what inference found out, under what the configuration says about the same column.
pub(crate) fn with_inferred(
    mut options: DecodeOptions,
    inferred: BTreeMap<String, ColumnOptions>,
) -> DecodeOptions {
    for (path, column) in inferred {
        options.columns.entry(path).or_insert(column);
    }
    options
}

fn size(settings: &Settings, path: &str) -> Option<usize> {
    settings.number(path).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use firn_writer::decode::{BinaryText, StringValues, TimestampNumbers};

    use super::*;
    use crate::config::key::Kind;
    use crate::config::{Source, keys, sources};

    fn settings(toml: &str) -> Settings {
        Settings::resolve(sources::from_toml(toml, &Source::Default).unwrap()).unwrap()
    }

    #[test]
    fn the_defaults_of_the_program_are_those_of_the_library() {
        let settings = settings("[kafka]\nbrokers = \"b:9092\"\ntopics = [\"t\"]\n");
        let ours = writer_config(&settings).unwrap();
        let theirs = WriterConfig::new(ours.name.clone(), vec!["t".to_owned()], "b:9092");
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    }

    #[test]
    fn every_declared_word_is_one_of_the_library() {
        for key in keys::all().filter(|key| key.path.starts_with("decode.") && !key.path.contains('*')) {
            let Kind::Choice(words) = key.kind else { continue };
            let (section, name) = key.path.rsplit_once('.').unwrap();
            for word in words {
                let toml = format!("[{section}]\n{name} = \"{word}\"\n");
                assert!(decode_options(&settings(&toml)).is_ok(), "{toml}");
            }
        }
    }

    #[test]
    fn a_column_differs_only_in_what_it_declares() {
        let toml = "[decode.defaults]\nbinary = \"hex\"\n[decode.columns.\"o.ts\"]\ntimestamp-numbers = \"millis\"\n";
        let options = decode_options(&settings(toml)).unwrap();
        let column = options.columns["o.ts"];
        assert_eq!(column.timestamp_numbers, TimestampNumbers::Millis);
        assert_eq!(column.binary, BinaryText::Hex);
        assert_eq!(options.defaults.timestamp_numbers, TimestampNumbers::Reject);
        let inferred = ColumnOptions { strings: StringValues::JsonText, ..ColumnOptions::default() };
        let merged = with_inferred(
            options,
            BTreeMap::from([("o.ts".to_owned(), inferred), ("x".to_owned(), inferred)]),
        );
        assert_eq!(merged.columns["o.ts"], column);
        assert_eq!(merged.columns["x"], inferred);
    }

    #[test]
    fn modes_take_their_own_settings() {
        let low = settings("[write]\nmode = \"low-latency\"\nmin-interval = \"50ms\"\n");
        let expected = Mode::LowLatency { min_interval: Duration::from_millis(50) };
        assert_eq!(mode(&low, Mode::Fixed { shards: 1 }), expected);
        let fixed = settings("[write]\nshards = 4\n");
        assert_eq!(mode(&fixed, Mode::Fixed { shards: 1 }), Mode::Fixed { shards: 4 });
        let auto = settings("[write]\nmode = \"auto\"\nmax-shards = 6\n");
        assert_eq!(mode(&auto, Mode::Fixed { shards: 1 }), Mode::Auto { min_shards: 1, max_shards: 6 });
        let grouped = settings("[write]\nmode = \"grouped\"\nwindow = \"3s\"\nshards = 2\n");
        let expected = Mode::Grouped { window: Duration::from_secs(3), shards: 2 };
        assert_eq!(mode(&grouped, Mode::Fixed { shards: 1 }), expected);
    }

    #[test]
    fn a_freshness_is_a_percentile_and_a_time() {
        let goal = |permille, ms| FreshnessGoal { permille, within: Duration::from_millis(ms) };
        for (text, expected) in
            [("p99 2s", goal(990, 2_000)), ("p99.9  500ms", goal(999, 500)), ("max 1m", goal(1000, 60_000))]
        {
            assert_eq!(
                freshness(&settings(&format!("[write]\nfreshness = \"{text}\""))).unwrap(),
                Some(expected)
            );
        }
        for text in ["2s", "p99", "p99.99 2s", "p101 2s", "p0 2s", "p-5 2s", "p99 0s", "p99 soon", "q99 2s"] {
            let refused = freshness(&settings(&format!("[write]\nfreshness = \"{text}\""))).unwrap_err();
            assert!(refused.to_string().contains("write.freshness"), "{text}: {refused}");
        }
    }

    #[test]
    fn a_start_is_a_word_or_a_time() {
        assert_eq!(start(&settings("[write]\nstart = \"latest\"")).unwrap(), Start::Latest);
        let time = start(&settings("[write]\nstart = \"2026-01-02\"")).unwrap();
        assert_eq!(time, Start::Timestamp(1_767_312_000_000));
        let message = start(&settings("[write]\nstart = \"soon\"")).unwrap_err().to_string();
        assert!(message.contains("`write.start` = `\"soon\"`"), "{message}");
    }
}
