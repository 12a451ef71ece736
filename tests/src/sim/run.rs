//! A run: a world under a seed, from its creation over faults and quiet to the last judgement.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Once;
use std::time::Duration;

use firn_table::commit::ExpireOptions;
use firn_table::ledger::{Ledger, Standing, TopicPartition, standing};
use firn_table::threads::Inline;
use tokio::task::JoinSet;

use super::actors::{broker, compactor, expirer, foreign, producer, writer};
use super::dice::Dice;
use super::history::History;
use super::life::Destiny;
use super::process::Process;
use super::profile::{Profile, Theme};
use super::records::{Commit, Content, Records, Role, Who};
use super::server::table_of;
use super::view::{Checker, Violation};
use super::world::{EPOCH_MS, World};

/// What is run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Everything follows from it.
    pub seed: u64,
    /// What it is about; drawn from the seed where absent.
    pub theme: Option<Theme>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Report {
    /// What it was about.
    pub theme: Theme,
    /// The broken promise.
    pub violation: Option<Violation>,
    /// What happened.
    pub history: History,
    /// Changes of the table.
    pub commits: usize,
    /// Faults by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// The time that passed in the run.
    pub virtual_time: Duration,
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Panics of tasks would be lost in their handles: they are written down where they happen.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if firn_table::threads::is_inline() {
                PANIC.with_borrow_mut(|panic| panic.get_or_insert(info.to_string()).len());
            } else {
                usual(info);
            }
        }));
    });
}

fn take_panic() -> Option<String> {
    PANIC.with_borrow_mut(Option::take)
}

/// Runs a seed with these checkers.
#[must_use]
pub fn run(run: Run, checkers: Vec<Box<dyn Checker>>) -> Report {
    let profile = Profile::draw(run.theme, &Dice::new(run.seed));
    run_profile(run.seed, &profile, checkers)
}

/// Runs a seed with a profile that somebody has changed.
#[must_use]
pub fn run_profile(seed: u64, profile: &Profile, checkers: Vec<Box<dyn Checker>>) -> Report {
    let dice = Dice::new(seed);
    let (world, virtual_time) = in_world(
        || World::new(&dice, profile.setting(), checkers),
        |world| {
            let profile = profile.clone();
            async move {
                play(&world, &profile).await;
                world.now()
            }
        },
    );
    let commits = world.read(|records| records.commits.len());
    let mut faults: BTreeMap<&'static str, u64> = BTreeMap::new();
    world.read(|records| {
        records.struck.iter().for_each(|struck| *faults.entry(struck.fault).or_default() += 1)
    });
    Report {
        theme: profile.theme,
        violation: world.violation(),
        history: world.history(),
        commits,
        faults,
        virtual_time: virtual_time.unwrap_or_default(),
    }
}

/// Does something in a world of its own: one thread, paused time. Returns the world as it was left, and the result,
/// which is missing where it panicked; a panic is a violation.
pub fn in_world<T, F: Future<Output = T>>(
    make: impl FnOnce() -> World,
    work: impl FnOnce(World) -> F,
) -> (World, Option<T>) {
    watch_panics();
    let _inline = Inline::here();
    let _ = take_panic();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O");
    let mut made = None;
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let world = make();
            made = Some(world.clone());
            work(world).await
        })
    }));
    drop(runtime);
    let world = made.expect("making a world does not panic");
    world.leave();
    if let Some(panic) = take_panic() {
        world.violate(Violation::new("no panic", panic));
    }
    (world, result.ok())
}

/// The whole course of a run.
async fn play(world: &World, profile: &Profile) {
    create_table(world, profile);
    world.log().set_session_timeout(Some(profile.session_timeout));
    for (fault, chance) in &profile.faults {
        world.network().set_chance(fault, *chance);
    }
    let mut actors = JoinSet::new();
    start(&mut actors, world, profile);
    if !survives(world, tokio::time::sleep(profile.active)).await {
        return;
    }
    world.calm();
    if !drain(world).await {
        return;
    }
    world.stop().cancel();
    let ended = survives(world, async { while actors.join_next().await.is_some() {} });
    match tokio::time::timeout(STOP_TIME, ended).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(_) => {
            return world.violate(Violation::new("stop", "an actor did not end when it was told to stop"));
        }
    }
    finish(world).await;
}

/// The end of a world in which nobody acts any more: requests that are still under way arrive, an hour passes, old
/// snapshots are expired, and the checkers judge.
pub async fn finish(world: &World) {
    world.wait_until(STOP_TIME, |world| world.requests_under_way() == 0).await;
    tokio::time::sleep(QUIET_HOUR).await;
    last_expiry(world).await;
    world.check_end();
}

/// Creates the table.
///
/// # Panics
/// Where the profile's table is no valid one.
pub fn create_table(world: &World, profile: &Profile) {
    let (ident, server) = (world.ident(), world.server());
    let head = server.create(ident, profile.creation(), EPOCH_MS).expect("a valid table");
    let by = Who { role: Role::World, name: "world".to_owned() };
    let after = Some(table_of(ident, &head, world.stores()));
    world.committed(Commit { at: world.now(), by, before: None, after, updates: Vec::new() });
}

/// Drops the table; its files stay.
pub fn drop_table(world: &World) {
    let Some(head) = world.server().drop_table(world.ident()) else { return };
    let by = Who { role: Role::World, name: "world".to_owned() };
    let before = Some(table_of(world.ident(), &head, world.stores()));
    world.committed(Commit { at: world.now(), by, before, after: None, updates: Vec::new() });
}

fn start(actors: &mut JoinSet<()>, world: &World, profile: &Profile) {
    actors.spawn(producer(world.clone(), profile.producer.clone()));
    for (name, plan) in &profile.writers {
        actors.spawn(writer(world.clone(), name.clone(), plan.clone()));
    }
    for (name, plan) in &profile.compactors {
        actors.spawn(compactor(world.clone(), name.clone(), plan.clone()));
    }
    if let Some(plan) = &profile.expirer {
        actors.spawn(expirer(world.clone(), "expirer".to_owned(), plan.clone()));
    }
    if let Some(plan) = &profile.broker {
        actors.spawn(broker(world.clone(), plan.clone()));
    }
    if let Some(plan) = &profile.foreign {
        actors.spawn(foreign(world.clone(), "foreign".to_owned(), plan.clone()));
    }
}

/// Waits for something, unless a promise is broken first.
async fn survives(world: &World, something: impl Future<Output = ()>) -> bool {
    tokio::select! {
        biased;
        () = world.broken().cancelled() => false,
        () = something => true,
    }
}

/// Waits until everything that was produced is covered by the ledger.
async fn drain(world: &World) -> bool {
    if world.wait_until(DRAIN_TIME, |world| uncovered(world).is_empty()).await {
        return true;
    }
    if !world.broken().is_cancelled() {
        let left: Vec<String> =
            uncovered(world).into_iter().map(|(p, from, to)| format!("{p} {from}–{to}")).collect();
        let what = format!("not committed {DRAIN_TIME:?} after the last fault: {}", left.join(", "));
        world.violate(Violation::new("drain", what));
    }
    false
}

/// The offsets that no writer has covered, up to the last message of each partition: offsets that are not delivered
/// are covered together with the message after them. A writer that waits for a person's word, because a rollback and an
/// expiry together left nobody who could tell what is covered, is not asked.
#[must_use]
pub fn uncovered(world: &World) -> Vec<(TopicPartition, i64, i64)> {
    let Some(table) = world.server().table(world.ident()) else { return Vec::new() };
    let ledgers = Ledger::read_all(table.metadata().properties()).unwrap_or_default();
    let mut left = Vec::new();
    for name in &world.setting().writers {
        if let Ok(Standing::RolledBack { unknown, .. }) = standing(table.metadata(), "main", name)
            && !unknown.is_empty()
        {
            continue;
        }
        let ledger = ledgers.iter().find(|(branch, writer, _)| branch == "main" && writer == name);
        for (at, end) in world.read(message_ends) {
            let next =
                ledger.and_then(|(_, _, ledger)| ledger.cursors.get(&at)).map_or(0, |cursor| cursor.next);
            if next < end {
                left.push((at, next, end));
            }
        }
    }
    left
}

/// The offset after the last message of each partition of the topic as it is now.
fn message_ends(records: &Records) -> BTreeMap<TopicPartition, i64> {
    let now = records.produced.iter().filter(|produced| produced.incarnation == records.incarnation);
    let messages = now.filter(|produced| produced.content != Content::Hole);
    messages.map(|message| (message.partition.clone(), message.offset + 1)).collect()
}

/// One more expiry, in good order: only the head stays.
async fn last_expiry(world: &World) {
    if world.server().head(world.ident()).is_none() {
        return;
    }
    let who = Who { role: Role::Maintenance, name: "last expiry".to_owned() };
    let process = Process::new(world, who, Destiny::default(), 0);
    let options =
        ExpireOptions { older_than_ms: Some(i64::MAX), retain_last: Some(1), ..ExpireOptions::default() };
    let expired = async { process.open().await?.expire(&options).await };
    if let Err(error) = expired.await {
        world.violate(Violation::new("expiry", format!("the last expiry failed: {error}")));
    }
}

/// Everything is committed within this time after the last fault.
const DRAIN_TIME: Duration = Duration::from_secs(600);
/// Actors end within this time.
const STOP_TIME: Duration = Duration::from_secs(120);
const QUIET_HOUR: Duration = Duration::from_secs(3_600);
