//! The server, or a proxy before it, answers 5xx: whether it did what was asked is another matter.

use super::super::dice::Dice;
use super::super::network::{Answer, Arrival, Failure, Fate, Kind};
use super::Fault;

const STATUSES: [u16; 4] = [500, 502, 503, 504];

/// Not applied; 5xx.
#[derive(Debug, Clone, Copy)]
pub struct ServerError;

impl Fault for ServerError {
    fn name(&self) -> &'static str {
        "server-error"
    }

    fn meets(&self, _kind: Kind) -> bool {
        true
    }

    fn strike(&self, dice: &Dice, fate: &mut Fate) {
        fate.arrival = Arrival::Lost;
        fate.answer = Answer::Failure(Failure::Server(dice.one_of(&STATUSES)));
    }
}

/// Applied; 5xx.
#[derive(Debug, Clone, Copy)]
pub struct AppliedThenServerError;

impl Fault for AppliedThenServerError {
    fn name(&self) -> &'static str {
        "applied-then-5xx"
    }

    fn meets(&self, kind: Kind) -> bool {
        kind == Kind::Commit
    }

    fn strike(&self, dice: &Dice, fate: &mut Fate) {
        fate.answer = Answer::Failure(Failure::Server(dice.one_of(&STATUSES)));
    }
}
