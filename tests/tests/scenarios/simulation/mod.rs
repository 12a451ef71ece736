//! The simulation: random runs under seeds, every point of a crash, and scripted situations in which time or faults
//! matter.

mod assignment;
mod branches;
mod catalogs;
mod crashes;
mod replies;
mod rewrites;
mod rivals;
mod seeds;
