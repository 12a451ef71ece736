//! What a run is made of: actors, faults and hardships, drawn from the seed.

use std::collections::HashMap;
use std::time::Duration;

use firn_table::catalog::default_properties;
use firn_table::ledger::WriterName;
use firn_writer::config::{AfterRollback, Mode};
use iceberg::TableCreation;
use iceberg::spec::{
    FormatVersion, NestedField, PrimitiveType, Schema, Transform, Type, UnboundPartitionSpec,
};

use super::actors::{BrokerPlan, CompactorPlan, ExpirerPlan, ForeignPlan, ProducerPlan, WriterPlan};
use super::dice::Dice;
use super::faults;
use super::process::Hardship;
use super::view::Setting;

/// What a run is about. Each draws everything else from the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Theme {
    /// Nothing goes wrong.
    Calm,
    /// Writers of one group, catalog and store faults, crashes, pauses.
    Writers,
    /// Two deployments under one name, and other writers.
    Rivals,
    /// Writers, compactors and expiry.
    Compaction,
    /// A foreign engine that changes schema, spec and history.
    Foreign,
    /// New partitions, retention, a topic that is created again.
    Topics,
    /// A foreign engine that deletes rows between plan and commit of rewrites, and changes history.
    Deletes,
}

impl Theme {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Calm,
        Self::Writers,
        Self::Rivals,
        Self::Compaction,
        Self::Foreign,
        Self::Topics,
        Self::Deletes,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Writers => "writers",
            Self::Rivals => "rivals",
            Self::Compaction => "compaction",
            Self::Foreign => "foreign",
            Self::Topics => "topics",
            Self::Deletes => "deletes",
        }
    }

    /// The theme of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.name() == name)
    }

    /// The theme of a seed: seldom a calm one.
    fn draw(dice: &Dice) -> Self {
        use Theme::{Calm, Compaction, Deletes, Foreign, Rivals, Topics, Writers};
        dice.one_of(&[
            Calm, Writers, Writers, Writers, Rivals, Rivals, Compaction, Compaction, Compaction, Compaction,
            Foreign, Foreign, Foreign, Topics, Topics, Deletes, Deletes, Deletes,
        ])
    }
}

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct Profile {
    /// What it is about.
    pub theme: Theme,
    /// How long messages come and things go wrong.
    pub active: Duration,
    /// The table's format.
    pub format: FormatVersion,
    /// How the table is partitioned.
    pub partitioning: Partitioning,
    /// How long a member of a consumer group may be silent.
    pub session_timeout: Duration,
    /// Messages.
    pub producer: ProducerPlan,
    /// Writers, by the name of the actor.
    pub writers: Vec<(String, WriterPlan)>,
    /// Compactors.
    pub compactors: Vec<(String, CompactorPlan)>,
    /// Expiry from outside.
    pub expirer: Option<ExpirerPlan>,
    /// The other engine.
    pub foreign: Option<ForeignPlan>,
    /// What happens to the topic.
    pub broker: Option<BrokerPlan>,
    /// Conflicts after which a compactor gives up; `None` for very many.
    pub commit_retries: Option<u32>,
    /// Chances of faults.
    pub faults: Vec<(&'static str, f64)>,
}

/// How the table of a run is partitioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitioning {
    /// Not at all.
    None,
    /// By a column with three values.
    Kind,
    /// By the hash of the id.
    Bucket,
}

impl Profile {
    /// The profile of a seed.
    #[must_use]
    pub fn draw(theme: Option<Theme>, dice: &Dice) -> Self {
        let dice = dice.of("profile");
        let theme = theme.unwrap_or_else(|| Theme::draw(&dice));
        let flush_age = dice.millis(100..900);
        let writers = draw_writers(theme, flush_age, &dice);
        let format = match theme {
            Theme::Deletes => dice.one_of(&[FormatVersion::V2, FormatVersion::V3]),
            _ => FormatVersion::V2,
        };
        let compactors = match theme {
            Theme::Compaction => dice.within(1..3),
            Theme::Foreign | Theme::Calm | Theme::Deletes => 1,
            Theme::Writers | Theme::Rivals | Theme::Topics => 0,
        };
        Self {
            theme,
            active: dice.millis(20_000..60_000),
            partitioning: dice.one_of(&[Partitioning::None, Partitioning::Kind, Partitioning::Bucket]),
            session_timeout: Duration::from_secs(10),
            producer: draw_producer(&dice),
            writers,
            compactors: (1..=compactors)
                .map(|n| (format!("compactor-{n}"), draw_compactor(theme, &dice)))
                .collect(),
            expirer: (matches!(theme, Theme::Compaction | Theme::Rivals) && dice.chance(0.5))
                .then(|| draw_expirer(theme, &dice)),
            broker: (theme == Theme::Topics).then(|| BrokerPlan::draw(&dice)),
            foreign: draw_foreign(theme, format, &dice),
            format,
            commit_retries: None,
            faults: if theme == Theme::Calm { Vec::new() } else { draw_faults(&dice) },
        }
    }

    /// What promises depend on.
    #[must_use]
    pub fn setting(&self) -> Setting {
        let mut writers: Vec<WriterName> = self.writers.iter().map(|(_, plan)| plan.name.clone()).collect();
        writers.sort();
        writers.dedup();
        Setting {
            writers,
            flush_age: self.writers.iter().map(|(_, plan)| plan.flush_age).max().unwrap_or_default(),
            cursors_may_go_back: self.foreign.as_ref().is_some_and(|plan| plan.rolls_back)
                || self.broker.as_ref().is_some_and(|plan| plan.creates_again),
            foreign_rows: self.foreign.is_some(),
        }
    }

    /// The table.
    ///
    /// # Panics
    /// Never: the schema is a constant one.
    #[must_use]
    pub fn creation(&self) -> TableCreation {
        let field = |id, name: &str, kind| NestedField::optional(id, name, Type::Primitive(kind)).into();
        let schema = Schema::builder()
            .with_fields([
                field(1, "id", PrimitiveType::Long),
                field(2, "kind", PrimitiveType::Int),
                field(3, "name", PrimitiveType::String),
            ])
            .build()
            .expect("a schema of three columns");
        let spec = UnboundPartitionSpec::builder();
        let spec = match self.partitioning {
            Partitioning::None => Ok(spec),
            Partitioning::Kind => spec.add_partition_field(2, "kind", Transform::Identity),
            Partitioning::Bucket => spec.add_partition_field(1, "id_bucket", Transform::Bucket(2)),
        };
        let mut properties: HashMap<String, String> = default_properties().into_iter().collect();
        // Few enough that a run meets a merge.
        properties.insert("commit.manifest.min-count-to-merge".to_owned(), "10".to_owned());
        let retries = self.commit_retries.map(|retries| retries.to_string());
        properties.extend(retries.map(|retries| ("commit.retry.num-retries".to_owned(), retries)));
        TableCreation::builder()
            .name("t".to_owned())
            .schema(schema)
            .partition_spec_opt(spec.ok().map(|spec| spec.build()))
            .properties(properties)
            .format_version(self.format)
            .build()
    }
}

fn draw_foreign(theme: Theme, format: FormatVersion, dice: &Dice) -> Option<ForeignPlan> {
    match theme {
        Theme::Foreign => Some(ForeignPlan::draw(dice)),
        Theme::Deletes => {
            let pause_ms = dice.one_of(&[200, 1_000]);
            Some(ForeignPlan { pause_ms, deletes: Some(format), ..ForeignPlan::draw(dice) })
        }
        _ => None,
    }
}

fn draw_hardship(theme: Theme, dice: &Dice) -> Hardship {
    if theme == Theme::Calm {
        return Hardship::NONE;
    }
    Hardship {
        crashes: dice.one_of(&[0.0, 0.3, 0.8]),
        pauses: dice.one_of(&[0.0, 0.2, 0.6]),
        within_points: dice.one_of(&[200, 1_000, 3_000]),
        clock_ms: dice.one_of(&[0, 2_000, 240_000]),
    }
}

fn draw_producer(dice: &Dice) -> ProducerPlan {
    ProducerPlan {
        partitions: dice.one_of(&[1, 2, 3, 5]),
        burst: dice.one_of(&[1, 4, 12]),
        pause_ms: dice.one_of(&[30, 120, 400]),
        bad: dice.one_of(&[0.0, 0.05]),
        holes: dice.one_of(&[0.0, 0.1]),
        one_partition: dice.chance(0.15),
    }
}

fn draw_writers(theme: Theme, flush_age: Duration, dice: &Dice) -> Vec<(String, WriterPlan)> {
    let count = match theme {
        Theme::Rivals => dice.within(2..5),
        Theme::Writers | Theme::Topics => dice.within(1..5),
        Theme::Calm | Theme::Compaction | Theme::Foreign | Theme::Deletes => dice.within(1..3),
    };
    let hardship = draw_hardship(theme, dice);
    let name = WriterName::new("w").expect("a letter is a name");
    let keep_snapshots = dice.chance(0.6).then(|| dice.one_of(&[1, 3, 20]));
    let mode = dice.one_of(&[
        Mode::Fixed { shards: 1 },
        Mode::Fixed { shards: 2 },
        Mode::LowLatency { min_interval: Duration::from_millis(100) },
    ]);
    let after_rollback = dice.one_of(&[AfterRollback::Replay, AfterRollback::Keep]);
    let plan = |number: u64| WriterPlan {
        name: name.clone(),
        group: if theme == Theme::Rivals { format!("g{}", number % 2) } else { "g".to_owned() },
        flush_age,
        mode,
        after_rollback,
        keep_snapshots,
        hardship,
    };
    (1..=count).map(|number| (format!("writer-{number}"), plan(number))).collect()
}

fn draw_compactor(theme: Theme, dice: &Dice) -> CompactorPlan {
    CompactorPlan {
        interval: dice.millis(300..4_000),
        excess_files: dice.one_of(&[2, 6, 15]),
        target_bytes: dice.one_of(&[4_000, 20_000, 1 << 20]),
        hardship: draw_hardship(theme, dice),
    }
}

fn draw_expirer(theme: Theme, dice: &Dice) -> ExpirerPlan {
    ExpirerPlan {
        interval: dice.millis(500..5_000),
        keep: dice.one_of(&[1, 2, 10]),
        hardship: draw_hardship(theme, dice),
    }
}

/// About half of the faults, each with a chance of its own.
fn draw_faults(dice: &Dice) -> Vec<(&'static str, f64)> {
    let common: Vec<_> = faults::all().into_iter().filter(|fault| fault.is_common()).collect();
    let chances = common.iter().map(|fault| (fault.name(), dice.one_of(&[0.0, 0.0, 0.002, 0.01, 0.05])));
    chances.filter(|(_, chance)| *chance > 0.0).collect()
}
