//! The world of a run: servers, network, log, records and checkers, and the one clock that is true.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use firn_table::Surroundings;
use firn_table::storage::Stores;
use firn_writer::source::memory::MemoryLog;
use futures::FutureExt;
use iceberg::TableIdent;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dice::Dice;
use super::history::{Entry, History};
use super::life::Life;
use super::network::{Answer, Link, Network, Request};
use super::records::{At, Commit, Records, Role, Struck, Tale, Told, Touched, Who};
use super::server::Server;
use super::view::{Checker, Setting, Step, View, Violation};

/// The wall clock when a run begins, in milliseconds since the epoch: the first day of 2026.
pub const EPOCH_MS: i64 = 1_767_225_600_000;

/// The world of a run. Clones are the same world.
#[derive(Debug, Clone)]
pub struct World {
    inner: Arc<Inner>,
}

struct Inner {
    dice: Dice,
    began: Instant,
    ident: TableIdent,
    /// Without faults.
    stores: Stores,
    log: MemoryLog,
    server: Server,
    network: Network,
    setting: Setting,
    books: Mutex<Books>,
    checkers: Mutex<Vec<Box<dyn Checker>>>,
    requests: AtomicUsize,
    /// Faults are over; what was produced is to be committed.
    quiet: CancellationToken,
    /// All actors are to end.
    stop: CancellationToken,
    /// A promise was broken: the run is over.
    broken: CancellationToken,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("ident", &self.ident).finish_non_exhaustive()
    }
}

/// What is written down.
#[derive(Debug, Default)]
struct Books {
    records: Records,
    history: History,
    violation: Option<Violation>,
    lives: Vec<Life>,
}

impl World {
    /// An empty world: no topic, no table. To be made in the runtime of the run, whose clock is paused.
    #[must_use]
    pub fn new(dice: &Dice, setting: Setting, checkers: Vec<Box<dyn Checker>>) -> Self {
        let stores = Stores::new(std::collections::HashMap::new());
        let inner = Inner {
            dice: dice.of("world"),
            began: Instant::now(),
            ident: TableIdent::from_strs(["n", "t"]).expect("two names"),
            server: Server::new(stores.clone(), dice.of("catalog")),
            stores,
            log: MemoryLog::default(),
            network: Network::new(dice.of("network")),
            setting,
            books: Mutex::default(),
            checkers: Mutex::new(checkers),
            requests: AtomicUsize::new(0),
            quiet: CancellationToken::new(),
            stop: CancellationToken::new(),
            broken: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.inner.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time since the run began.
    #[must_use]
    pub fn now(&self) -> At {
        self.inner.began.elapsed()
    }

    /// The table's name.
    #[must_use]
    pub fn ident(&self) -> &TableIdent {
        &self.inner.ident
    }

    /// The stores without faults.
    #[must_use]
    pub fn stores(&self) -> &Stores {
        &self.inner.stores
    }

    /// The topics and consumer groups.
    #[must_use]
    pub fn log(&self) -> &MemoryLog {
        &self.inner.log
    }

    /// The catalog without faults.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.inner.server
    }

    /// Faults and latencies.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.inner.network
    }

    /// What the run is made of.
    #[must_use]
    pub fn setting(&self) -> &Setting {
        &self.inner.setting
    }

    /// Randomness for one concern.
    #[must_use]
    pub fn dice(&self, concern: &str) -> Dice {
        self.inner.dice.of(concern)
    }

    /// Cancelled when faults are over.
    #[must_use]
    pub fn quiet(&self) -> &CancellationToken {
        &self.inner.quiet
    }

    /// Cancelled when all actors are to end in good order.
    #[must_use]
    pub fn stop(&self) -> &CancellationToken {
        &self.inner.stop
    }

    /// Cancelled when a promise was broken.
    #[must_use]
    pub fn broken(&self) -> &CancellationToken {
        &self.inner.broken
    }

    /// Clock and randomness of a process whose clock differs by this much from the true one.
    #[must_use]
    pub fn surroundings(&self, name: &str, clock_ms: i64) -> Surroundings {
        let (began, dice) = (self.inner.began, self.dice(&format!("surroundings of {name}")));
        let now_ms =
            move || EPOCH_MS + clock_ms + i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        Surroundings::new(now_ms, move || dice.number())
    }

    /// The way of a process to the servers.
    #[must_use]
    pub fn link(&self, who: Who, life: Life) -> Link {
        self.books().lives.push(life.clone());
        Link { world: self.clone(), who, life }
    }

    /// The world's own way, without crashes.
    #[must_use]
    pub fn own_link(&self) -> Link {
        self.link(Who { role: Role::World, name: "world".to_owned() }, Life::charmed())
    }

    /// Faults are over: nothing goes wrong any more, nobody crashes, pauses end.
    pub fn calm(&self) {
        self.network().calm();
        self.books().lives.iter().for_each(Life::charm);
        self.inner.quiet.cancel();
    }

    /// Nobody lives in it any more. A life tells its world of what happens to it, so each would keep the other.
    pub(super) fn leave(&self) {
        self.books().lives.clear();
    }

    /// Carries out a request, whatever becomes of its sender.
    pub(super) fn spawn_request(&self, request: impl Future<Output = ()> + Send + 'static) {
        self.inner.requests.fetch_add(1, Ordering::Relaxed);
        let world = self.clone();
        tokio::spawn(async move {
            request.await;
            world.inner.requests.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// Requests that were sent and are not answered.
    #[must_use]
    pub fn requests_under_way(&self) -> usize {
        self.inner.requests.load(Ordering::Relaxed)
    }

    /// Writes a line of history.
    pub fn note(&self, who: &Who, what: impl Into<String>) {
        let now = self.now();
        self.books().history.add(now, who, what.into());
    }

    pub(super) fn note_fault(&self, who: &Who, fault: &'static str, (request, answer): (&Request, Answer)) {
        let (at, request) = (self.now(), request.to_string());
        let mut books = self.books();
        books.history.add(at, who, format!("FAULT {fault}: {request}"));
        books.records.struck.push(Struck { at, fault, by: who.clone(), request, answer });
    }

    /// Keeps what a process told.
    pub fn tell(&self, who: &Who, what: Tale) {
        let at = self.now();
        let mut books = self.books();
        if let Some(line) = super::words::of_tale(&what) {
            books.history.add(at, who, line);
        }
        super::running::note(&mut books.records.running_groups, who, &what);
        books.records.told.push(Told { at, by: who.clone(), what });
    }

    /// Changes the records other than by a step.
    pub fn record<T>(&self, change: impl FnOnce(&mut Records) -> T) -> T {
        change(&mut self.books().records)
    }

    /// Reads the records.
    pub fn read<T>(&self, read: impl FnOnce(&Records) -> T) -> T {
        read(&self.books().records)
    }

    /// An object was written.
    pub(super) fn written(&self, by: &Who, location: String) {
        let at = self.now();
        let mut books = self.books();
        books.history.add(at, by, format!("stored {}", super::words::short(&location)));
        books.records.written.push(Touched { at, by: by.clone(), location });
    }

    /// An object was deleted: a step.
    pub(super) fn deleted(&self, by: &Who, location: String) {
        let at = self.now();
        {
            let mut books = self.books();
            books.history.add(at, by, format!("deleted {}", super::words::short(&location)));
            books.records.deleted.push(Touched { at, by: by.clone(), location });
        }
        self.step(Step::Delete);
    }

    /// The table changed: a step.
    pub(super) fn committed(&self, commit: Commit) {
        {
            let mut books = self.books();
            books.history.add(commit.at, &commit.by, super::words::of_commit(&commit));
            books.records.commits.push(commit);
        }
        self.step(Step::Commit);
    }

    fn step(&self, step: Step) {
        self.check(|checker, view| checker.after_step(view, step).boxed_check());
    }

    /// The end: all checkers judge the whole run.
    pub fn check_end(&self) {
        self.check(|checker, view| checker.at_end(view).boxed_check());
    }

    fn check(
        &self,
        judge: impl for<'a> Fn(&'a mut Box<dyn Checker>, View<'a>) -> Option<Result<(), Violation>>,
    ) {
        if self.inner.broken.is_cancelled() {
            return;
        }
        let table = self.inner.server.table(&self.inner.ident);
        let mut checkers = self.inner.checkers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut books = self.books();
        let view = View {
            now: self.now(),
            ident: &self.inner.ident,
            table: table.as_ref(),
            stores: &self.inner.stores,
            log: &self.inner.log,
            records: &books.records,
            setting: &self.inner.setting,
        };
        let mut violation = None;
        for checker in checkers.iter_mut() {
            let name = checker.name();
            let judged = judge(checker, view);
            let judged =
                judged.unwrap_or_else(|| Err(Violation::new(name, "the checker waits for something")));
            if let Err(found) = judged {
                violation = Some(found);
                break;
            }
        }
        if let Some(violation) = violation {
            let at = self.now();
            let who = Who { role: Role::World, name: "world".to_owned() };
            books.history.add(at, &who, format!("VIOLATION of {violation}"));
            books.violation = Some(violation);
            self.inner.broken.cancel();
        }
    }

    /// Ends the run with a violation that no checker found.
    pub fn violate(&self, violation: Violation) {
        let at = self.now();
        let mut books = self.books();
        if books.violation.is_none() {
            let who = Who { role: Role::World, name: "world".to_owned() };
            books.history.add(at, &who, format!("VIOLATION of {violation}"));
            books.violation = Some(violation);
        }
        self.inner.broken.cancel();
    }

    /// The promise that was broken, if one was.
    #[must_use]
    pub fn violation(&self) -> Option<Violation> {
        self.books().violation.clone()
    }

    /// The history so far.
    #[must_use]
    pub fn history(&self) -> History {
        self.books().history.clone()
    }

    /// The last lines of the history.
    #[must_use]
    pub fn last_lines(&self, count: usize) -> Vec<Entry> {
        self.books().history.last(count).to_vec()
    }

    /// Waits until something holds, looking again every so often; false where it does not within the time.
    pub async fn wait_until(&self, limit: Duration, mut holds: impl FnMut(&Self) -> bool) -> bool {
        let deadline = Instant::now() + limit;
        while !holds(self) {
            if Instant::now() >= deadline || self.inner.broken.is_cancelled() {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
        true
    }
}

/// Between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a judgement that must be ready at once.
trait Judgement {
    fn boxed_check(self) -> Option<Result<(), Violation>>;
}

impl<F: Future<Output = Result<(), Violation>>> Judgement for F {
    fn boxed_check(self) -> Option<Result<(), Violation>> {
        tokio::task::unconstrained(self).now_or_never()
    }
}
