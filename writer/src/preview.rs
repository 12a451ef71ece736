//! What a writer would make of messages, without writing: rows, partitions, rejects, and the files to be expected.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use firn_table::files::{FileFormat, PartitionRouter, encode_file, partition_path};
use iceberg::spec::PartitionSpecRef;
use iceberg::table::Table;

use crate::batch::MessageBatch;
use crate::config::{Mode, WriterConfig};
use crate::decode::{self, Message, Outcome, RejectCode};
use crate::{Error, ErrorKind, Result};

/// Messages decoded at a time.
const BATCH: usize = 4_096;

/// What rows would be written into.
#[derive(Debug)]
pub struct Target {
    /// Schema and form of the files.
    pub format: FileFormat,
    /// The partition spec of new files.
    pub spec: PartitionSpecRef,
}

impl Target {
    /// The table as it is.
    pub fn of_table(table: &Table) -> Result<Self> {
        let spec = Arc::clone(table.metadata().default_partition_spec());
        Ok(Self { format: FileFormat::of_table(table)?, spec })
    }
}

/// What became of a sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preview {
    /// Messages looked at.
    pub messages: u64,
    /// Bytes of their values.
    pub message_bytes: u64,
    /// Those that are rows.
    pub rows: u64,
    /// Those passed over by configuration.
    pub skipped: u64,
    /// Fields passed over, in messages that are rows.
    pub unknown_fields: u64,
    /// Those that are no rows, by code.
    pub rejects: BTreeMap<RejectCode, RejectGroup>,
    /// Where the rows go, by path.
    pub partitions: Vec<PartitionPreview>,
    /// What to expect of a stream of such messages; absent where the sample shows no rate.
    pub flushes: Option<Flushes>,
}

/// Messages rejected with one code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectGroup {
    /// How many.
    pub messages: u64,
    /// The first of them, `topic/partition@offset`, with the reason.
    pub first: String,
}

/// The rows of one table partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionPreview {
    /// As in the paths of files; empty where the table is not partitioned.
    pub path: String,
    /// Rows of the sample.
    pub rows: u64,
    /// Bytes of a file with these rows.
    pub bytes: u64,
}

/// Flushes to be expected at the rate of the sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flushes {
    /// The rate, from the messages' timestamps.
    pub messages_per_second: f64,
    /// The time between two flushes.
    pub seconds: f64,
    /// Files of all flushes.
    pub files_per_second: f64,
    /// Bytes of one file: rows as large as those of the sample.
    pub bytes_per_file: u64,
}

impl Preview {
    /// Messages rejected, of all codes.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejects.values().map(|group| group.messages).sum()
    }

    /// Bytes of files for each row; zero without rows.
    #[must_use]
    pub fn bytes_per_row(&self) -> f64 {
        let bytes: u64 = self.partitions.iter().map(|partition| partition.bytes).sum();
        if self.rows == 0 { 0.0 } else { bytes as f64 / self.rows as f64 }
    }
}

/// Decodes, routes and encodes messages as a writer with this configuration does, and counts.
pub fn preview(target: &Target, config: &WriterConfig, batches: &[MessageBatch]) -> Result<Preview> {
    let refused = |error: decode::DecodeError| {
        let message = format!("messages cannot be decoded into this table: {error}");
        Error::new(ErrorKind::Configuration, message).with_source(error)
    };
    let schema = target.format.schema();
    let mut decoder =
        decode::decoder(schema, Arc::clone(target.format.arrow_schema()), &config.decode).map_err(refused)?;
    let router = PartitionRouter::new(Arc::clone(&target.spec), Arc::clone(schema))?;
    let mut preview = Preview::default();
    let mut routed: BTreeMap<String, Vec<RecordBatch>> = BTreeMap::new();
    let (mut rate, mut memory) = (Rate::default(), 0);
    for batch in batches {
        let messages: Vec<Message<'_>> = batch.messages().collect();
        for messages in messages.chunks(BATCH) {
            let decoded = decoder.decode(messages).map_err(refused)?;
            preview.count(messages, &decoded.outcomes);
            preview.unknown_fields += decoded.unknown_fields;
            messages.iter().for_each(|message| rate.add(message));
            memory += decoded.batch.get_array_memory_size();
            if decoded.batch.num_rows() == 0 {
                continue;
            }
            for (partition, rows) in router.split(&decoded.batch)? {
                let path = partition_path(&target.spec, schema, &partition)?;
                routed.entry(path).or_default().push(rows);
            }
        }
    }
    for (path, batches) in routed {
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let file = encode_file(&target.format, &batches)?;
        let bytes = file.map_or(0, |file| file.bytes().len() as u64);
        preview.partitions.push(PartitionPreview { path, rows, bytes });
    }
    preview.flushes = rate.per_second().and_then(|rate| expected(&preview, config, rate, memory));
    Ok(preview)
}

impl Preview {
    fn count(&mut self, messages: &[Message<'_>], outcomes: &[Outcome]) {
        for (message, outcome) in messages.iter().zip(outcomes) {
            self.messages += 1;
            self.message_bytes += message.payload.map_or(0, |payload| payload.len() as u64);
            match outcome {
                Outcome::Row => self.rows += 1,
                Outcome::Skipped => self.skipped += 1,
                Outcome::Rejected(reject) => {
                    let group = self.rejects.entry(reject.code).or_insert_with(|| RejectGroup {
                        messages: 0,
                        first: format!(
                            "{}/{}@{}: {reject}",
                            message.topic, message.partition, message.offset
                        ),
                    });
                    group.messages += 1;
                }
            }
        }
    }
}

/// How fast messages came, topic partition by topic partition.
#[derive(Debug, Default)]
struct Rate {
    /// For each topic partition: messages with a timestamp, the earliest and the latest.
    spans: BTreeMap<(String, i32), (u64, i64, i64)>,
}

impl Rate {
    fn add(&mut self, message: &Message<'_>) {
        let Some(at) = message.timestamp_ms else { return };
        let place = (message.topic.to_owned(), message.partition);
        let (count, first, last) = self.spans.entry(place).or_insert((0, at, at));
        *count += 1;
        *first = at.min(*first);
        *last = at.max(*last);
    }

    /// The sum over the partitions that show a rate.
    fn per_second(&self) -> Option<f64> {
        let rates = self.spans.values().filter(|(count, first, last)| *count > 1 && last > first);
        let rates: Vec<f64> =
            rates.map(|(count, first, last)| (count - 1) as f64 * 1_000.0 / (last - first) as f64).collect();
        (!rates.is_empty()).then(|| rates.iter().sum())
    }
}

/// A flush is sealed by the first limit that it reaches, and has a file for each partition and shard that has rows.
fn expected(preview: &Preview, config: &WriterConfig, rate: f64, memory: usize) -> Option<Flushes> {
    if preview.rows == 0 {
        return None;
    }
    let rows_per_second = rate * preview.rows as f64 / preview.messages as f64;
    let memory_per_row = memory as f64 / preview.rows as f64;
    let by_rows = config.flush.rows as f64 / rows_per_second;
    let by_bytes = config.flush.bytes as f64 / memory_per_row / rows_per_second;
    let age = match config.mode {
        Mode::LowLatency { min_interval } => min_interval,
        _ => config.flush.age,
    };
    let shards = match config.mode {
        Mode::Fixed { shards } => shards,
        _ => 1,
    };
    let seconds = age.as_secs_f64().min(by_rows).min(by_bytes).max(0.001);
    let rows = (rows_per_second * seconds).max(1.0);
    let files = (preview.partitions.len() as f64 * shards as f64).min(rows).max(1.0);
    // Rarer than its deadline is a flush of a stream that is slower.
    let seconds = seconds.max(1.0 / rows_per_second);
    Some(Flushes {
        messages_per_second: rate,
        seconds,
        files_per_second: files / seconds,
        bytes_per_file: (preview.bytes_per_row() * rows / files) as u64,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use firn_table::ledger::{TopicPartition, WriterName};
    use iceberg::spec::SortOrder;

    use super::*;
    use crate::batch::Headers;
    use crate::schema::{parse_partition_spec, parse_schema};

    const SCHEMA: &str = r#"{"type":"struct","fields":[
        {"id":1,"name":"id","required":true,"type":"long"},
        {"id":2,"name":"kind","required":false,"type":"string"}]}"#;

    fn target() -> Target {
        let schema = Arc::new(parse_schema(SCHEMA).unwrap());
        let spec = parse_partition_spec(&["kind".to_owned()], &schema).unwrap();
        let format =
            FileFormat::new(Arc::clone(&schema), &SortOrder::unsorted_order(), &HashMap::new()).unwrap();
        Target { format, spec: Arc::new(spec.bind(schema).unwrap()) }
    }

    fn config() -> WriterConfig {
        let mut config = WriterConfig::new(WriterName::new("w").unwrap(), vec!["t".to_owned()], "b:1");
        config.flush.age = Duration::from_secs(2);
        config
    }

    fn batch(payloads: &[&str]) -> MessageBatch {
        let mut batch =
            MessageBatch::new(TopicPartition { topic: "t".to_owned(), partition: 0 }, Headers::Drop);
        for (offset, payload) in (0..).zip(payloads) {
            batch.push_message(&Message {
                topic: "t",
                offset,
                timestamp_ms: Some(1_000_000 + offset * 10),
                payload: Some(payload.as_bytes()),
                ..Message::default()
            });
        }
        batch
    }

    #[test]
    fn a_sample_is_counted_by_outcome_partition_and_code() {
        let batch = batch(&[
            r#"{"id":1,"kind":"a"}"#,
            r#"{"id":"x"}"#,
            r#"{"id":2,"kind":"b","more":1}"#,
            r#"{"id":3,"kind":"a"}"#,
            r#"{"id":true}"#,
        ]);
        let preview = preview(&target(), &config(), &[batch]).unwrap();
        assert_eq!((preview.messages, preview.rows, preview.unknown_fields), (5, 3, 1));
        let rejects: Vec<_> = preview.rejects.iter().map(|(code, group)| (*code, group.messages)).collect();
        assert_eq!(rejects, [(RejectCode::WrongType, 2)]);
        assert!(preview.rejects[&RejectCode::WrongType].first.starts_with("t/0@1: wrong-type"));
        let partitions: Vec<_> = preview.partitions.iter().map(|p| (p.path.as_str(), p.rows)).collect();
        assert_eq!(partitions, [("kind=a", 2), ("kind=b", 1)]);
        assert!(preview.partitions.iter().all(|partition| partition.bytes > 100), "{preview:?}");
        // Five messages 10 ms apart are 100 a second: of each 2 s, 120 rows in two files.
        let flushes = preview.flushes.unwrap();
        assert_eq!(
            (flushes.messages_per_second, flushes.seconds, flushes.files_per_second),
            (100.0, 2.0, 1.0)
        );
        assert_eq!(flushes.bytes_per_file, (preview.bytes_per_row() * 60.0) as u64);
    }

    #[test]
    fn the_first_limit_that_is_reached_seals_a_flush() {
        let payloads = vec![r#"{"id":1,"kind":"a"}"#; 11];
        let mut config = config();
        config.flush.rows = 10;
        let seen = preview(&target(), &config, &[batch(&payloads)]).unwrap().flushes.unwrap();
        assert_eq!((seen.seconds, seen.files_per_second), (0.1, 10.0));
    }

    #[test]
    fn without_rows_or_timestamps_nothing_is_expected() {
        let seen = preview(&target(), &config(), &[batch(&["x", "y"])]).unwrap();
        assert_eq!((seen.rows, seen.rejected(), seen.flushes), (0, 2, None));
        assert_eq!(preview(&target(), &config(), &[batch(&[r#"{"id":1}"#])]).unwrap().flushes, None);
    }
}
