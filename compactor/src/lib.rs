//! Plans and runs rewrites of Iceberg tables.
//!
//! ```text
//! manifests → layout → candidates (SQL over the layout) → policy → plan → groups → rewriter → verify → replace commit
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | [`session`] | the layout of a snapshot as SQL tables |
//! | [`plan`](mod@plan) | which files are rewritten together, why others are not, and what will come out: a value |
//! | [`rewrite`] | one group: read by field id, cut at the right size, verified |
//! | [`run`] | several groups at a time under one memory budget, and their commits |
//! | [`continuous`](mod@continuous) | runs that repeat while a stream fills the table |
//! | [`observe`] | what a run tells while it works |
//!
//! **What a crash leaves.** Outputs are written under new names and are referenced only by the commit that removes
//! their inputs. A run that dies before its commit leaves files that no snapshot names: orphans, which cost space
//! until orphan removal takes them, and never a wrong row.
//!
//! Errors are those of [`firn_table`]; the kind tells what to do. The library prints nothing and reads no
//! environment variable.

pub mod continuous;
pub mod observe;
pub mod plan;
pub mod rewrite;
pub mod run;
pub mod session;

pub use continuous::{ContinuousOptions, ContinuousReport, Trigger, continuous};
pub use observe::{Event, Observer, Silent};
pub use plan::{Plan, PlanOptions, PlannedFile, PlannedGroup, PolicyAt, SkippedFile, Why, plan};
pub use rewrite::Verify;
pub use run::{CompactOptions, DroppedGroup, Resources, RunReport, compact, run_plan};
pub use session::{layout_session, sql};

pub use firn_table::{Error, ErrorKind, Result};
