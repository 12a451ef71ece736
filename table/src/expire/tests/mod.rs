//! Decisions, and reachability over random histories.

mod decisions;
mod histories;
mod lake;
