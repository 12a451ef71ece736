//! Another engine on the same table: what it does to rows, deletes, schema, spec and history, and what it reads.
//!
//! It shares no code with firn's committer: snapshots are made here from `iceberg`'s writers and go to
//! [`CommitCatalog::commit`](firn_table::catalog::CommitCatalog::commit) with a compare-and-set and retries of their
//! own. Randomness, ids and time come from outside, so that a seed repeats a run.
//!
//! | file | deed or subject |
//! | --- | --- |
//! | `engine` | [`Engine`]: decides on each base, sends, and looks after an unknown outcome |
//! | `snapshot`, `entries` | a snapshot from files added and removed; the entries of manifests, nothing inherited |
//! | `files` | Parquet files of data and of deletes |
//! | `append` | [`Append`] |
//! | `position_delete` | [`PositionDelete`], [`RewritePositionDeletes`] |
//! | `deletion_vector`, `puffin` | [`DeletionVectors`] and their form in a Puffin file |
//! | `equality_delete` | [`EqualityDelete`] |
//! | `compact` | [`Compact`] |
//! | `columns` | [`AddColumn`], [`ChangeSpec`] |
//! | `history` | [`RollBack`], [`SwitchLine`], [`Expire`] |
//! | `reader`, `rows` | [`Reader`]: the rows of a snapshot with all its deletes applied |
//!
//! A new deed is a file with a value that implements [`Deed`].

mod append;
mod columns;
mod compact;
mod deletion_vector;
mod engine;
mod entries;
mod equality_delete;
mod files;
mod history;
mod position_delete;
mod puffin;
mod reader;
mod rows;
mod snapshot;
#[cfg(test)]
mod tests;
mod victims;

pub use append::{Append, value_text};
pub use columns::{AddColumn, ChangeSpec};
pub use compact::Compact;
pub use deletion_vector::DeletionVectors;
pub use engine::{Clock, Deed, Engine, Outcome};
pub(crate) use entries::entries_of;
pub use entries::{Entry, FileKey};
pub use equality_delete::EqualityDelete;
pub use history::{Expire, RollBack, SwitchLine};
pub use position_delete::{PositionDelete, RewritePositionDeletes, Scope, SequenceNumber};
pub use reader::{LiveRow, Reader, Rows, rows};
pub use snapshot::{Added, Change, Draft};
pub use victims::Victims;
