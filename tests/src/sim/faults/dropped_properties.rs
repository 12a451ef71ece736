//! The catalog applies a commit and leaves out the properties that it sets.

use super::super::dice::Dice;
use super::super::network::{Fate, Kind};
use super::Fault;

/// Applied without its properties.
#[derive(Debug, Clone, Copy)]
pub struct DroppedProperties;

impl Fault for DroppedProperties {
    fn name(&self) -> &'static str {
        "dropped-properties"
    }

    fn meets(&self, kind: Kind) -> bool {
        kind == Kind::Commit
    }

    fn strike(&self, _dice: &Dice, fate: &mut Fate) {
        fate.drops_properties = true;
    }

    fn is_common(&self) -> bool {
        false
    }
}
