//! A listing ends early with an error.

use super::super::dice::Dice;
use super::super::network::{Arrival, Fate, Kind};
use super::Fault;

/// The first half of a listing, then an error.
#[derive(Debug, Clone, Copy)]
pub struct PartialList;

impl Fault for PartialList {
    fn name(&self) -> &'static str {
        "partial-list"
    }

    fn meets(&self, kind: Kind) -> bool {
        kind == Kind::List
    }

    fn strike(&self, _dice: &Dice, fate: &mut Fate) {
        fate.arrival = Arrival::Half;
    }
}
