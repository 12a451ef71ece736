//! Scenarios on a REST catalog, Postgres and an S3 server: Java, Maven, Go, Python and Postgres are needed for them.

mod chaos;
mod side_by_side;
mod torment;
