//! The request is applied, and the connection breaks before the reply is through.

use super::super::dice::Dice;
use super::super::network::{Answer, Failure, Fate, Kind};
use super::Fault;

/// Applied; the connection breaks.
#[derive(Debug, Clone, Copy)]
pub struct ReplyLost;

impl Fault for ReplyLost {
    fn name(&self) -> &'static str {
        "reply-lost"
    }

    fn meets(&self, kind: Kind) -> bool {
        kind != Kind::List
    }

    fn strike(&self, _dice: &Dice, fate: &mut Fate) {
        fate.answer = Answer::Failure(Failure::Broken);
    }
}
