//! What another engine does to rows: deletes of every kind, in whatever way it keeps them, and its own rewrites.

use iceberg::spec::FormatVersion;

use super::super::dice::Dice;
use crate::foreign::{
    Compact, Deed, DeletionVectors, EqualityDelete, PositionDelete, RewritePositionDeletes, Scope,
    SequenceNumber, SwitchLine, Victims,
};

/// A deed that takes rows away, moves their deletes, or takes up another line of history.
pub(super) fn draw_delete(version: FormatVersion, dice: &Dice) -> Box<dyn Deed> {
    let victims = Victims::Random {
        files: usize::try_from(dice.within(1..4)).unwrap_or(1),
        rows: usize::try_from(dice.within(1..4)).unwrap_or(1),
    };
    let scope = dice.one_of(&[Scope::FileByBounds, Scope::FileByReference, Scope::Partition]);
    let sequence_number = dice.one_of(&[SequenceNumber::Kept, SequenceNumber::New]);
    match (dice.within(0..10), version) {
        (0..2, _) => Box::new(EqualityDelete { victims }),
        (2..3, _) => Box::new(Compact { min_files: 2 }),
        (3..5, _) => Box::new(SwitchLine),
        (_, FormatVersion::V3) => Box::new(DeletionVectors { victims }),
        (5..7, _) => Box::new(RewritePositionDeletes { sequence_number, victims }),
        _ => Box::new(PositionDelete { victims, scope }),
    }
}
