//! Torment: writers and a compactor on real servers, while everything around them is killed, paused and taken away, one
//! thing after the other under a seed, and a recount at the end.
//!
//! | module | subject |
//! | --- | --- |
//! | `harm` | what is done, and how it is undone |
//! | `world` | the broker, the catalog, the stream, the processes; the recount |
//! | `supervised` | a process that is started again when it ends, as a service manager does |
//! | `place` | a file system of its own for the tables, which can become full or read-only |
//! | `history` | what was done when |
//!
//! A run produces all the time. It does one [`Harm`], ends it, and waits until the table has caught up with what had
//! been produced by then: that time is bounded. At its end everything stops in good order, and all that was produced
//! must be in the table once, by the rows, by their offsets, by the ledger, and by what the checks find.

mod harm;
mod history;
mod place;
mod supervised;
mod world;

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use harm::Harm;
pub use world::CatalogKind;

use crate::kafka::Brokers;
use world::World;

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Under which harms, their order and their lengths are drawn.
    pub seed: u64,
    /// The catalog.
    pub catalog: CatalogKind,
    /// How many brokers.
    pub brokers: Brokers,
    /// What is done.
    pub harms: Harms,
    /// The shortest and the longest time for which something is paused or taken away.
    pub lengths: (Duration, Duration),
}

/// Which harms a run does.
#[derive(Debug, Clone)]
pub enum Harms {
    /// Each of these once, in an order of the seed.
    Each(Vec<Harm>),
    /// Any that are possible there, for so long.
    Any(Duration),
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// How long it took.
    pub took: Duration,
    /// Events that were produced, and are in the table once.
    pub events: u64,
    /// Harms that were done.
    pub harms: usize,
    /// Processes that were started, the first ones and those that followed.
    pub starts: u64,
    /// Compactions that came to their end.
    pub compactions: u64,
    /// Requests to the catalog that were lost, repeated or delayed; none where no proxy stands before it.
    pub touched_requests: Option<usize>,
    /// The longest time from the end of a harm until the table had caught up.
    pub longest_recovery: Duration,
    /// Harms that this machine does not allow, with the reason.
    pub left_out: Vec<String>,
}

/// Runs to the end.
///
/// # Errors
/// The first thing that is wrong, with the seed and what was done when.
pub async fn run(test: &str, setting: Setting) -> Result<Outcome> {
    let seed = setting.seed;
    let mut world = World::start(test, &setting).await.with_context(|| format!("seed {seed}"))?;
    let ran = run_in(&mut world, &setting).await;
    ran.with_context(|| format!("seed {seed}; what was done:\n{}", world.history()))
}

async fn run_in(world: &mut World, setting: &Setting) -> Result<Outcome> {
    let began = Instant::now();
    let mut random = ChaCha8Rng::seed_from_u64(setting.seed);
    let (mut harms, mut longest_recovery) = (0, Duration::ZERO);
    let mut next = Script::new(&setting.harms, world, &mut random);
    while let Some(harm) = next.take(began, &mut random) {
        let (shortest, longest) = setting.lengths;
        let length = random.random_range(shortest..=longest);
        world.wait(Duration::from_millis(random.random_range(100..1_500))).await?;
        harm.inflict(world, length, &mut random).await.with_context(|| format!("{harm}"))?;
        let recovered = world.recover().await.with_context(|| format!("after {harm}"))?;
        longest_recovery = longest_recovery.max(recovered);
        harms += 1;
    }
    let events = world.finish().await?;
    Ok(Outcome {
        seed: setting.seed,
        took: began.elapsed(),
        events,
        harms,
        starts: world.starts(),
        compactions: world.compactions(),
        touched_requests: world.touched_requests()?,
        longest_recovery,
        left_out: world.left_out().to_vec(),
    })
}

/// The harms to come.
#[derive(Debug)]
enum Script {
    Rest(Vec<Harm>),
    Until(Duration, Vec<Harm>),
}

impl Script {
    fn new(harms: &Harms, world: &mut World, random: &mut ChaCha8Rng) -> Self {
        match harms {
            Harms::Each(wanted) => {
                let mut possible: Vec<Harm> =
                    wanted.iter().copied().filter(|harm| world.allows(*harm)).collect();
                possible.shuffle(random);
                Self::Rest(possible)
            }
            Harms::Any(length) => {
                Self::Until(*length, Harm::ALL.into_iter().filter(|harm| world.allows(*harm)).collect())
            }
        }
    }

    fn take(&mut self, began: Instant, random: &mut ChaCha8Rng) -> Option<Harm> {
        match self {
            Self::Rest(harms) => harms.pop(),
            Self::Until(length, harms) if began.elapsed() < *length => harms.choose(random).copied(),
            Self::Until(..) => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: {} events once, {} harms, {} starts, {} compactions, recovered within {:.1?}, {:.0?} in all",
            self.seed,
            self.events,
            self.harms,
            self.starts,
            self.compactions,
            self.longest_recovery,
            self.took
        )?;
        if let Some(requests) = self.touched_requests {
            write!(f, "; {requests} requests touched")?;
        }
        for reason in &self.left_out {
            write!(f, "; left out: {reason}")?;
        }
        Ok(())
    }
}
