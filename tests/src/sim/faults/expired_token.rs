//! The client's token has expired: the server says 401, and takes the next token.

use super::super::dice::Dice;
use super::super::network::{Answer, Arrival, Failure, Fate, Kind};
use super::Fault;

/// Not applied; 401.
#[derive(Debug, Clone, Copy)]
pub struct ExpiredToken;

impl Fault for ExpiredToken {
    fn name(&self) -> &'static str {
        "expired-token"
    }

    fn meets(&self, kind: Kind) -> bool {
        kind.is_catalog()
    }

    fn strike(&self, _dice: &Dice, fate: &mut Fate) {
        fate.arrival = Arrival::Lost;
        fate.answer = Answer::Failure(Failure::Unauthorized);
    }
}
