//! Rules about the sources that no compiler checks. Each rule is a function over its input that returns what breaks
//! it; each is tried on input that breaks it and on the tree itself.

mod directions;
mod paths;
mod protections;
mod sizes;
mod tree;
mod versions;
