//! The actors, one file each. An actor is a future that lives as long as the run: it starts processes, and ends when
//! the world stops.

mod compactor;
mod expirer;
mod producer;
mod writer;

pub use compactor::{CompactorPlan, compactor};
pub use expirer::{ExpirerPlan, expirer};
pub use producer::{ProducerPlan, TOPIC, partition, produce, producer};
pub use writer::{Teller, WriterPlan, writer, writer_parts};
