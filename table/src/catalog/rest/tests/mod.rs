//! The REST catalog against a small server of its own: what a real one cannot be told to do.
#![allow(clippy::panic, reason = "tests state what cannot be")]

mod delegation;
mod fake;
mod names;
mod outcomes;
mod protocol;
mod server;
mod session;
mod tokens;
