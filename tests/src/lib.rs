//! What the scenarios are made of: a real broker, the program as a process, other engines as readers, and checks of
//! what is left behind.
//!
//! | module | subject |
//! | --- | --- |
//! | [`appender`] | a writer process without a broker |
//! | [`chaos`] | a proxy that breaks what its rules name |
//! | [`checks`] | what must hold of a table at any time |
//! | [`conformance`] | what every catalog and every store must do |
//! | [`faults`] | catalogs and stores that fail as told |
//! | [`foreign`] | another engine on the same table, and its reader |
//! | [`kafka`] | a broker for the tests of a process; topics, messages |
//! | [`warehouse`] | a catalog, its tables, and the program run on them |
//! | [`process`] | the program as a process: run, kill, stop |
//! | [`rows`] | messages whose rows are known, and the tables they go to |
//! | [`readers`] | PyIceberg, DuckDB and Iceberg's Java library, compared with firn's own reading |
//! | [`canonical`] | values as text that is equal in every language |
//! | [`server`] | a REST catalog, Postgres, an S3 server |
//! | [`servers`] | catalogs and stores on them, and which of them scenarios run on |
//! | [`stream`] | a topic of events, the table that it goes to, the writers between them |
//! | [`torment`] | kills, pauses and outages on real servers, one after the other, and a recount |
//! | [`scratch`] | where everything goes that a test leaves behind |
//! | [`sim`] | writers, a compactor and foreign engines in one thread, under a seed, with faults and checkers |

pub mod appender;
pub mod canonical;
pub mod chaos;
pub mod checks;
pub mod conformance;
pub mod faults;
pub mod foreign;
pub mod kafka;
mod parsed;
pub mod process;
pub mod readers;
pub mod rows;
pub mod scratch;
pub mod server;
pub mod servers;
pub mod sim;
pub mod stream;
pub mod torment;
pub mod warehouse;
