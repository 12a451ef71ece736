//! A stage for scenarios: the world of the simulation, in which a script says what happens and when. The checkers watch
//! as they do in a run.
//!
//! ```
//! use firn_tests::sim::network::Kind;
//! use firn_tests::sim::records::Role;
//! use firn_tests::sim::stage;
//!
//! stage::play(|stage| async move {
//!     stage.world.network().order((Role::Writer, Kind::Commit), "", "reply-lost");
//!     let writer = stage.writer("writer", stage.plan());
//!     stage.produce(0, 10);
//!     stage.committed(0, 10).await;
//!     writer.stop().await.unwrap();
//! });
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use firn_compactor::{RunReport, compact};
use firn_table::Result;
use firn_table::commit::TableHandle;
use firn_table::ledger::{Cursor, Ledger, WriterName};
use firn_writer::WriterConfig;
use firn_writer::config::{AfterRollback, Mode};
use firn_writer::pipeline::run_pipeline;
use iceberg::table::Table;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::actors::{
    CompactorPlan, Teller, WriterPlan, compactor_observer, partition, produce, writer_parts,
};
use super::check;
use super::dice::Dice;
use super::history::Entry;
use super::life::Destiny;
use super::process::{Hardship, Process};
use super::profile::{Partitioning, Profile, Theme};
use super::records::{Content, Role, Who};
use super::run::{create_table, drop_table, finish, in_world};
use super::view::{Checker, Setting, Violation};
use super::world::World;
use crate::foreign::Engine;

/// A world with a table and a topic, and nobody in it.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The world.
    pub world: World,
    dice: Dice,
    profile: Profile,
}

/// A writer process on a stage.
#[derive(Debug)]
pub struct Actor {
    /// The process, to be paused or crashed.
    pub process: Process,
    stop: CancellationToken,
    task: JoinHandle<Option<Result<()>>>,
}

/// How long a scenario waits for anything. Time is simulated, so it is generous.
const PATIENCE: Duration = Duration::from_secs(900);

/// Plays a script on a stage with an unpartitioned table and a topic of four partitions, then lets the world come to
/// rest and has the checkers judge.
///
/// # Panics
/// A promise was broken, or the script panicked: with the end of the history.
pub fn play<F: Future<Output = ()>>(script: impl FnOnce(Stage) -> F) {
    play_with(check::all(), script);
}

/// As [`play`], with these checkers.
///
/// # Panics
/// As [`play`].
pub fn play_with<F: Future<Output = ()>>(checkers: Vec<Box<dyn Checker>>, script: impl FnOnce(Stage) -> F) {
    if let Err(broken) = play_under(0, checkers, script) {
        #[expect(clippy::panic, reason = "a scenario fails by a panic")]
        {
            panic!("{broken}");
        }
    }
}

/// Plays a script as [`play`] does, under a seed: latencies and what faults draw follow from it.
///
/// # Errors
/// A promise was broken, or the script panicked.
pub fn play_under<F: Future<Output = ()>>(
    seed: u64,
    checkers: Vec<Box<dyn Checker>>,
    script: impl FnOnce(Stage) -> F,
) -> std::result::Result<(), Broken> {
    let dice = Dice::new(seed);
    let profile = profile(&dice);
    let setting = Setting { foreign_rows: true, ..profile.setting() };
    let make = || World::new(&dice, setting, checkers);
    let (world, played) = in_world(make, |world| {
        create_table(&world, &profile);
        world.log().create_topic(super::actors::TOPIC, 4);
        world.log().set_session_timeout(Some(profile.session_timeout));
        let stage = Stage { world: world.clone(), dice: dice.of("stage"), profile: profile.clone() };
        let script = script(stage);
        async move {
            tokio::select! {
                biased;
                () = world.broken().cancelled() => return,
                () = script => {}
            }
            world.calm();
            world.stop().cancel();
            finish(&world).await;
        }
    });
    let violation = world.violation();
    if violation.is_none() && played.is_some() {
        return Ok(());
    }
    Err(Broken { violation, lines: world.last_lines(60) })
}

/// How a script ended that did not end well.
#[derive(Debug, Clone)]
pub struct Broken {
    /// The broken promise; `None` where the script ended early without one.
    pub violation: Option<Violation>,
    /// The end of the history.
    pub lines: Vec<Entry>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        match &self.violation {
            Some(violation) => write!(f, "{violation}"),
            None => f.write_str("the script ended early"),
        }
    }
}

/// The calmest profile.
fn profile(dice: &Dice) -> Profile {
    let drawn = Profile::draw(Some(Theme::Calm), dice);
    let setting = WriterPlan { after_rollback: AfterRollback::Stop, ..plan() };
    Profile { partitioning: Partitioning::None, writers: vec![("writer".to_owned(), setting)], ..drawn }
}

fn plan() -> WriterPlan {
    WriterPlan {
        name: WriterName::new("w").expect("a letter is a name"),
        group: "g".to_owned(),
        flush_age: Duration::from_millis(200),
        mode: Mode::Fixed { shards: 1 },
        after_rollback: AfterRollback::Stop,
        keep_snapshots: None,
        hardship: Hardship::NONE,
    }
}

impl Stage {
    /// A writer as scenarios use it: seals after 200 ms, expires nothing, stops where a person has to decide.
    #[must_use]
    pub fn plan(&self) -> WriterPlan {
        plan()
    }

    /// A compaction of everything into one file.
    #[must_use]
    pub fn compaction(&self) -> CompactorPlan {
        CompactorPlan {
            interval: Duration::from_secs(1),
            excess_files: 1,
            target_bytes: 1 << 20,
            hardship: Hardship::NONE,
        }
    }

    /// Another engine, to which nothing happens.
    #[must_use]
    pub fn engine(&self) -> Engine {
        let process = self.process(Role::Foreign, "foreign", Destiny::default());
        let clock = process.surroundings.clone();
        let ident = self.world.ident().clone();
        Engine::new(process.catalog(), process.stores(), ident, 7, Arc::new(move || clock.now_ms()))
    }

    /// Has a writer fill the table with so many files of ten rows.
    ///
    /// # Panics
    /// It cannot.
    pub async fn files(&self, count: i64) {
        let writer = self.writer("filler", self.plan());
        for file in 1..=count {
            self.produce(0, 10);
            self.committed(0, 10 * file).await;
        }
        writer.stop().await.expect("nothing happens to it");
    }

    /// Appends messages that become rows.
    pub fn produce(&self, to: i32, count: usize) {
        for _ in 0..count {
            produce(&self.world, &partition(to), Content::Row(0), &self.dice);
        }
    }

    /// A process with this destiny.
    #[must_use]
    pub fn process(&self, role: Role, name: &str, destiny: Destiny) -> Process {
        Process::new(&self.world, Who { role, name: name.to_owned() }, destiny, 0)
    }

    /// Starts a writer process.
    #[must_use]
    pub fn writer(&self, name: &str, plan: WriterPlan) -> Actor {
        self.writer_with(self.process(Role::Writer, name, Destiny::default()), plan.config(), &plan.group)
    }

    /// Starts a writer process with this configuration in this consumer group.
    #[must_use]
    pub fn writer_with(&self, process: Process, config: WriterConfig, group: &str) -> Actor {
        let stop = CancellationToken::new();
        let (own, token, group) = (process.clone(), stop.clone(), group.to_owned());
        let task = tokio::spawn(async move {
            let work = async {
                let parts = writer_parts(&own, config, &group).await?;
                run_pipeline(parts, Arc::new(Teller(own.clone())), token).await.map(drop)
            };
            own.live(work).await
        });
        Actor { process, stop, task }
    }

    /// Opens the table for a process to which nothing happens.
    ///
    /// # Panics
    /// It cannot be opened.
    pub async fn open(&self, role: Role, name: &str) -> TableHandle {
        self.process(role, name, Destiny::default()).open().await.expect("the table can be opened")
    }

    /// Plans and rewrites once, as a process with this destiny; `None` where it crashed.
    pub async fn compact(&self, process: Process, plan: &CompactorPlan) -> Option<Result<RunReport>> {
        let options = plan.options().compact;
        let mut report = None;
        let work = async {
            let handle = process.open().await?;
            let observer = compactor_observer(&process);
            report = Some(compact(&handle, &options, observer, self.world.stop().child_token()).await?);
            Ok(())
        };
        let ended = process.live(work).await?;
        Some(ended.map(|()| report.expect("a run that ended well has a report")))
    }

    /// Drops the table behind everybody's back.
    pub fn drop_table(&self) {
        drop_table(&self.world);
    }

    /// Creates the table, which was dropped, again.
    pub fn create_table(&self) {
        create_table(&self.world, &self.profile);
    }

    /// The table now, without faults.
    ///
    /// # Panics
    /// It was dropped.
    #[must_use]
    pub fn table(&self) -> Table {
        self.world.server().table(self.world.ident()).expect("the table is there")
    }

    /// The ledger of the writer.
    #[must_use]
    pub fn ledger(&self) -> Option<Ledger> {
        let ledgers = Ledger::read_all(self.table().metadata().properties()).unwrap_or_default();
        ledgers.into_iter().find(|(branch, ..)| branch == "main").map(|(.., ledger)| ledger)
    }

    /// The table's cursor of a partition.
    #[must_use]
    pub fn cursor(&self, of: i32) -> Option<Cursor> {
        self.ledger()?.cursors.get(&partition(of)).cloned()
    }

    /// Waits until the table holds everything below an offset.
    ///
    /// # Panics
    /// It never does.
    pub async fn committed(&self, of: i32, next: i64) {
        self.until(&format!("offset {next} of partition {of}"), |stage| {
            stage.cursor(of).is_some_and(|cursor| cursor.next >= next)
        })
        .await;
    }

    /// Waits until something holds.
    ///
    /// # Panics
    /// It never does.
    pub async fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let came = self.world.wait_until(PATIENCE, |_| holds(self)).await;
        assert!(came || self.world.broken().is_cancelled(), "never came: {what}");
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

impl Actor {
    /// Has it end in good order.
    ///
    /// # Errors
    /// That with which it ended.
    ///
    /// # Panics
    /// It crashed, or does not end.
    pub async fn stop(self) -> Result<()> {
        self.stop.cancel();
        self.ended().await
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// That with which it ended.
    ///
    /// # Panics
    /// It crashed, or does not end.
    pub async fn ended(self) -> Result<()> {
        self.end().await.expect("it did not crash")
    }

    /// Waits until it ends or crashes; `None` where it crashed.
    ///
    /// # Panics
    /// It does neither.
    pub async fn end(self) -> Option<Result<()>> {
        let ended = tokio::time::timeout(PATIENCE, self.task).await.expect("the process ends");
        ended.expect("the process does not panic")
    }
}
