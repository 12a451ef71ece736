//! Compaction of real tables: planned, rewritten, verified, committed, read back.

// A test fails by a panic, and a random one tells what it tried.
#![allow(clippy::panic, clippy::print_stdout)]

mod commits;
mod evolution;
mod faults;
mod fixed_point;
mod partitions;
mod planning;
mod policies;
mod rewriting;
mod rows;
mod support;
