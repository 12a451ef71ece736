//! Which snapshots and refs may go. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use iceberg::spec::{
    MAIN_BRANCH, SnapshotRef, SnapshotReference, SnapshotRetention, TableMetadata, TableProperties,
};
use iceberg::{TableRequirement, TableUpdate};

use super::{ExpireOptions, refs};
use crate::ledger::Ledger;
use crate::protections::{Protection, stands};
use crate::{Error, ErrorKind, Result};

/// What expiry would remove from a table, and what must hold so that it may.
#[derive(Debug, Clone, PartialEq)]
pub struct Expiry {
    /// The snapshots to remove, oldest first; never empty together with `refs`.
    pub snapshot_ids: Vec<i64>,
    /// The branches and tags to remove.
    pub refs: Vec<String>,
    /// The head of every ref of the table that was decided on.
    pub(super) heads: BTreeMap<String, i64>,
    /// Snapshots among `snapshot_ids` with statistics, and with partition statistics.
    pub(super) statistics: Vec<i64>,
    pub(super) partition_statistics: Vec<i64>,
}

impl Expiry {
    /// No ref may have moved: a rollback could have made a snapshot the head that is to be removed.
    pub(super) fn requirements(&self) -> Vec<TableRequirement> {
        let heads = self.heads.iter().filter(|_| stands(Protection::ExpiryInterlock));
        heads
            .map(|(name, id)| TableRequirement::RefSnapshotIdMatch {
                r#ref: name.clone(),
                snapshot_id: Some(*id),
            })
            .collect()
    }

    /// Forgets what `after` still has.
    pub(super) fn retain_gone(&mut self, after: &TableMetadata) -> Result<()> {
        let still = refs(after)?;
        self.refs.retain(|name| !still.contains_key(name));
        self.snapshot_ids.retain(|id| after.snapshot_by_id(*id).is_none());
        Ok(())
    }

    pub(super) fn updates(&self) -> Vec<TableUpdate> {
        let refs = self.refs.iter().map(|name| TableUpdate::RemoveSnapshotRef { ref_name: name.clone() });
        let statistics = self.statistics.iter().map(|id| TableUpdate::RemoveStatistics { snapshot_id: *id });
        let partition_statistics = self
            .partition_statistics
            .iter()
            .map(|id| TableUpdate::RemovePartitionStatistics { snapshot_id: *id });
        let snapshots = (!self.snapshot_ids.is_empty())
            .then(|| TableUpdate::RemoveSnapshots { snapshot_ids: self.snapshot_ids.clone() });
        refs.chain(statistics).chain(partition_statistics).chain(snapshots).collect()
    }
}

/// Decides what may be removed from a table at `now_ms` (milliseconds since the epoch), by the rules of Iceberg's
/// Java implementation: refs go by `max-ref-age-ms` (`main` never), a branch keeps its newest snapshots by count and
/// by age, a snapshot that no ref reaches goes by age. A snapshot that a ledger names and that no ref reaches stays:
/// without it a rollback could not be told from an expired parent. `None` where nothing may go.
///
/// # Errors
/// `Configuration` where `gc.enabled` is false, a property is malformed, or a snapshot that was named is the head of a
/// ref; `Held` where it is in use.
pub fn decide_expiry(
    metadata: &TableMetadata,
    options: &ExpireOptions,
    now_ms: i64,
) -> Result<Option<Expiry>> {
    let defaults = Defaults::of(metadata, options, now_ms)?;
    let refs = refs(metadata)?;
    let (kept, aged): (Vec<_>, Vec<_>) = refs.iter().partition(|(name, reference)| {
        !options.snapshot_ids.is_empty() || defaults.keeps_ref(name, reference, metadata)
    });

    let ids: HashSet<i64> = if options.snapshot_ids.is_empty() {
        let retained = retained(metadata, &kept, &defaults)?;
        let in_use: HashSet<i64> = options.in_use.iter().copied().collect();
        let all = metadata.snapshots().map(|snapshot| snapshot.snapshot_id());
        all.filter(|id| !retained.contains(id) && !in_use.contains(id)).collect()
    } else {
        named(metadata, options, &refs)?
    };
    let snapshot_ids = oldest_first(metadata, &ids, options.max_snapshots);
    if snapshot_ids.is_empty() && aged.is_empty() {
        return Ok(None);
    }
    let with = |has: &dyn Fn(i64) -> bool| snapshot_ids.iter().copied().filter(|id| has(*id)).collect();
    Ok(Some(Expiry {
        statistics: with(&|id| metadata.statistics_for_snapshot(id).is_some()),
        partition_statistics: with(&|id| metadata.partition_statistics_for_snapshot(id).is_some()),
        refs: aged.into_iter().map(|(name, _)| name.clone()).collect(),
        heads: refs.iter().map(|(name, reference)| (name.clone(), reference.snapshot_id)).collect(),
        snapshot_ids,
    }))
}

/// Retention where a ref has none of its own.
#[derive(Debug)]
struct Defaults {
    now_ms: i64,
    older_than_ms: i64,
    min_snapshots: usize,
    max_ref_age_ms: i64,
}

impl Defaults {
    fn of(metadata: &TableMetadata, options: &ExpireOptions, now_ms: i64) -> Result<Self> {
        let properties = metadata.properties();
        let gc = property(properties, TableProperties::PROPERTY_GC_ENABLED, true)?;
        if !gc {
            let message = format!(
                "`{}` is false: the table's files may be another table's too, so nothing is expired",
                TableProperties::PROPERTY_GC_ENABLED
            );
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        let max_age_ms = property(
            properties,
            TableProperties::PROPERTY_MAX_SNAPSHOT_AGE_MS,
            TableProperties::PROPERTY_MAX_SNAPSHOT_AGE_MS_DEFAULT,
        )?;
        let min_snapshots = property(
            properties,
            TableProperties::PROPERTY_MIN_SNAPSHOTS_TO_KEEP,
            TableProperties::PROPERTY_MIN_SNAPSHOTS_TO_KEEP_DEFAULT,
        )?;
        let max_ref_age_ms = property(
            properties,
            TableProperties::PROPERTY_MAX_REF_AGE_MS,
            TableProperties::PROPERTY_MAX_REF_AGE_MS_DEFAULT,
        )?;
        Ok(Self {
            now_ms,
            older_than_ms: options.older_than_ms.unwrap_or(now_ms.saturating_sub(max_age_ms)),
            min_snapshots: options.retain_last.unwrap_or(min_snapshots).max(1),
            max_ref_age_ms,
        })
    }

    fn keeps_ref(&self, name: &str, reference: &SnapshotReference, metadata: &TableMetadata) -> bool {
        let max_age_ms = match &reference.retention {
            SnapshotRetention::Branch { max_ref_age_ms, .. } | SnapshotRetention::Tag { max_ref_age_ms } => {
                max_ref_age_ms.unwrap_or(self.max_ref_age_ms)
            }
        };
        let committed =
            metadata.snapshot_by_id(reference.snapshot_id).map(|snapshot| snapshot.timestamp_ms());
        name == MAIN_BRANCH
            || committed.is_none_or(|committed| self.now_ms.saturating_sub(committed) <= max_age_ms)
    }
}

fn property<T: std::str::FromStr>(properties: &HashMap<String, String>, name: &str, default: T) -> Result<T> {
    let Some(value) = properties.get(name) else { return Ok(default) };
    value.trim().to_ascii_lowercase().parse().map_err(|_| {
        let message =
            format!("table property `{name}` is `{value}`, which is no value for it: nothing was expired");
        Error::new(ErrorKind::Configuration, message)
    })
}

/// The snapshots that stay.
fn retained(
    metadata: &TableMetadata,
    kept_refs: &[(&String, &SnapshotReference)],
    defaults: &Defaults,
) -> Result<HashSet<i64>> {
    let mut retained = HashSet::new();
    let mut reached = HashSet::new();
    for (_, reference) in kept_refs {
        let (older_than_ms, min_snapshots) = match &reference.retention {
            SnapshotRetention::Branch { min_snapshots_to_keep, max_snapshot_age_ms, .. } => (
                max_snapshot_age_ms.map_or(defaults.older_than_ms, |age| defaults.now_ms.saturating_sub(age)),
                min_snapshots_to_keep
                    .and_then(|min| usize::try_from(min).ok())
                    .unwrap_or(defaults.min_snapshots)
                    .max(1),
            ),
            // A tag keeps one snapshot, and reaches what is behind it no further than by age.
            SnapshotRetention::Tag { .. } => (i64::MAX, 1),
        };
        let mut keeping = true;
        for (depth, snapshot) in ancestors(metadata, reference.snapshot_id).enumerate() {
            keeping = keeping && (depth < min_snapshots || snapshot.timestamp_ms() >= older_than_ms);
            if keeping {
                retained.insert(snapshot.snapshot_id());
            }
            reached.insert(snapshot.snapshot_id());
        }
    }
    let named: BTreeSet<i64> = Ledger::read_all(metadata.properties())?
        .into_iter()
        .map(|(_, _, ledger)| ledger.snapshot_id)
        .collect();
    for snapshot in metadata.snapshots() {
        let id = snapshot.snapshot_id();
        let young = snapshot.timestamp_ms() >= defaults.older_than_ms;
        if !reached.contains(&id) && (young || named.contains(&id)) {
            retained.insert(id);
        }
    }
    Ok(retained)
}

/// A snapshot and those before it, as far as they are in the metadata.
fn ancestors(metadata: &TableMetadata, from: i64) -> impl Iterator<Item = &SnapshotRef> {
    let mut seen = HashSet::new();
    std::iter::successors(metadata.snapshot_by_id(from), |snapshot| {
        metadata.snapshot_by_id(snapshot.parent_snapshot_id()?)
    })
    .take_while(move |snapshot| seen.insert(snapshot.snapshot_id()))
}

/// The snapshots that were named, as far as they are still there.
fn named(
    metadata: &TableMetadata,
    options: &ExpireOptions,
    refs: &BTreeMap<String, SnapshotReference>,
) -> Result<HashSet<i64>> {
    for id in &options.snapshot_ids {
        if let Some((name, _)) = refs.iter().find(|(_, reference)| reference.snapshot_id == *id) {
            let message =
                format!("snapshot `{id}` is the head of `{name}`: it stays; remove or move that ref first");
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        if options.in_use.contains(id) {
            let message = format!("snapshot `{id}` is in use by a rewrite or a reader: try again later");
            return Err(Error::new(ErrorKind::Held, message));
        }
    }
    Ok(options.snapshot_ids.iter().copied().filter(|id| metadata.snapshot_by_id(*id).is_some()).collect())
}

fn oldest_first(metadata: &TableMetadata, ids: &HashSet<i64>, limit: Option<usize>) -> Vec<i64> {
    let mut snapshots: Vec<&SnapshotRef> =
        metadata.snapshots().filter(|snapshot| ids.contains(&snapshot.snapshot_id())).collect();
    snapshots.sort_by_key(|snapshot| {
        (snapshot.sequence_number(), snapshot.timestamp_ms(), snapshot.snapshot_id())
    });
    snapshots.iter().map(|snapshot| snapshot.snapshot_id()).take(limit.unwrap_or(usize::MAX)).collect()
}
