//! A proxy sends a commit twice and hands on the second reply.

use super::super::dice::Dice;
use super::super::network::{Answer, Failure, Fate, Kind};
use super::Fault;

/// Applied; 409.
#[derive(Debug, Clone, Copy)]
pub struct AppliedThenConflict;

impl Fault for AppliedThenConflict {
    fn name(&self) -> &'static str {
        "applied-then-409"
    }

    fn meets(&self, kind: Kind) -> bool {
        kind == Kind::Commit
    }

    fn strike(&self, _dice: &Dice, fate: &mut Fate) {
        fate.answer = Answer::Failure(Failure::Conflict);
    }
}
