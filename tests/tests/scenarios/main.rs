//! Scenarios over all of firn, on real parts: a broker, a SQLite catalog, local files, the program as a process.
//!
//! The modules are the parts of `tests/run`. Tests that need more than Rust are ignored under a plain `cargo test`,
//! and say what they need.

mod engines;
mod kafka;
mod local;
mod protections;
mod servers;
mod simulation;
mod tables;

pub(crate) use firn_tests::stream;
