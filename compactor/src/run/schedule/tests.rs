use firn_policies::{Debt, Histogram, RewriteOptions};

use super::*;
use crate::plan::{PlannedFile, PlannedGroup};

const MIB: u64 = 1 << 20;

fn plan(groups: usize, group_bytes: u64, file_bytes: u64) -> Plan {
    let group = |id| PlannedGroup {
        id,
        partition: String::new(),
        spec_id: 0,
        files: vec![PlannedFile { path: format!("{id}"), bytes: file_bytes, rows: 1 }],
        bytes: group_bytes,
        rows: 1,
        expected_outputs: 1,
        split_bytes: group_bytes,
    };
    Plan {
        table: "t".to_owned(),
        table_uuid: String::new(),
        branch: "main".to_owned(),
        planned_on: Some(1),
        options: RewriteOptions::default(),
        policy: None,
        groups: (0..groups).map(group).collect(),
        skipped: Vec::new(),
        histogram: Histogram::default(),
        expected_histogram: Histogram::default(),
        debt: Debt::default(),
    }
}

fn resources(memory_mib: usize, cores: usize) -> Resources {
    Resources { memory_bytes: memory_mib << 20, cores, spill_directory: None }
}

#[test]
fn groups_at_a_time_are_bounded_by_option_cores_and_memory() {
    let small = plan(20, 10 * MIB, MIB);
    assert_eq!(concurrent_groups(&small, &resources(8192, 16)), 5, "the option's default");
    assert_eq!(concurrent_groups(&small, &resources(8192, 2)), 2);
    // Large groups of large files need two row groups each on both sides, and their batches: 576 MiB.
    let large = plan(20, 4096 * MIB, 512 * MIB);
    assert_eq!(concurrent_groups(&large, &resources(1728, 16)), 3);
    assert_eq!(concurrent_groups(&large, &resources(1727, 16)), 2);
    assert_eq!(concurrent_groups(&large, &resources(1, 16)), 1, "one group always runs");
}

#[test]
fn batches_take_a_fourth_of_a_groups_share_at_most() {
    assert_eq!(batch_memory_bytes(&resources(1024, 2), 2), 64 << 20);
    assert_eq!(batch_memory_bytes(&resources(64, 2), 2), 8 << 20);
}

#[test]
fn groups_are_spread_over_the_commits_that_a_run_may_make() {
    let mut plan = plan(25, MIB, MIB);
    assert_eq!(groups_per_commit(&plan), 3);
    plan.options.max_commits = None;
    assert_eq!(groups_per_commit(&plan), 25);
    plan.options.max_commits = Some(100);
    assert_eq!(groups_per_commit(&plan), 1);
}
