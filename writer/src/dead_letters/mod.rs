//! Dead letters: messages that cannot become rows, kept whole, with the reason.
//!
//! | file | subject |
//! | --- | --- |
//! | `schema` | the table that holds them, and letters as its rows |
//! | `table` | [`DeadLetterTable`]: opened or made, claimed, appended to |
//! | `read` | letters read back; those that are still before the rows' cursor |
//! | `replay` | letters that decode by now become rows, once |
//! | `share` | how many of the messages may be bad before the writer stops |
//!
//! # Exactly once (DESIGN section 6)
//!
//! Rows and letters are in two tables, and no commit covers both. The letters of a flush are appended first, then the
//! rows, whose cursor passes the letters' offsets. What stands in the dead letters is dead, whatever a later decoding
//! says; so whoever goes on from the rows' cursor must know all letters that stand at or after it, and nobody else
//! may add one or commit a row behind his back. A letter alone cannot give that: a process that was overtaken may
//! still have a commit under way in either table, and with a decoder that judges differently (another schema) the two
//! would disagree. Hence claims ([`firn_table::ledger::Claims`]):
//!
//! 1. On assignment, and whenever a commit was overtaken or has no known outcome, a process claims its partitions in
//!    the table of rows, by an empty append. From then on no flush of an older claim lands there, and its cursor `C`
//!    is where to begin.
//! 2. Then it claims them in the table of letters. From then on no letter of an older claim lands, and the letters at
//!    or after `C` are read, from the head that the claim made: they end at that table's cursor, and only files whose
//!    metrics reach `C` are opened.
//!    Where the claim of 1 does not stand any more after that, it begins again: of two that claim at the same time, one
//!    could else be the newer in the one table and the older in the other.
//! 3. These offsets are not decoded again: they count as rejected. Any other is judged afresh.
//! 4. A flush appends its new letters under the claim of 2, then its rows under the claim of 1. If either is
//!    overtaken, or its outcome is not known, the process begins again at 1: a late request fails, since the claim
//!    moved the head that it was compared with.
//!
//! So between 2 and the next claim, letters at or after `C` are those that were read and those that this process
//! appended, and each offset that `C` passes is a row or a letter. A flush without bad messages needs no commit to the
//! letters: nobody could have added any. The letters' ledger counts them; its cursor is the end of the last flush that
//! had some, and a letter may be added before it, where a second decoding is the stricter one.
//!
//! At-least-once claims nothing: a message may have several letters. Each names topic, partition and offset of its
//! message, by which a reader drops doubles.
//!
//! Two different tables cannot share a table of dead letters: its property `firn.dead-letters-of` names the one.

mod read;
mod replay;
mod schema;
mod share;
mod table;

pub(crate) use read::DeadOffsets;
pub use read::{Stored, read_letters};
pub use replay::{ReplayReport, replay, replay_name, replayed};
pub use schema::dead_letter_schema;
pub(crate) use share::Share;
pub use table::default_name;
pub(crate) use table::{DeadLetterTable, Letters, Origin};

use firn_table::ledger::TopicPartition;

use crate::decode::{Message, Reject};

/// A message that is no row, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its topic partition.
    pub partition: TopicPartition,
    /// Its offset.
    pub offset: i64,
    /// Kafka's timestamp, milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value; `None` for a tombstone.
    pub value: Option<Vec<u8>>,
    /// The headers in order; names may repeat.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// The id of the schema that the message names, where it names one.
    pub schema_id: Option<i32>,
    /// The stable code ([`RejectCode`](crate::decode::RejectCode)).
    pub code: String,
    /// The path of the field; empty where the message as a whole is bad.
    pub path: String,
    /// The type that the table expects there.
    pub expected: String,
    /// What the message holds there, shortened.
    pub found: String,
    /// What is wrong, in words.
    pub reason: String,
}

impl DeadLetter {
    pub(crate) fn new(message: &Message<'_>, reject: &Reject) -> Self {
        let header = |h: &crate::decode::Header<'_>| (h.key.to_owned(), h.value.map(<[u8]>::to_vec));
        Self {
            partition: TopicPartition { topic: message.topic.to_owned(), partition: message.partition },
            offset: message.offset,
            timestamp_ms: message.timestamp_ms,
            key: message.key.map(<[u8]>::to_vec),
            value: message.payload.map(<[u8]>::to_vec),
            headers: message.headers.iter().map(header).collect(),
            schema_id: None,
            code: reject.code.as_str().to_owned(),
            path: reject.path.clone(),
            expected: reject.expected.to_string(),
            found: reject.found.clone(),
            reason: reject.reason.to_string(),
        }
    }

    /// Bytes of memory, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(k, v)| k.len() + v.as_ref().map_or(0, Vec::len)).sum();
        let payload = self.key.as_ref().map_or(0, Vec::len) + self.value.as_ref().map_or(0, Vec::len);
        let texts = self.path.len() + self.expected.len() + self.found.len() + self.reason.len();
        size_of::<Self>() + headers + payload + texts
    }
}
