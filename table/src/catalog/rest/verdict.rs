//! What a refusal says about a commit. Pure.
//!
//! Servers differ, and proxies retry in secret and speak for them: only few answers prove that nothing was done. For a
//! 400 or 409 the table itself is asked.
//!
//! | answer | in the catalog's own words | in others |
//! | --- | --- | --- |
//! | 400, 409, 412 | the table is looked at | the table is looked at |
//! | 401 and 419 after another token, 429 | not applied | unknown |
//! | 403, 404 (no such table), 405, 406, 413 | rejected | unknown |
//! | 408, 5xx and all others | unknown | unknown |

use iceberg::table::Table;
use iceberg::{TableRequirement, TableUpdate};

use super::answer::Refusal;
use super::failure::{NO_SUCH_NAMESPACE, NO_SUCH_TABLE};
use crate::ErrorKind;

/// What a refusal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Certainly not applied, and worth trying again.
    NotApplied,
    /// Certainly not applied, and hopeless.
    Rejected(ErrorKind),
    /// The table tells.
    Look,
    /// Nothing.
    Unknown,
}

/// Judges a refusal of a commit.
pub(super) fn verdict(refusal: &Refusal) -> Verdict {
    let no_such = refusal.is(NO_SUCH_TABLE) || refusal.is(NO_SUCH_NAMESPACE);
    match refusal.status {
        400 | 409 | 412 => Verdict::Look,
        _ if refusal.model.is_none() || refusal.doubtful => Verdict::Unknown,
        401 | 419 | 429 => Verdict::NotApplied,
        403 | 413 => Verdict::Rejected(ErrorKind::Configuration),
        404 if no_such => Verdict::Rejected(ErrorKind::NotFound),
        405 | 406 => Verdict::Rejected(ErrorKind::Unsupported),
        _ => Verdict::Unknown,
    }
}

/// What a table that was loaded after a refusal tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// The commit is in it.
    Landed,
    /// It is not, and cannot land any more: the base is not the head.
    Moved,
    /// Nothing.
    Same,
}

/// Looks at the table as it is `now` for a commit that was made on `base`.
pub(super) fn seen(
    (base, now): (&Table, &Table),
    requirements: &[TableRequirement],
    updates: &[TableUpdate],
    refusal: &Refusal,
) -> Seen {
    let added = updates.iter().find_map(|update| match update {
        TableUpdate::AddSnapshot { snapshot } => Some(snapshot.snapshot_id()),
        _ => None,
    });
    let head = now.metadata();
    if added.is_some_and(|id| head.snapshot_by_id(id).is_some()) {
        return Seen::Landed;
    }
    if requirements.iter().any(|requirement| requirement.check(Some(head)).is_err()) {
        return Seen::Moved;
    }
    // Another branch may have moved: the requirements hold, and the snapshot's sequence number is outdated. A proxy
    // does not know of sequence numbers.
    let before = base.metadata();
    let moved = match added {
        Some(_) => {
            head.last_sequence_number() != before.last_sequence_number()
                || head.next_row_id() != before.next_row_id()
        }
        None => now.metadata_location() != base.metadata_location(),
    };
    if moved && refusal.model.is_some() && !refusal.doubtful { Seen::Moved } else { Seen::Same }
}
