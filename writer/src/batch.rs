//! Fetched messages with their bytes in one allocation.

use firn_table::ledger::TopicPartition;
use rdkafka::Message as _;
use rdkafka::message::{BorrowedMessage, Headers as _};

use crate::decode::{Header, Message};

/// Messages of one topic partition in offset order. Their bytes stand in one buffer, so a message costs no
/// allocation of its own.
#[derive(Debug, Clone)]
pub struct MessageBatch {
    partition: TopicPartition,
    headers: Headers,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    header_entries: Vec<(Span, Span)>,
}

/// Whether message headers are kept: they are copied only where a column takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    /// Keep them.
    Keep,
    /// Leave them out.
    Drop,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    offset: i64,
    timestamp_ms: Option<i64>,
    key: Span,
    payload: Span,
    headers: (u32, u32),
}

/// A piece of the buffer, or nothing.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    const ABSENT: Self = Self { start: 0, len: u32::MAX };

    fn of(self, bytes: &[u8]) -> Option<&[u8]> {
        (self.len != u32::MAX).then(|| &bytes[self.start as usize..][..self.len as usize])
    }
}

impl MessageBatch {
    /// An empty batch.
    #[must_use]
    pub fn new(partition: TopicPartition, headers: Headers) -> Self {
        Self { partition, headers, bytes: Vec::new(), entries: Vec::new(), header_entries: Vec::new() }
    }

    /// Where the messages come from.
    #[must_use]
    pub fn partition(&self) -> &TopicPartition {
        &self.partition
    }

    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.header_entries.capacity() * size_of::<(Span, Span)>()
    }

    /// Bytes of keys, values and headers.
    #[must_use]
    pub fn content_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The offset of the last message.
    #[must_use]
    pub fn last_offset(&self) -> Option<i64> {
        self.entries.last().map(|e| e.offset)
    }

    /// The offset of the first message.
    #[must_use]
    pub fn first_offset(&self) -> Option<i64> {
        self.entries.first().map(|e| e.offset)
    }

    /// Copies a message that librdkafka delivered.
    pub(crate) fn push(&mut self, message: &BorrowedMessage<'_>) {
        let first = self.header_entries.len();
        if self.headers == Headers::Keep
            && let Some(headers) = message.headers()
        {
            for header in headers.iter() {
                let key = self.append(Some(header.key.as_bytes()));
                let value = self.append(header.value);
                self.header_entries.push((key, value));
            }
        }
        let headers = (first as u32, (self.header_entries.len() - first) as u32);
        let (key, payload) = (self.append(message.key()), self.append(message.payload()));
        let timestamp_ms = message.timestamp().to_millis();
        self.entries.push(Entry { offset: message.offset(), timestamp_ms, key, payload, headers });
    }

    /// Copies a message; its topic and partition are those of the batch.
    pub fn push_message(&mut self, message: &Message<'_>) {
        let first = self.header_entries.len();
        if self.headers == Headers::Keep {
            for header in &message.headers {
                let key = self.append(Some(header.key.as_bytes()));
                let value = self.append(header.value);
                self.header_entries.push((key, value));
            }
        }
        let headers = (first as u32, (self.header_entries.len() - first) as u32);
        let (key, payload) = (self.append(message.key), self.append(message.payload));
        let (offset, timestamp_ms) = (message.offset, message.timestamp_ms);
        self.entries.push(Entry { offset, timestamp_ms, key, payload, headers });
    }

    /// The messages, borrowed.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = Message<'_>> {
        self.entries.iter().map(|e| Message {
            topic: &self.partition.topic,
            partition: self.partition.partition,
            offset: e.offset,
            timestamp_ms: e.timestamp_ms,
            key: e.key.of(&self.bytes),
            payload: e.payload.of(&self.bytes),
            headers: self.headers_of(e),
        })
    }

    fn headers_of(&self, entry: &Entry) -> Vec<Header<'_>> {
        let (first, count) = (entry.headers.0 as usize, entry.headers.1 as usize);
        self.header_entries[first..first + count]
            .iter()
            .map(|(key, value)| Header {
                key: std::str::from_utf8(key.of(&self.bytes).unwrap_or_default()).unwrap_or_default(),
                value: value.of(&self.bytes),
            })
            .collect()
    }

    /// Copies bytes into the buffer. A batch stays far below 4 GiB: sources hand it on at about a megabyte, and
    /// Kafka's largest message has 2 GiB.
    fn append(&mut self, piece: Option<&[u8]>) -> Span {
        let Some(piece) = piece else { return Span::ABSENT };
        let start = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(piece);
        Span { start, len: piece.len() as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were_put_in() {
        let partition = TopicPartition { topic: "t".to_owned(), partition: 3 };
        let headers = vec![
            Header { key: "a", value: Some(b"1") },
            Header { key: "a", value: None },
            Header { key: "", value: Some(b"") },
        ];
        let given = [
            Message { offset: 5, payload: Some(b"five"), headers: headers.clone(), ..Message::default() },
            Message {
                offset: 7,
                key: Some(b""),
                payload: None,
                timestamp_ms: Some(-1),
                ..Message::default()
            },
            Message { offset: 8, key: Some(b"k"), payload: Some(b""), ..Message::default() },
        ];
        let mut kept = MessageBatch::new(partition.clone(), Headers::Keep);
        let mut dropped = MessageBatch::new(partition, Headers::Drop);
        given.iter().for_each(|m| kept.push_message(m));
        given.iter().for_each(|m| dropped.push_message(m));
        assert_eq!((kept.first_offset(), kept.last_offset(), kept.len()), (Some(5), Some(8), 3));
        assert_eq!(kept.content_bytes(), 4 + 1 + 1 + 1 + 1);
        for (given, found) in given.iter().zip(kept.messages()) {
            assert_eq!((found.topic, found.partition, found.offset), ("t", 3, given.offset));
            assert_eq!((found.key, found.payload), (given.key, given.payload));
            assert_eq!((found.timestamp_ms, found.headers), (given.timestamp_ms, given.headers.clone()));
        }
        assert!(dropped.messages().all(|m| m.headers.is_empty()));
    }
}
