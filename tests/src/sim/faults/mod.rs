//! The faults, one file each. A new one is a file with a type that implements [`Fault`], and a line in [`all`].

mod applied_late;
mod applied_then_conflict;
mod dropped_properties;
mod expired_token;
mod half_put;
mod hang;
mod lost_on_the_way;
mod partial_list;
mod reply_lost;
mod server_error;
mod slow_commit;
mod slow_put;
mod throttled;

use std::fmt;
use std::time::Duration;

use super::dice::Dice;
use super::network::{Fate, Kind};

pub use applied_late::AppliedLate;
pub use applied_then_conflict::AppliedThenConflict;
pub use dropped_properties::DroppedProperties;
pub use expired_token::ExpiredToken;
pub use half_put::HalfPut;
pub use hang::{AppliedThenHangs, Hangs};
pub use lost_on_the_way::LostOnTheWay;
pub use partial_list::PartialList;
pub use reply_lost::ReplyLost;
pub use server_error::{AppliedThenServerError, ServerError};
pub use slow_commit::SlowCommit;
pub use slow_put::SlowPut;
pub use throttled::Throttled;

/// Something that goes wrong between a process and a server: it changes the fate of a request.
pub trait Fault: fmt::Debug + Send + Sync {
    /// Its name, as it stands in histories and counts.
    fn name(&self) -> &'static str;

    /// Whether it can meet a request of this kind.
    fn meets(&self, kind: Kind) -> bool;

    /// Changes what becomes of a request.
    fn strike(&self, dice: &Dice, fate: &mut Fate);

    /// For how long it meets every request that it can meet, once it met one.
    fn spell(&self, _dice: &Dice) -> Duration {
        Duration::ZERO
    }

    /// Whether runs draw it by themselves. A fault after which a writer has to stop for good comes only where a
    /// profile or a scenario asks for it.
    fn is_common(&self) -> bool {
        true
    }
}

/// One of each.
#[must_use]
pub fn all() -> Vec<Box<dyn Fault>> {
    vec![
        Box::new(ReplyLost),
        Box::new(AppliedThenServerError),
        Box::new(AppliedThenConflict),
        Box::new(AppliedLate),
        Box::new(LostOnTheWay),
        Box::new(ServerError),
        Box::new(Throttled),
        Box::new(Hangs),
        Box::new(AppliedThenHangs),
        Box::new(SlowPut),
        Box::new(HalfPut),
        Box::new(PartialList),
        Box::new(DroppedProperties),
        Box::new(SlowCommit),
        Box::new(ExpiredToken),
    ]
}
