//! The server is overloaded and says so, for a while.

use std::time::Duration;

use super::super::dice::Dice;
use super::super::network::{Answer, Arrival, Failure, Fate, Kind};
use super::Fault;

/// Not applied; 429 with Retry-After, to everybody, for up to half a minute.
#[derive(Debug, Clone, Copy)]
pub struct Throttled;

impl Fault for Throttled {
    fn name(&self) -> &'static str {
        "throttled"
    }

    fn meets(&self, kind: Kind) -> bool {
        kind.is_catalog()
    }

    fn strike(&self, dice: &Dice, fate: &mut Fate) {
        fate.arrival = Arrival::Lost;
        fate.answer = Answer::Failure(Failure::Throttled(Duration::from_secs(dice.within(0..4))));
    }

    fn spell(&self, dice: &Dice) -> Duration {
        Duration::from_millis(dice.one_of(&[0, 0, 0, 500, 500, 3_000, 3_000, 30_000]))
    }
}
