//! SQLite's result codes.

use super::Verdict;

/// Primary result codes (the low byte of an extended code).
mod code {
    pub(super) const PERM: i32 = 3;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const READONLY: i32 = 8;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const AUTH: i32 = 23;
    pub(super) const NOTADB: i32 = 26;
}

/// SQLite rolls a statement back when it answers BUSY, also where that happens while it commits.
pub(super) fn verdict(extended: &str) -> Verdict {
    match extended.parse::<i32>().unwrap_or_default() & 0xff {
        code::BUSY | code::LOCKED => Verdict::NotApplied("another process holds the catalog database's lock"),
        code::CANTOPEN => Verdict::NotApplied("the catalog database cannot be opened"),
        code::PERM | code::READONLY | code::AUTH => {
            Verdict::Rejected("the catalog database cannot be written")
        }
        code::NOTADB | code::CORRUPT => Verdict::Rejected("the file is no SQLite database, or a damaged one"),
        _ => Verdict::Unknown("the catalog database failed"),
    }
}
