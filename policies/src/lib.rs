//! Decides which files of a table to rewrite: pure functions over layout statistics.
//!
//! Nothing here knows Iceberg, a store, a clock or a runtime. A caller describes live files as [`FileStats`], reads
//! [`RewriteOptions`] from properties under Iceberg's own names, and gets from [`bin_pack`] a [`Decision`]: the
//! groups to rewrite, and for every other file the [`SkipReason`].
//!
//! | module | subject |
//! | --- | --- |
//! | [`options`] | option names, defaults, and all their problems at once |
//! | [`sizes`] | the arithmetic of outputs, split size and roll size, and when an open file is full |
//! | [`binpack`] | candidates, groups, and which groups are worth it |
//! | [`debt`] | what a decision saves |
//! | [`histogram`] | file sizes in buckets |
//! | [`policy`] | what to rewrite, how much at a time and when, as a person writes it down |
//! | [`quantity`] | sizes and durations as people write them |
//!
//! Every policy keeps these properties, which one test kit checks: the decision does not depend on the order of its
//! input; every file is in one group or has one reason; no file of the right size is rewritten; groups stay within
//! their size; and planning after the rewrite that was planned yields nothing.

pub mod binpack;
pub mod debt;
pub mod histogram;
pub mod options;
pub mod policy;
pub mod quantity;
pub mod sizes;
#[cfg(test)]
mod testkit;

pub use binpack::{Decision, FileGroup, FileStats, SkipReason, bin_pack};
pub use debt::Debt;
pub use histogram::{Bucket, Histogram};
pub use options::{JobOrder, OptionProblem, OptionProblems, RewriteOptions};
pub use policy::Policy;
pub use sizes::Sizes;
