//! Another engine on the table, with code of its own.

use std::sync::Arc;
use std::time::Duration;

use firn_table::Result;
use iceberg::spec::{FormatVersion, PrimitiveType, Transform};

use super::super::dice::Dice;
use super::super::process::{Hardship, Next, Process, supervise};
use super::super::records::Role;
use super::super::world::World;
use super::deletes::draw_delete;
use crate::foreign::{AddColumn, Append, ChangeSpec, Deed, Engine, Expire, Outcome, RollBack};

/// What the other engine does.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignPlan {
    /// The longest time between two deeds, in milliseconds.
    pub pause_ms: u64,
    /// Whether it takes the table back to earlier snapshots.
    pub rolls_back: bool,
    /// Whether it expires snapshots.
    pub expires: bool,
    /// Whether it deletes rows, and in the ways of which format version.
    pub deletes: Option<FormatVersion>,
}

impl ForeignPlan {
    pub(in super::super) fn draw(dice: &Dice) -> Self {
        Self {
            pause_ms: dice.one_of(&[1_000, 4_000]),
            rolls_back: dice.chance(0.4),
            expires: dice.chance(0.5),
            deletes: None,
        }
    }
}

/// Changes the table until faults are over.
pub async fn foreign(world: World, name: String, plan: ForeignPlan) {
    let work = |process: Process| {
        let plan = plan.clone();
        async move { change_again_and_again(&process, &plan).await }
    };
    let after = |_: &Result<()>| Next::Leave;
    supervise(world, (Role::Foreign, name), Hardship::NONE, work, after).await;
}

async fn change_again_and_again(process: &Process, plan: &ForeignPlan) -> Result<()> {
    let world = process.world().clone();
    let dice = world.dice(&format!("deeds of {}", process.who.name));
    let clock = process.surroundings.clone();
    let mut engine = Engine::new(
        process.catalog(),
        process.stores(),
        world.ident().clone(),
        dice.number(),
        Arc::new(move || clock.now_ms()),
    );
    let mut next_id = -1_000_000;
    loop {
        tokio::select! {
            biased;
            () = world.quiet().cancelled() => return Ok(()),
            () = tokio::time::sleep(Duration::from_millis(dice.within(100..plan.pause_ms))) => {}
        }
        let deed = draw_deed(plan, &dice, &mut next_id);
        let done = match &deed {
            Drawn::Deed(deed) => engine.perform(deed.as_ref()).await,
            Drawn::Expire(expire) => engine.expire(expire).await,
        };
        let told = match done {
            Ok(Outcome::Done(_)) => "done".to_owned(),
            Ok(outcome) => format!("{outcome:?}"),
            Err(error) => format!("failed: {error:#}"),
        };
        world.note(&process.who, format!("told: {deed:?} {told}"));
    }
}

#[derive(Debug)]
enum Drawn {
    Deed(Box<dyn Deed>),
    Expire(Expire),
}

fn draw_deed(plan: &ForeignPlan, dice: &Dice, next_id: &mut i64) -> Drawn {
    if let Some(version) = plan.deletes.filter(|_| dice.chance(0.6)) {
        return Drawn::Deed(draw_delete(version, dice));
    }
    loop {
        return Drawn::Deed(match dice.within(0..12) {
            0 => Box::new(AddColumn { name: format!("c{}", dice.within(0..5)), kind: PrimitiveType::Int }),
            1 => Box::new(ChangeSpec {
                column: "kind".to_owned(),
                transform: dice.one_of(&[Transform::Identity, Transform::Bucket(2), Transform::Truncate(2)]),
            }),
            2 if plan.rolls_back => {
                Box::new(RollBack::Steps(usize::try_from(dice.within(1..4)).unwrap_or(1)))
            }
            3 if plan.expires => {
                return Drawn::Expire(Expire { keep: usize::try_from(dice.within(1..6)).unwrap_or(1) });
            }
            4..=9 => {
                let rows = i64::try_from(dice.within(1..6)).unwrap_or(1);
                let ids = *next_id..*next_id + rows;
                *next_id += rows;
                Box::new(Append { ids })
            }
            _ => continue,
        });
    }
}
