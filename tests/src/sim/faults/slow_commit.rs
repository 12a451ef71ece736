//! The catalog takes its time with a commit, and others commit meanwhile.

use super::super::dice::Dice;
use super::super::network::{Fate, Kind};
use super::Fault;

/// Judged after up to seconds, and answered within the client's deadline.
#[derive(Debug, Clone, Copy)]
pub struct SlowCommit;

impl SlowCommit {
    /// Its name: nothing is in doubt after it, so it excuses nothing.
    pub const NAME: &str = "slow-commit";
}

impl Fault for SlowCommit {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn meets(&self, kind: Kind) -> bool {
        kind == Kind::Commit
    }

    fn strike(&self, dice: &Dice, fate: &mut Fate) {
        fate.out += dice.millis(500..3_500);
    }
}
