//! Writers and compactors behind `firn chaos`: whatever it does to their requests, each row is in the table once, each
//! flush is one snapshot, and no file that is needed is gone.

mod commits;
mod fixture;
mod program;
mod store;
