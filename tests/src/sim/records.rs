//! What happened in a run, in order, as the servers saw it: what the checkers judge.

use std::collections::BTreeMap;
use std::time::Duration;

use firn_table::ErrorKind;
use firn_table::ledger::TopicPartition;
use iceberg::TableUpdate;
use iceberg::table::Table;

use super::network::Answer;

/// The time since the start of the run. Processes have clocks of their own, which differ from it by minutes.
pub type At = Duration;

/// A process of the run, and what it is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    /// What it does.
    pub role: Role,
    /// Its name; a process that was restarted has another one (`writer-1`, `writer-1'2`).
    pub name: String,
}

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Appends what it reads from the log.
    Writer,
    /// Rewrites small files.
    Compactor,
    /// Expires snapshots and deletes what only they reached.
    Maintenance,
    /// Another engine.
    Foreign,
    /// The simulation itself, on behalf of nobody: the table's creation, the end of a run.
    World,
}

/// A change of the table that the catalog applied.
#[derive(Debug, Clone)]
pub struct Commit {
    /// When.
    pub at: At,
    /// Who had asked for it. The process may be gone by now.
    pub by: Who,
    /// The table before it; `None` where it was created.
    pub before: Option<Table>,
    /// The table after it; `None` where it was dropped.
    pub after: Option<Table>,
    /// What was applied.
    pub updates: Vec<TableUpdate>,
}

impl Commit {
    /// The ids of the snapshots that it added.
    pub fn added_snapshots(&self) -> impl Iterator<Item = i64> + '_ {
        self.updates.iter().filter_map(|update| match update {
            TableUpdate::AddSnapshot { snapshot } => Some(snapshot.snapshot_id()),
            _ => None,
        })
    }
}

/// An object that the store wrote or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// When.
    pub at: At,
    /// Who had asked for it.
    pub by: Who,
    /// Its location, as in the table's metadata.
    pub location: String,
}

/// A message that was appended to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Produced {
    /// When.
    pub at: At,
    /// The topic partition.
    pub partition: TopicPartition,
    /// Which incarnation of the topic: grows when it is deleted and created again, and offsets begin anew.
    pub incarnation: u32,
    /// Its offset.
    pub offset: i64,
    /// What it is to become.
    pub content: Content,
}

/// What a message is to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A row with this value in the column `id`, which no other message has. Foreign rows have negative ids.
    Row(i64),
    /// A rejected message.
    Bad,
    /// An offset that is not delivered.
    Hole,
}

/// Something that a process told its observer.
#[derive(Debug, Clone)]
pub struct Told {
    /// When.
    pub at: At,
    /// The process.
    pub by: Who,
    /// What.
    pub what: Tale,
}

/// What processes tell.
#[derive(Debug, Clone)]
pub enum Tale {
    /// It began to run.
    Started,
    /// An event of a writer.
    Writer(Box<firn_writer::Event>),
    /// An event of a compactor.
    Compactor(firn_compactor::Event),
    /// It crashed.
    Crashed,
    /// It is not scheduled for this long.
    Paused(Duration),
    /// It ended, well or with an error: what can be done about it, and what it says.
    Ended(Result<(), (ErrorKind, String)>),
}

/// A file group that a compactor is rewriting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningGroup {
    /// The process.
    pub by: Who,
    /// The plan's number of the group.
    pub group: usize,
    /// The locations of the input files.
    pub files: Vec<String>,
}

/// A fault that met a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Struck {
    /// When the request was sent.
    pub at: At,
    /// Its name.
    pub fault: &'static str,
    /// Whose request.
    pub by: Who,
    /// The request.
    pub request: String,
    /// What the client gets.
    pub answer: Answer,
}

/// Everything that happened so far.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// Changes of the table.
    pub commits: Vec<Commit>,
    /// Objects written.
    pub written: Vec<Touched>,
    /// Objects deleted.
    pub deleted: Vec<Touched>,
    /// Messages.
    pub produced: Vec<Produced>,
    /// What processes told.
    pub told: Vec<Told>,
    /// Groups that are being rewritten now.
    pub running_groups: Vec<RunningGroup>,
    /// Faults.
    pub struck: Vec<Struck>,
    /// Partitions of the topic; none while it is deleted.
    pub partitions: i32,
    /// Which incarnation of the topic messages go to.
    pub incarnation: u32,
    /// Offsets below which each topic partition was truncated.
    pub truncated: BTreeMap<TopicPartition, i64>,
}
