//! The checkers, one per promise. A new one is a file with a type that implements [`Checker`](super::view::Checker),
//! and a line in [`all`].

mod rows;

use super::view::Checker;

/// One of each, as new.
#[must_use]
pub fn all() -> Vec<Box<dyn Checker>> {
    vec![Box::new(rows::EachOnce)]
}
