//! The commit protocol against a store in memory and a catalog that fails as it is told.
#![allow(clippy::panic, reason = "tests state what cannot be")]

mod append;
mod catalog;
mod claims;
mod cost;
mod deletes;
mod model;
mod outcomes;
mod properties;
mod queue;
mod replace;
mod rollback;
mod store;
mod times;
mod world;
