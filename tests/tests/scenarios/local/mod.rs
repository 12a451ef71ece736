//! Scenarios on a SQLite catalog and local files, without a broker: offsets are made up, everything else is real.

mod checks;
mod commits;
mod conformance;
mod deletes;
#[cfg(test)]
mod expiry;
mod faults;
mod fixture;
mod rewrites;
