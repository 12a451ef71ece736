//! Configuration: one declared list of settings, filled from four sources.
//!
//! ```text
//! defaults  <  file (TOML)  <  environment (FIRN__SECTION__KEY)  <  command line
//! ```
//!
//! Every setting stands once, in [`keys`]: its path, kind, default, meaning, and what follows when it is
//! wrong. From that list come the commented default file, the JSON schema, the names of the environment
//! variables, the check for unknown keys, and what `config show` prints. Reading collects every problem
//! before it gives up, so that one run tells all of them.

pub(crate) mod defaults;
pub(crate) mod key;
pub(crate) mod keys;
pub(crate) mod problem;
pub(crate) mod schema;
pub(crate) mod settings;
pub(crate) mod show;
pub(crate) mod sources;
pub(crate) mod value;

pub(crate) use problem::{Problem, Problems};
pub(crate) use settings::{Settings, Source};
