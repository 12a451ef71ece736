//! Messages that no decoder takes.

use serde::{Deserialize, Serialize};

use super::random::{Random, Weighted};
use super::{Format, Template};

/// How a bad message is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bad {
    /// Its second half is missing.
    CutOff,
    /// A byte in it is no UTF-8 (JSON).
    NotUtf8,
    /// Something follows the value.
    Trailing,
    /// It is an array that holds the object (JSON).
    NotAnObject,
    /// It has no bytes, and is no tombstone.
    Empty,
    /// Its first field that is there holds an empty object (JSON).
    WrongType,
}

impl Bad {
    /// The kinds that `bad_share` is divided among. It is older than the others, and its messages stay what they were.
    const SHARED: [Self; 4] = [Self::CutOff, Self::NotUtf8, Self::Trailing, Self::NotAnObject];

    /// Whether messages of this format can be bad in this way.
    #[must_use]
    pub fn applies_to(self, format: Format) -> bool {
        format == Format::Json || matches!(self, Self::CutOff | Self::Trailing | Self::Empty)
    }
}

/// Which messages are spoilt, and how.
#[derive(Debug, Clone)]
pub(super) struct Spoiler {
    share: f64,
    shared: Vec<Bad>,
    /// The kinds with a share of their own.
    named: Vec<Bad>,
    named_share: f64,
    weights: Weighted,
}

impl Spoiler {
    pub(super) fn new(template: &Template) -> Self {
        let shares = || template.bad.iter().filter(|(_, share)| **share > 0.0);
        Self {
            share: template.bad_share,
            shared: Bad::SHARED.into_iter().filter(|bad| bad.applies_to(template.format)).collect(),
            named: shares().map(|(bad, _)| *bad).collect(),
            named_share: shares().map(|(_, share)| share).sum(),
            weights: Weighted::new(shares().map(|(_, share)| *share)),
        }
    }

    /// `random` is what the message was made with; kinds of their own shares draw from `own`, so that they change no
    /// other message.
    pub(super) fn choose(&self, random: &mut Random, own: &mut Random) -> Option<Bad> {
        if random.happens(self.share) {
            return Some(self.shared[random.below(self.shared.len() as u64) as usize]);
        }
        own.happens(self.named_share).then(|| self.named[self.weights.pick(own)])
    }
}

/// Spoils a message; `first` is where the first value of the JSON object is.
pub(super) fn spoil(bad: Bad, payload: &mut Vec<u8>, first: Option<std::ops::Range<usize>>) {
    let middle = payload.len() / 2;
    match bad {
        Bad::CutOff => payload.truncate(middle),
        Bad::NotUtf8 => payload[middle] = 0xFF,
        Bad::Trailing => payload.extend_from_slice(b" {}"),
        Bad::NotAnObject => {
            payload.insert(0, b'[');
            payload.push(b']');
        }
        Bad::Empty => payload.clear(),
        Bad::WrongType => match first {
            Some(first) => drop(payload.splice(first, *b"{}")),
            // An object without fields: an array is of the wrong type too.
            None => *payload = b"[]".to_vec(),
        },
    }
}
