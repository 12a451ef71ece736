//! The actors, one file each. An actor is a future that lives as long as the run: it starts processes, and ends when
//! the world stops.

mod broker;
mod compactor;
mod deletes;
mod expirer;
mod foreign;
mod producer;
mod writer;

pub use broker::{BrokerPlan, broker};
pub use compactor::{CompactorPlan, compactor, compactor_observer};
pub use expirer::{ExpirerPlan, expirer};
pub use foreign::{ForeignPlan, foreign};
pub use producer::{ProducerPlan, TOPIC, partition, produce, producer};
pub use writer::{Teller, WriterPlan, writer, writer_parts, writer_parts_on};
