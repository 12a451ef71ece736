//! Faults of catalogs and stores, as wrappers around real ones.
//!
//! [`FaultyCatalog`] does to commits and loads what networks, proxies and servers do: replies that are lost after the
//! commit landed, commits that land later, throttling, hangs, dropped properties. [`store_wrapper`] does the same to
//! the objects of a store: slow, lost, half-written and hanging requests.
//!
//! Which fault comes when is a [`Schedule`]: a script for the next calls, or chances under a seed. A schedule remembers
//! what it injected, so that a test can assert that the fault it is about did happen, and print it where it fails.
//! Nothing here reads a clock: what happens *later* happens after a number of calls, or when the test says so.
//!
//! ```
//! use firn_tests::faults::{CommitFault, Schedule};
//!
//! let schedule = Schedule::script([None, Some(CommitFault::ReplyLost)]);
//! assert!(schedule.injected().is_empty());
//! ```

mod catalog;
mod schedule;
mod store;

#[cfg(test)]
mod tests;

pub use catalog::{CommitFault, FaultyCatalog, LoadFault};
pub use schedule::Schedule;
pub use store::{FaultyStore, Operation, StoreFault, store_wrapper};
