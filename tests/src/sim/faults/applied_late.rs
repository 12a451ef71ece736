//! The client is told that the connection broke, and the request is forwarded seconds later.

use std::time::Duration;

use super::super::dice::Dice;
use super::super::network::{Answer, Failure, Fate, Kind};
use super::Fault;

/// Given up by the client; applied later.
#[derive(Debug, Clone, Copy)]
pub struct AppliedLate;

impl Fault for AppliedLate {
    fn name(&self) -> &'static str {
        "applied-late"
    }

    fn meets(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Commit | Kind::Put | Kind::Delete)
    }

    fn strike(&self, dice: &Dice, fate: &mut Fate) {
        fate.early = Some(fate.out + fate.back);
        // Mostly soon enough to meet the next attempts, sometimes much later.
        let late = dice.one_of(&[20, 100, 500, 2_000, 20_000]);
        fate.out += Duration::from_millis(late);
        fate.answer = Answer::Failure(Failure::Broken);
    }
}
