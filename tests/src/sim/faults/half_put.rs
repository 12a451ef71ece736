//! An upload breaks off, and the store keeps what it has, as a local file system does.

use super::super::dice::Dice;
use super::super::network::{Answer, Arrival, Failure, Fate, Kind};
use super::Fault;

/// Half of the object is there; the connection breaks.
#[derive(Debug, Clone, Copy)]
pub struct HalfPut;

impl Fault for HalfPut {
    fn name(&self) -> &'static str {
        "half-put"
    }

    fn meets(&self, kind: Kind) -> bool {
        kind == Kind::Put
    }

    fn strike(&self, _dice: &Dice, fate: &mut Fate) {
        fate.arrival = Arrival::Half;
        fate.answer = Answer::Failure(Failure::Broken);
    }
}
