//! Scenarios on a real broker: Java and Maven are needed for it.

mod kills;
mod load;
mod messages;
mod sources;
mod takeover;
mod tampering;
mod torment;
