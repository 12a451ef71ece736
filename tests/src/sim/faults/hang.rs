//! The connection stays open and no answer comes: the client's deadline has to fire.

use super::super::dice::Dice;
use super::super::network::{Answer, Arrival, Fate, Kind};
use super::Fault;

/// Not applied; no answer.
#[derive(Debug, Clone, Copy)]
pub struct Hangs;

impl Fault for Hangs {
    fn name(&self) -> &'static str {
        "hangs"
    }

    fn meets(&self, kind: Kind) -> bool {
        kind.is_catalog()
    }

    fn strike(&self, _dice: &Dice, fate: &mut Fate) {
        fate.arrival = Arrival::Lost;
        fate.answer = Answer::Never;
    }
}

/// Applied; no answer.
#[derive(Debug, Clone, Copy)]
pub struct AppliedThenHangs;

impl Fault for AppliedThenHangs {
    fn name(&self) -> &'static str {
        "applied-then-hangs"
    }

    fn meets(&self, kind: Kind) -> bool {
        kind == Kind::Commit
    }

    fn strike(&self, _dice: &Dice, fate: &mut Fate) {
        fate.answer = Answer::Never;
    }
}
