//! Scenarios on servers that people run: a REST catalog, Postgres, an S3 store. `tests/run servers` starts them.

mod chaos;
mod check;
mod conformance;
mod postgres;
mod s3;
mod side_by_side;
mod tables;
mod torment;
