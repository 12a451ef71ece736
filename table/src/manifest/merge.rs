//! Which small manifests an append merges: a pure decision over the manifest list.
//!
//! Every append adds a manifest, so their number must be kept down, and at a cost that does not grow with the
//! table. Manifests are sorted into tiers by their number of entries; when a tier of one partition spec holds
//! `min_count` of them, so many are merged into one of a higher tier. An entry is thus rewritten once per tier, a
//! merge reads at most `min_count` manifests and about the target size in bytes, and only one merge is done in a
//! commit.

use std::collections::{BTreeMap, HashMap, HashSet};

use iceberg::spec::{ManifestContentType, ManifestFile};

use super::has_live_files;

/// Each tier holds manifests with 16 times the entries of the one below.
const TIER_FACTOR_LOG2: u32 = 4;

/// The table's settings for merging, under Iceberg's names and defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MergePolicy {
    /// `commit.manifest-merge.enabled` (true).
    pub(crate) enabled: bool,
    /// `commit.manifest.target-size-bytes` (8 MiB).
    pub(crate) target_bytes: u64,
    /// `commit.manifest.min-count-to-merge` (100).
    pub(crate) min_count: usize,
}

impl MergePolicy {
    /// Reads the settings; what is not a number counts as absent.
    pub(crate) fn of_properties(properties: &HashMap<String, String>) -> Self {
        let number = |name: &str| properties.get(name).and_then(|value| value.parse::<u64>().ok());
        let min_count = number("commit.manifest.min-count-to-merge").unwrap_or(100);
        Self {
            enabled: properties.get("commit.manifest-merge.enabled").is_none_or(|value| value != "false"),
            target_bytes: number("commit.manifest.target-size-bytes").unwrap_or(8 * 1024 * 1024).max(1),
            min_count: usize::try_from(min_count).unwrap_or(usize::MAX).max(2),
        }
    }
}

/// The indexes of manifests to merge into one, oldest first; `None` where nothing is due.
/// `skip` names manifests that were found to have nothing to merge with.
pub(crate) fn plan_merge(
    manifests: &[ManifestFile],
    policy: MergePolicy,
    skip: &HashSet<String>,
) -> Option<Vec<usize>> {
    if !policy.enabled {
        return None;
    }
    let mut tiers: BTreeMap<(u32, i32), Vec<usize>> = BTreeMap::new();
    for (index, manifest) in manifests.iter().enumerate() {
        if is_small(manifest, policy) && !skip.contains(&manifest.manifest_path) {
            tiers.entry((tier(manifest), manifest.partition_spec_id)).or_default().push(index);
        }
    }
    let mut due = tiers.into_values().find(|members| members.len() >= policy.min_count)?;
    due.sort_by_key(|&index| manifests[index].sequence_number);
    let mut bytes = 0_u64;
    let fits = due.iter().take(policy.min_count).take_while(|&&index| {
        bytes = bytes.saturating_add(length(&manifests[index]));
        bytes <= policy.target_bytes
    });
    let chosen: Vec<usize> = fits.copied().collect();
    (chosen.len() > 1).then_some(chosen)
}

/// Two manifests of at most half the target always fit into one.
fn is_small(manifest: &ManifestFile, policy: MergePolicy) -> bool {
    manifest.content == ManifestContentType::Data
        && has_live_files(manifest)
        && manifest.key_metadata.as_ref().is_none_or(Vec::is_empty)
        && length(manifest) <= policy.target_bytes / 2
}

fn length(manifest: &ManifestFile) -> u64 {
    u64::try_from(manifest.manifest_length).unwrap_or(u64::MAX)
}

fn tier(manifest: &ManifestFile) -> u32 {
    let added = u64::from(manifest.added_files_count.unwrap_or(0));
    let entries = added + u64::from(manifest.existing_files_count.unwrap_or(0));
    entries.max(1).ilog2() / TIER_FACTOR_LOG2
}
