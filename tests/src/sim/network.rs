//! Requests between processes and servers. A request does not belong to its client: once it was sent it may be
//! applied, however the client fares.
//!
//! ```text
//! client ──out──▶ server applies ──back──▶ client
//!           ▲           ▲            ▲
//!           └── faults change the fate of a request before it is sent
//! ```

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::dice::Dice;
use super::faults::{self, Fault};
use super::life::Life;
use super::meter::Meter;
use super::records::{At, Role, Who};
use super::world::World;

/// A request, as faults and people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What is asked.
    pub kind: Kind,
    /// Of what: a table, a location.
    pub target: String,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The catalog: compare and set.
    Commit,
    /// The catalog: the table as it is.
    Load,
    /// The store: a new object.
    Put,
    /// The store: an object, or a part of it.
    Get,
    /// The store: an object is to go.
    Delete,
    /// The store: what is there.
    List,
}

impl Kind {
    /// Whether the catalog is asked; otherwise the store.
    #[must_use]
    pub fn is_catalog(self) -> bool {
        matches!(self, Self::Commit | Self::Load)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.kind {
            Kind::Commit => "commit",
            Kind::Load => "load",
            Kind::Put => "put",
            Kind::Get => "get",
            Kind::Delete => "delete",
            Kind::List => "list",
        };
        write!(f, "{verb} {}", self.target)
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// From the client to the server.
    pub out: Duration,
    /// From the server to the client.
    pub back: Duration,
    /// What the server gets.
    pub arrival: Arrival,
    /// What the client gets.
    pub answer: Answer,
    /// When the client gets it, counted from when it asked, where it does not wait for the server.
    pub early: Option<Duration>,
    /// Whether the catalog leaves out the properties that a commit sets.
    pub drops_properties: bool,
}

/// What the server gets of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// All of it.
    Whole,
    /// The first half of the object.
    Half,
    /// Nothing.
    Lost,
}

/// What the client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// What the server says.
    True,
    /// A failure instead.
    Failure(Failure),
    /// Nothing, ever.
    Never,
}

/// A failure as a client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The connection broke.
    Broken,
    /// 5xx.
    Server(u16),
    /// 429 or 503, with the wait that the server asks for.
    Throttled(Duration),
    /// 409.
    Conflict,
    /// 401.
    Unauthorized,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken => f.write_str("the connection broke"),
            Self::Server(status) => write!(f, "the server answered {status}"),
            Self::Throttled(wait) => write!(f, "the server answered 429, retry after {wait:?}"),
            Self::Conflict => f.write_str("the server answered 409"),
            Self::Unauthorized => f.write_str("the server answered 401"),
        }
    }
}

/// A fault that a scenario asks for.
#[derive(Debug, Clone)]
struct Ordered {
    kind: Kind,
    role: Role,
    target: String,
    fault: &'static str,
}

/// The faults in force, and the dice that decide the fate of requests.
#[derive(Debug)]
pub struct Network {
    dice: Dice,
    faults: Vec<Box<dyn Fault>>,
    state: Mutex<State>,
    meter: Meter,
}

#[derive(Debug, Default)]
struct State {
    /// The chance of each fault, in the order of the faults.
    chances: Vec<f64>,
    /// Until when each fault meets every request that it can meet.
    spells: Vec<At>,
    ordered: Vec<Ordered>,
}

impl Network {
    pub(super) fn new(dice: Dice) -> Self {
        let faults = faults::all();
        let state = State {
            chances: vec![0.0; faults.len()],
            spells: vec![At::ZERO; faults.len()],
            ordered: Vec::new(),
        };
        Self { dice, faults, state: Mutex::new(state), meter: Meter::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was sent.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Sets the chance with which requests meet a fault.
    pub fn set_chance(&self, fault: &str, chance: f64) {
        if let Some(index) = self.faults.iter().position(|known| known.name() == fault) {
            self.state().chances[index] = chance;
        }
    }

    /// From now on nothing goes wrong.
    pub fn calm(&self) {
        let mut state = self.state();
        state.chances.fill(0.0);
        state.spells.fill(At::ZERO);
        state.ordered.clear();
    }

    /// The next request of this kind, by a process of this role and on a target that contains this text, meets a
    /// fault. Asked for several times, several do.
    pub fn order(&self, (role, kind): (Role, Kind), target: &str, fault: &'static str) {
        self.state().ordered.push(Ordered { kind, role, target: target.to_owned(), fault });
    }

    /// Faults that were asked for and did not come yet.
    #[must_use]
    pub fn outstanding_orders(&self) -> usize {
        self.state().ordered.len()
    }

    /// The fate of a request, and the faults that shaped it.
    fn fate(&self, now: At, who: &Who, request: &Request) -> (Fate, Vec<&'static str>) {
        let mut fate = self.usual(request.kind);
        let mut struck = Vec::new();
        let mut state = self.state();
        let ordered = state.take_order(who, request);
        for (index, fault) in self.faults.iter().enumerate().filter(|(_, fault)| fault.meets(request.kind)) {
            let asked_for = ordered == Some(fault.name());
            let in_spell = now < state.spells[index];
            let by_chance = state.chances[index] > 0.0 && self.dice.chance(state.chances[index]);
            if !(asked_for || in_spell || by_chance) {
                continue;
            }
            if !in_spell {
                state.spells[index] = now + fault.spell(&self.dice);
            }
            fault.strike(&self.dice, &mut fate);
            struck.push(fault.name());
            // One at a time: each fault is understood alone, and two that meet would often be a third.
            break;
        }
        (fate, struck)
    }

    fn usual(&self, kind: Kind) -> Fate {
        let (out, back) = match kind {
            Kind::Commit => (self.dice.millis(2..25), self.dice.millis(2..25)),
            Kind::Load => (self.dice.millis(1..10), self.dice.millis(1..10)),
            Kind::Put => (self.dice.millis(2..20), self.dice.millis(1..10)),
            _ => (self.dice.millis(1..8), self.dice.millis(1..5)),
        };
        Fate {
            out,
            back,
            arrival: Arrival::Whole,
            answer: Answer::True,
            early: None,
            drops_properties: false,
        }
    }
}

impl State {
    fn take_order(&mut self, who: &Who, request: &Request) -> Option<&'static str> {
        let meant = |order: &Ordered| {
            order.kind == request.kind && order.role == who.role && request.target.contains(&order.target)
        };
        let index = self.ordered.iter().position(meant)?;
        Some(self.ordered.remove(index).fault)
    }
}

/// A client gives up a request after this time.
const CLIENT_DEADLINE: Duration = Duration::from_secs(30);

/// The way from one process to the servers.
#[derive(Debug, Clone)]
pub struct Link {
    pub(super) world: World,
    pub(super) who: Who,
    pub(super) life: Life,
}

impl Link {
    /// Sends a request. `serve` is what the server does when it arrives, in one step.
    ///
    /// # Errors
    /// What a fault tells the client instead.
    pub async fn call<T: Send + 'static>(
        &self,
        request: Request,
        serve: impl FnOnce(&World, &Fate) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        self.life.point().await;
        self.world.network().meter().count(self.who.role, request.kind);
        let (fate, struck) = self.world.network().fate(self.world.now(), &self.who, &request);
        for fault in struck {
            self.world.note_fault(&self.who, fault, (&request, fate.answer));
        }
        // As HTTP clients do, whoever uses them.
        let answer = tokio::time::timeout(CLIENT_DEADLINE, self.deliver(fate, serve)).await;
        let answer = answer.unwrap_or(Err(Failure::Broken));
        self.life.point().await;
        answer
    }

    async fn deliver<T: Send + 'static>(
        &self,
        fate: Fate,
        serve: impl FnOnce(&World, &Fate) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let Fate { out, back, arrival, answer, early, .. } = fate;
        let (reply, served) = oneshot::channel();
        if arrival != Arrival::Lost {
            let world = self.world.clone();
            self.world.spawn_request(async move {
                tokio::time::sleep(out).await;
                let served = serve(&world, &fate);
                tokio::time::sleep(back).await;
                // The client may be gone.
                let _ = reply.send(served);
            });
        }
        if answer == Answer::Never {
            return std::future::pending().await;
        }
        match (early, answer) {
            (Some(early), Answer::Failure(failure)) => {
                tokio::time::sleep(early).await;
                Err(failure)
            }
            (None, Answer::Failure(failure)) if arrival == Arrival::Lost => {
                tokio::time::sleep(out + back).await;
                Err(failure)
            }
            (_, answer) => match (served.await, answer) {
                (Ok(served), Answer::True) => Ok(served),
                (_, Answer::Failure(failure)) => Err(failure),
                // The run is over.
                _ => std::future::pending().await,
            },
        }
    }
}
