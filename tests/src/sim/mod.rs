//! The simulation: writers, a compactor and foreign engines on one table, in one thread, under a seed, with faults
//! in everything between them.
//!
//! ```text
//! actors (real writer, compactor, table code) ─▶ network (latency, faults) ─▶ catalog, store, log in memory
//!                                                                                  │
//!                                         checkers (one per promise) ◀─ records ◀──┘
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | [`records`] | what happened: commits, deletes, messages, what processes told |
//! | [`view`] | what a checker sees, and the trait that it implements |
//! | [`check`] | the checkers |
//!
//! A *step* is a commit that the catalog applied, or a file that the store deleted: the checkers run between it and
//! whatever comes next. Nothing else runs meanwhile, so a checker must not wait for time or for another task.

pub mod check;
pub mod records;
pub mod view;
