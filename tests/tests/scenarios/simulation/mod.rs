//! The simulation: random runs under seeds, every point of a crash, and scripted situations in which time or faults
//! matter.

#![expect(clippy::unwrap_used, reason = "a script of a test fails by a panic, and says what it found")]

mod answers;
mod assignment;
mod branches;
mod catalogs;
mod conflicts;
mod costs;
mod crashes;
mod replies;
mod rewrites;
mod rivals;
mod rollbacks;
mod seeds;
