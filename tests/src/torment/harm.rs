//! What is done to a world, and how it is undone.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::world::World;

/// Something bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// A writer is killed.
    KillWriter,
    /// The compactor is killed.
    KillCompactor,
    /// A writer and the compactor are killed at once.
    KillBoth,
    /// A writer sleeps for longer than its session lasts, and wakes up.
    PauseWriter,
    /// The compactor sleeps, and wakes up.
    PauseCompactor,
    /// A broker is killed, and started again. Of three, partitions get other leaders.
    RestartBroker,
    /// The catalog is there and does not answer: its process sleeps, or another process has locked its file.
    PauseCatalog,
    /// The catalog's process is killed, and started again.
    RestartCatalog,
    /// Nothing can be written where the tables are.
    ReadOnlyWarehouse,
    /// There is no room where the tables are.
    FullWarehouse,
    /// A writer is stopped in good order, and started again.
    RestartWriter,
}

impl Harm {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::KillWriter,
        Self::KillCompactor,
        Self::KillBoth,
        Self::PauseWriter,
        Self::PauseCompactor,
        Self::RestartBroker,
        Self::PauseCatalog,
        Self::RestartCatalog,
        Self::ReadOnlyWarehouse,
        Self::FullWarehouse,
        Self::RestartWriter,
    ];

    /// Does it, for some time where it lasts, and ends it.
    pub(super) async fn inflict(
        self,
        world: &mut World,
        length: Duration,
        random: &mut ChaCha8Rng,
    ) -> Result<()> {
        world.note(format!("{self} ({length:.1?})"));
        let writer = random.random_range(0..world.writers.len());
        match self {
            Self::KillWriter => world.writers[writer].kill().map(drop)?,
            Self::KillCompactor => kill_compactor(world, random).await?,
            Self::KillBoth => {
                kill_compactor(world, random).await?;
                world.writers[writer].kill()?;
            }
            Self::PauseWriter => {
                world.writers[writer].pause()?;
                world.wait(length).await?;
                world.writers[writer].wake()?;
            }
            Self::PauseCompactor => {
                world.compactor.pause()?;
                world.wait(length).await?;
                world.compactor.wake()?;
            }
            Self::RestartBroker => {
                let node = random.random_range(1..=world.brokers());
                world.cluster.kill(node)?;
                world.wait(length).await?;
                world.cluster.start_again()?;
            }
            Self::PauseCatalog => {
                let paused = world.catalog.pause()?;
                world.wait(length).await?;
                world.catalog.wake(paused)?;
            }
            Self::RestartCatalog => {
                world.catalog.kill()?;
                world.wait(length).await?;
                world.catalog.start_again()?;
            }
            Self::ReadOnlyWarehouse => {
                world.place.set_read_only()?;
                world.wait(length).await?;
                world.place.set_writable()?;
            }
            Self::FullWarehouse => full(world, length).await?,
            Self::RestartWriter => world.writers[writer].stop(crate::stream::LIMIT).await?,
        }
        world.note(format!("{self} is over"));
        Ok(())
    }
}

/// The compactor runs again and again: somewhere in its run.
async fn kill_compactor(world: &mut World, random: &mut ChaCha8Rng) -> Result<()> {
    world.wait(Duration::from_millis(random.random_range(50..800))).await?;
    world.compactor.kill().map(drop)
}

/// Files that are deleted meanwhile leave no room either.
async fn full(world: &mut World, length: Duration) -> Result<()> {
    world.place.fill()?;
    let step = Duration::from_millis(200);
    let mut left = length;
    while !left.is_zero() {
        world.wait(step.min(left)).await?;
        world.place.top_up()?;
        left = left.saturating_sub(step);
    }
    world.place.make_room()
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KillWriter => "kill a writer",
            Self::KillCompactor => "kill the compactor",
            Self::KillBoth => "kill a writer and the compactor",
            Self::PauseWriter => "pause a writer",
            Self::PauseCompactor => "pause the compactor",
            Self::RestartBroker => "kill and restart a broker",
            Self::PauseCatalog => "pause the catalog",
            Self::RestartCatalog => "kill and restart the catalog",
            Self::ReadOnlyWarehouse => "a warehouse that is read-only",
            Self::FullWarehouse => "a warehouse that is full",
            Self::RestartWriter => "stop and restart a writer",
        })
    }
}
