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
//! | [`run`] | a run, from the table's creation to the last judgement |
//! | [`stage`] | a world in which a scenario says what happens |
//! | [`profile`] | what a run is made of, drawn from the seed |
//! | [`actors`] | who acts, one file each |
//! | [`process`], [`life`] | a process: its clock, its way to the servers, its crash or pause |
//! | [`network`], [`faults`] | the way of requests, and what goes wrong on it, one file each |
//! | [`meter`] | how many requests were sent |
//! | [`server`], [`client_catalog`], [`client_store`] | the catalog; catalog and store as a process sees them |
//! | [`world`] | all of it, with the clock and the steps |
//! | [`records`], [`history`] | what happened, as values and in words |
//! | [`view`] | what a checker sees, and the trait that it implements |
//! | [`check`] | the checkers, one file each |
//! | [`dice`] | randomness under the seed |
//!
//! A run begins with the table's creation. While messages come, requests meet faults, and processes crash, pause and
//! have wrong clocks. Then it turns quiet: nothing goes wrong any more, all that was produced is committed, everybody
//! stops, an hour passes, old snapshots are expired, and the checkers judge once more.
//!
//! A *step* is a commit that the catalog applied, or a file that the store deleted: the checkers run between it and
//! whatever comes next. Nothing else runs meanwhile, so a checker must not wait for time or for another task.

pub mod actors;
pub mod check;
pub mod client_catalog;
pub mod client_store;
pub mod dice;
pub mod faults;
pub mod history;
pub mod life;
pub mod meter;
pub mod network;
pub mod process;
pub mod profile;
pub mod records;
pub mod run;
mod running;
pub mod server;
pub mod stage;
pub mod view;
mod words;
pub mod world;
