//! The checkers, one per promise. A new one is a file with a type that implements [`Checker`](super::view::Checker),
//! and a line in [`all`].
//!
//! | file | what must hold |
//! | --- | --- |
//! | `w1` | every offset that the ledger covers is in the table or declared rejected, once |
//! | `w2` | cursors only grow |
//! | `w3` | rows become visible in time |
//! | `w5` | an overtaken flush never lands |
//! | `c1` | a replace leaves the multiset of rows unchanged |
//! | `c2` | no file is in two running groups |
//! | `c3` | there is nothing to plan right after a rewrite |
//! | `c4` | bytes rewritten stay under the bound |
//! | `c5` | every file of a live snapshot exists |
//! | `c6` | the ledger is untouched by maintenance |
//! | `totals` | summaries equal a recount |
//! | `manifests` | manifests obey the rules of sequence numbers and of carrying on |
//! | `revoke` | a revoke that was answered leaves nothing behind |
//! | `stops` | nobody stops without reason |
//! | `litter` | nothing unreferenced is left that firn wrote |
//!
//! They share what they read ([`lake`]) and what was produced ([`messages`]). The first that finds something ends the
//! run, so those that tell most about the cause come first.

mod c1;
mod c2;
mod c3;
mod c4;
mod c5;
mod c6;
pub mod lake;
mod litter;
mod manifests;
pub mod messages;
mod revoke;
mod stops;
mod totals;
mod w1;
mod w2;
mod w3;
mod w5;

use super::view::Checker;
use lake::Lake;

pub use c1::C1;
pub use c2::C2;
pub use c3::C3;
pub use c4::C4;
pub use c5::C5;
pub use c6::C6;
pub use litter::Litter;
pub use manifests::Manifests;
pub use revoke::Revoke;
pub use stops::Stops;
pub use totals::Totals;
pub use w1::W1;
pub use w2::W2;
pub use w3::W3;
pub use w5::W5;

/// One of each, as new.
#[must_use]
pub fn all() -> Vec<Box<dyn Checker>> {
    let lake = Lake::default();
    vec![
        Box::new(W5),
        Box::new(W1::new(&lake)),
        Box::new(W2),
        Box::new(C1::new(&lake)),
        Box::new(C2),
        Box::new(C3::new(&lake)),
        Box::new(C4::new(&lake)),
        Box::new(C5::new(&lake)),
        Box::new(C6),
        Box::new(Manifests::new(&lake)),
        Box::new(Totals::new(&lake)),
        Box::new(Revoke::default()),
        Box::new(Stops::default()),
        Box::new(W3::default()),
        Box::new(Litter::new(&lake)),
    ]
}
