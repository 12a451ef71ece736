//! The connection breaks before the request is through.

use super::super::dice::Dice;
use super::super::network::{Answer, Arrival, Failure, Fate, Kind};
use super::Fault;

/// Not applied; the connection breaks.
#[derive(Debug, Clone, Copy)]
pub struct LostOnTheWay;

impl Fault for LostOnTheWay {
    fn name(&self) -> &'static str {
        "lost-on-the-way"
    }

    fn meets(&self, _kind: Kind) -> bool {
        true
    }

    fn strike(&self, _dice: &Dice, fate: &mut Fate) {
        fate.arrival = Arrival::Lost;
        fate.answer = Answer::Failure(Failure::Broken);
    }
}
