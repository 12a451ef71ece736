//! A process of the run: its clock, its way to the servers, and what it can be told to do.

use std::sync::Arc;
use std::time::Duration;

use firn_table::catalog::CommitCatalog;
use firn_table::commit::{CommitLimits, TableHandle};
use firn_table::storage::Stores;
use firn_table::{Result, Surroundings};

use super::client_catalog::ClientCatalog;
use super::client_store::client_stores;
use super::dice::Dice;
use super::life::{Destiny, Life, LifeEnd};
use super::network::Link;
use super::records::{Role, Tale, Who};
use super::world::World;

/// A process. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Process {
    /// What it is.
    pub who: Who,
    /// Its way to the servers.
    pub link: Link,
    /// Its clock and randomness.
    pub surroundings: Surroundings,
}

/// How many of the processes of an actor crash or are not scheduled for a while, and where their clocks are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hardship {
    /// The share of processes that crash at some point.
    pub crashes: f64,
    /// The share that is not scheduled for a while.
    pub pauses: f64,
    /// The point, at most, at which it happens.
    pub within_points: u64,
    /// The longest difference between a process' clock and the true time, in milliseconds.
    pub clock_ms: u64,
}

impl Hardship {
    /// Nothing happens, and clocks are right.
    pub const NONE: Self = Self { crashes: 0.0, pauses: 0.0, within_points: 1, clock_ms: 0 };

    fn destiny(&self, dice: &Dice) -> Destiny {
        // Early points are where most is begun, so half of all falls there.
        let points = if dice.chance(0.5) { self.within_points } else { self.within_points / 8 };
        let crash_at = dice.chance(self.crashes).then(|| dice.within(1..points.max(2)));
        let pause_at = dice.chance(self.pauses).then(|| {
            let time = dice.one_of(&[300, 2_000, 15_000, 45_000]);
            (dice.within(1..points.max(2)), Duration::from_millis(time))
        });
        Destiny { crash_at, pause_at }
    }

    /// How far a process' clock is from the true time.
    fn clock(&self, dice: &Dice) -> i64 {
        let span = dice.within(0..2 * self.clock_ms + 1);
        i64::try_from(span).unwrap_or(0) - i64::try_from(self.clock_ms).unwrap_or(0)
    }
}

impl Process {
    /// A process with this destiny, whose clock differs from the true time by this many milliseconds.
    #[must_use]
    pub fn new(world: &World, who: Who, destiny: Destiny, clock_ms: i64) -> Self {
        let (told, name) = (world.clone(), who.clone());
        let life = Life::new(destiny).telling(move |tale| told.tell(&name, tale));
        let surroundings = world.surroundings(&who.name, clock_ms);
        Self { link: world.link(who.clone(), life), who, surroundings }
    }

    /// The world it lives in.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.link.world
    }

    /// Its life.
    #[must_use]
    pub fn life(&self) -> &Life {
        &self.link.life
    }

    /// The stores, through its link.
    #[must_use]
    pub fn stores(&self) -> Stores {
        client_stores(&self.link)
    }

    /// The catalog, through its link.
    #[must_use]
    pub fn catalog(&self) -> Arc<dyn CommitCatalog> {
        Arc::new(ClientCatalog::new(self.link.clone(), self.stores()))
    }

    /// Opens the table.
    ///
    /// # Errors
    /// As [`TableHandle::open`].
    pub async fn open(&self) -> Result<TableHandle> {
        self.open_branch("main").await
    }

    /// Opens a branch of the table.
    ///
    /// # Errors
    /// As [`TableHandle::open`].
    pub async fn open_branch(&self, branch: &str) -> Result<TableHandle> {
        let ident = self.world().ident().clone();
        let handle = TableHandle::open(self.catalog(), self.stores(), ident, branch).await?;
        let limits = CommitLimits {
            request_timeout: REQUEST_TIMEOUT,
            deadline: Some(Duration::from_secs(120)),
            ..handle.limits().clone()
        };
        Ok(handle.with_limits(limits).with_surroundings(self.surroundings.clone()))
    }

    /// Runs it until it ends or crashes, and tells of both.
    pub async fn live(&self, work: impl Future<Output = Result<()>>) -> Option<Result<()>> {
        self.world().tell(&self.who, Tale::Started);
        match self.life().live(work).await {
            LifeEnd::Returned(result) => {
                let told = result.as_ref().copied().map_err(|error| (error.kind(), error.to_string()));
                self.world().tell(&self.who, Tale::Ended(told));
                Some(result)
            }
            LifeEnd::Crashed => {
                self.world().tell(&self.who, Tale::Crashed);
                None
            }
        }
    }
}

/// A request of a simulated process has its answer within this time, or is given up. Short, so that a run holds many.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

/// What a supervisor does after a process ended or crashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It starts another.
    Restart,
    /// A person would have to do something: it leaves it.
    Leave,
}

/// Starts a process again whenever it ends, as an orchestrator does, until the run ends. `after` decides what follows
/// from an end; a crash is always followed by another process.
pub async fn supervise<W, F>(
    world: World,
    (role, name): (Role, String),
    hardship: Hardship,
    work: W,
    after: impl Fn(&Result<()>) -> Next,
) where
    W: Fn(Process) -> F,
    F: Future<Output = Result<()>>,
{
    let dice = world.dice(&format!("life of {name}"));
    for number in 1_u32.. {
        let own_name = if number == 1 { name.clone() } else { format!("{name}'{number}") };
        let destiny = if world.quiet().is_cancelled() { Destiny::default() } else { hardship.destiny(&dice) };
        let who = Who { role, name: own_name };
        let process = Process::new(&world, who, destiny, hardship.clock(&dice));
        let ended = process.live(work(process.clone())).await;
        if world.stop().is_cancelled() || ended.as_ref().is_some_and(|ended| after(ended) == Next::Leave) {
            return;
        }
        tokio::select! {
            biased;
            () = world.stop().cancelled() => return,
            () = tokio::time::sleep(dice.millis(50..5_000)) => {}
        }
    }
}
