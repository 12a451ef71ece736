//! Streams Kafka topics into Iceberg tables, exactly once.
//!
//! ```text
//! source → decoder → partition router → buffer → flush policy → file writers → committer
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | [`run()`] | the writer as one call |
//! | [`config`] | what a writer is told to do |
//! | [`observe`] | what a running writer tells |
//! | [`dead_letters`] | messages that cannot become rows |
//! | [`decode`] | messages → record batches, with an outcome for each message |
//! | [`schema`] | schemas given, converted or inferred; partition expressions |
//! | [`generate`] | messages from a template and a seed |
//! | [`create`] | making the table |
//! | [`preview`] | what would become of messages, without writing |
//! | [`source`] | where messages come from: Kafka, or a log in memory |
//! | [`batch`] | fetched messages |
//! | [`budget`] | memory, in bytes |
//! | [`pipeline`] | from a source to commits |
//! | [`kafka`] | producer, cluster probes, topics, samples |
//!
//! The library prints nothing, reads no environment variable and never exits the process.

// The reference decoders name this crate as the program that fuzzes with them does.
#[cfg(test)]
extern crate self as firn_writer;

pub mod batch;
pub mod budget;
pub mod config;
pub mod create;
pub mod dead_letters;
pub mod decode;
pub mod generate;
pub mod kafka;
pub mod observe;
pub mod pipeline;
pub mod preview;
mod ranges;
mod run;
pub mod schema;
pub mod source;

pub use config::WriterConfig;
pub use firn_table::{Error, ErrorKind, Result};
pub use observe::{Event, Observer, WriterReport};
pub use run::run;
