//! The store takes its time with an object.

use super::super::dice::Dice;
use super::super::network::{Fate, Kind};
use super::Fault;

/// Written, after seconds.
#[derive(Debug, Clone, Copy)]
pub struct SlowPut;

impl Fault for SlowPut {
    fn name(&self) -> &'static str {
        "slow-put"
    }

    fn meets(&self, kind: Kind) -> bool {
        kind == Kind::Put
    }

    fn strike(&self, dice: &Dice, fate: &mut Fate) {
        fate.out += dice.millis(200..8_000);
    }
}
