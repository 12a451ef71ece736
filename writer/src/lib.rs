//! Streams Kafka topics into Iceberg tables, exactly once.
//!
//! | module | subject |
//! | --- | --- |
//! | [`decode`] | messages → record batches, with an outcome for each message |
//! | [`schema`] | schemas given, converted or inferred; partition expressions |
//! | [`generate`] | messages from a template and a seed |

pub mod decode;
pub mod generate;
pub mod schema;
