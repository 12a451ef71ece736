//! The history of a run in words: what a person reads when a promise was broken, and what is compared to show that a
//! run can be repeated.

use std::fmt;

use super::records::{At, Who};

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: At,
    /// Which process.
    pub who: Who,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3}s  {:<14} {}", self.at.as_secs_f64(), self.who.name, self.what)
    }
}

/// All lines of a run, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    entries: Vec<Entry>,
}

impl History {
    /// Adds a line.
    pub fn add(&mut self, at: At, who: &Who, what: String) {
        self.entries.push(Entry { at, who: who.clone(), what });
    }

    /// All lines.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The last lines.
    #[must_use]
    pub fn last(&self, count: usize) -> &[Entry] {
        &self.entries[self.entries.len().saturating_sub(count)..]
    }

    /// The first line in which two histories differ: its number, and both lines as far as they are there.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<(usize, Option<Entry>, Option<Entry>)> {
        let longer = self.entries.len().max(other.entries.len());
        (0..longer).find_map(|index| {
            let (a, b) = (self.entries.get(index), other.entries.get(index));
            (a != b).then(|| (index, a.cloned(), b.cloned()))
        })
    }
}
