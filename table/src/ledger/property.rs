//! How a ledger is written into a table property, and read back.
//!
//! Compact JSON, because it stands in every metadata file: per partition an array, `[start, next]` where every
//! offset became a row, otherwise `[start, next, rows, rejected, holes, gaps]`. Keys are in order, so equal ledgers
//! are equal texts.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::{Cursor, Guarantee, Ledger, TopicPartition, WriterName};
use crate::{Error, ErrorKind, Result};

/// What the names of all ledger properties begin with.
pub(crate) const PREFIX: &str = "firn.cursor.";

const VERSION: u32 = 1;

/// The name of the property that holds a writer's ledger on a branch.
#[must_use]
pub fn property_name(branch: &str, writer: &WriterName) -> String {
    if branch == "main" { format!("{PREFIX}{writer}") } else { format!("{PREFIX}{branch}.{writer}") }
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    commit: String,
    snapshot: i64,
    sequence: i64,
    #[serde(default, skip_serializing_if = "is_default")]
    guarantee: Guarantee,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    #[serde(default)]
    topics: BTreeMap<String, Topic>,
}

#[derive(Default, Serialize, Deserialize)]
struct Topic {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default)]
    partitions: BTreeMap<i32, Counts>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Counts {
    All([i64; 2]),
    Mixed([i64; 6]),
}

fn is_default(guarantee: &Guarantee) -> bool {
    *guarantee == Guarantee::default()
}

impl Ledger {
    /// Reads a writer's ledger from the table's properties; `None` where it has none. `Ledger` where it cannot be
    /// understood.
    pub fn read(
        properties: &HashMap<String, String>,
        branch: &str,
        writer: &WriterName,
    ) -> Result<Option<Self>> {
        let name = property_name(branch, writer);
        properties
            .get(&name)
            .map(|text| Self::parse(text).map_err(|e| e.context(unreadable(&name))))
            .transpose()
    }

    /// All ledgers in a table's properties, with their branch and writer, in order of both.
    pub fn read_all(properties: &HashMap<String, String>) -> Result<Vec<(String, WriterName, Self)>> {
        let mut ledgers = Vec::new();
        for (name, text) in properties {
            let Some(rest) = name.strip_prefix(PREFIX) else { continue };
            let (branch, writer) = rest.rsplit_once('.').unwrap_or(("main", rest));
            let read = || Ok((branch.to_owned(), WriterName::new(writer)?, Self::parse(text)?));
            ledgers.push(read().map_err(|e: Error| e.context(unreadable(name)))?);
        }
        ledgers.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        Ok(ledgers)
    }

    /// Reads the text of the property.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |e: serde_json::Error| ledger_error("it is not a ledger").with_source(e);
        let probe: serde_json::Value = serde_json::from_str(text).map_err(wrong)?;
        let version = probe.get("version").and_then(serde_json::Value::as_u64);
        if version != Some(u64::from(VERSION)) {
            return Err(ledger_error(format!(
                "version `{}` is not {VERSION}: a newer firn wrote it; use that one",
                version.map_or_else(|| "none".to_owned(), |v| v.to_string())
            )));
        }
        serde_json::from_value::<Document>(probe).map_err(wrong)?.into_ledger()
    }

    /// The text of the property.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string(&Document::of(self)).expect("maps with string and integer keys serialise")
    }
}

impl Document {
    fn of(ledger: &Ledger) -> Self {
        let mut topics: BTreeMap<String, Topic> = BTreeMap::new();
        for (topic, id) in &ledger.topic_ids {
            topics.entry(topic.clone()).or_default().id = Some(id.clone());
        }
        for (at, cursor) in &ledger.cursors {
            let topic = topics.entry(at.topic.clone()).or_default();
            topic.partitions.insert(at.partition, Counts::of(cursor));
        }
        Self {
            version: VERSION,
            commit: ledger.commit_id.to_string(),
            snapshot: ledger.snapshot_id,
            sequence: ledger.sequence_number,
            guarantee: ledger.guarantee,
            cluster: ledger.cluster_id.clone(),
            topics,
        }
    }

    fn into_ledger(self) -> Result<Ledger> {
        let mut topic_ids = BTreeMap::new();
        let mut cursors = BTreeMap::new();
        for (name, topic) in self.topics {
            for (partition, counts) in topic.partitions {
                cursors.insert(TopicPartition { topic: name.clone(), partition }, counts.into_cursor()?);
            }
            if let Some(id) = topic.id {
                topic_ids.insert(name, id);
            }
        }
        Ok(Ledger {
            commit_id: self.commit.parse()?,
            snapshot_id: self.snapshot,
            sequence_number: self.sequence,
            guarantee: self.guarantee,
            cluster_id: self.cluster,
            topic_ids,
            cursors,
        })
    }
}

impl Counts {
    fn of(cursor: &Cursor) -> Self {
        let Cursor { start, next, rows, rejected, holes, gaps } = *cursor;
        if rows == cursor.covered() && rejected + holes + gaps == 0 {
            return Self::All([start, next]);
        }
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        Self::Mixed([start, next, signed(rows), signed(rejected), signed(holes), signed(gaps)])
    }

    fn into_cursor(self) -> Result<Cursor> {
        let unsigned = |count: i64| {
            u64::try_from(count).map_err(|_| ledger_error(format!("count `{count}` is negative")))
        };
        let cursor = match self {
            Self::All([start, next]) => Cursor {
                start,
                next,
                rows: unsigned(next.saturating_sub(start))?,
                rejected: 0,
                holes: 0,
                gaps: 0,
            },
            Self::Mixed([start, next, rows, rejected, holes, gaps]) => Cursor {
                start,
                next,
                rows: unsigned(rows)?,
                rejected: unsigned(rejected)?,
                holes: unsigned(holes)?,
                gaps: unsigned(gaps)?,
            },
        };
        if cursor.next < cursor.start {
            return Err(ledger_error(format!(
                "cursor `{}` is before its start `{}`",
                cursor.next, cursor.start
            )));
        }
        Ok(cursor)
    }
}

fn ledger_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Ledger, message)
}

fn unreadable(name: &str) -> String {
    format!("the ledger in property `{name}` cannot be read")
}
