//! What every policy must keep, checked on random layouts.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::binpack::{Decision, FileStats, SkipReason, bin_pack};
use crate::options::RewriteOptions;
use crate::sizes::Sizes;

const TARGET: u64 = 10_000_000;

/// A layout: partition, spec, size in thousandths of the target, sequence number.
fn layout() -> impl Strategy<Value = Vec<FileStats>> {
    let size = prop_oneof![4 => 1_u64..200, 3 => 200_u64..1000, 1 => 1000_u64..2500];
    let file = (0_u8..4, 0_i32..2, size, 1_i64..50);
    prop::collection::vec(file, 0..120).prop_map(|files| {
        let stats = |(index, (partition, spec_id, size, sequence_number)): (usize, (u8, i32, u64, i64))| {
            let bytes = size * TARGET / 1000;
            new_file(format!("f{index:04}"), &format!("p={partition}"), (spec_id, sequence_number), bytes)
        };
        files.into_iter().enumerate().map(stats).collect()
    })
}

fn new_file(path: String, partition: &str, (spec_id, sequence_number): (i32, i64), bytes: u64) -> FileStats {
    FileStats {
        path: path.into(),
        partition: partition.into(),
        spec_id,
        bytes,
        rows: bytes / 50 + 1,
        sequence_number,
        delete_files: 0,
        deleted_rows: 0,
        made_by: None,
    }
}

fn options() -> impl Strategy<Value = RewriteOptions> {
    // Groups of ten targets and more: smaller ones leave a rest each, which are worth joining.
    (2_u64..8, prop_oneof![Just(100_u64), 10_u64..15]).prop_map(|(min_input_files, group)| RewriteOptions {
        min_input_files,
        max_file_group_bytes: group * TARGET,
        ..RewriteOptions::of_target(TARGET)
    })
}

/// How a real writer differs from the plan, in percent.
#[derive(Debug, Clone)]
struct Writer {
    /// Bytes out for 100 bytes in: many small files shrink when they are joined.
    compression: u64,
    /// What the writer believes of 100 bytes that it has not closed yet, drawn for each file.
    estimates: Vec<u64>,
}

fn writer() -> impl Strategy<Value = Writer> {
    (30_u64..130, prop::collection::vec(85_u64..=115, 1..20))
        .prop_map(|(compression, estimates)| Writer { compression, estimates })
}

impl Writer {
    /// The sizes of the files that come out of a group: cut by estimates, measured when closed.
    fn outputs(&self, group_bytes: u64, sizes: &Sizes) -> Vec<u64> {
        let mut rest = group_bytes * self.compression / 100;
        let mut made = Vec::new();
        for estimate in self.estimates.iter().cycle() {
            let Some(cut) = sizes.cut(rest * estimate / 100) else { break };
            let bytes = (cut * 100 / estimate).min(rest);
            made.push(bytes);
            rest -= bytes;
        }
        if rest > 0 {
            made.push(rest);
        }
        made
    }

    /// The layout after every group was rewritten.
    fn apply(&self, files: &[FileStats], decision: &Decision, sizes: &Sizes) -> Vec<FileStats> {
        let mut after: Vec<FileStats> =
            decision.skipped.iter().map(|&(index, _)| files[index].clone()).collect();
        for group in &decision.groups {
            let outputs = self.outputs(group.bytes, sizes);
            after.extend(outputs.into_iter().enumerate().map(|(number, bytes)| {
                let path = format!("compact-{}-{number}", group.id);
                new_file(path, &group.partition, (group.spec_id, 60), bytes)
            }));
        }
        after
    }
}

/// A decision by paths, so that decisions on inputs of different order can be compared.
fn by_path(files: &[FileStats], decision: &Decision) -> (Vec<Vec<String>>, BTreeSet<(String, String)>) {
    let path = |index: usize| files[index].path.to_string();
    let groups = decision.groups.iter().map(|group| group.files.iter().map(|&index| path(index)).collect());
    let skipped = decision.skipped.iter().map(|(index, reason)| (path(*index), reason.to_string()));
    (groups.collect(), skipped.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_decision_does_not_depend_on_the_order_of_its_input(
        files in layout(), options in options(), seed in any::<u64>(),
    ) {
        let mut shuffled = files.clone();
        // Sorting by a keyed hash of the path is a permutation that depends on the seed alone.
        shuffled.sort_by_key(|file| file.path.bytes().fold(seed | 1, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
        }));
        let first = by_path(&files, &bin_pack(&files, &options));
        prop_assert_eq!(first, by_path(&shuffled, &bin_pack(&shuffled, &options)));
    }

    #[test]
    fn every_file_is_in_one_group_or_has_one_reason(files in layout(), options in options()) {
        let decision = bin_pack(&files, &options);
        let grouped = decision.groups.iter().flat_map(|group| group.files.iter().copied());
        let mut seen: Vec<usize> = grouped.chain(decision.skipped.iter().map(|&(index, _)| index)).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..files.len()).collect::<Vec<_>>());
    }

    #[test]
    fn groups_hold_only_candidates_of_one_partition_within_the_group_size(
        files in layout(), options in options(),
    ) {
        let decision = bin_pack(&files, &options);
        for group in &decision.groups {
            let members: Vec<&FileStats> = group.files.iter().map(|&index| &files[index]).collect();
            prop_assert_eq!(group.bytes, members.iter().map(|file| file.bytes).sum::<u64>());
            prop_assert_eq!(group.rows, members.iter().map(|file| file.rows).sum::<u64>());
            prop_assert!(group.bytes <= options.max_file_group_bytes || members.len() == 1);
            prop_assert!(members.len() as u64 > group.expected_outputs);
            for file in members {
                prop_assert!(!options.sizes.is_right(file.bytes));
                prop_assert_eq!((&file.partition, file.spec_id), (&group.partition, group.spec_id));
            }
        }
        let right = decision.skipped.iter().filter(|(_, reason)| *reason == SkipReason::RightSize);
        for (index, _) in right {
            prop_assert!(options.sizes.is_right(files[*index].bytes));
        }
    }

    #[test]
    fn planning_after_the_rewrite_yields_nothing(files in layout(), options in options(), writer in writer()) {
        let decision = bin_pack(&files, &options);
        let after = writer.apply(&files, &decision, &options.sizes);
        let second = bin_pack(&after, &options);
        prop_assert!(second.groups.is_empty(), "{:?} after {:?}", second.groups, decision.groups);
    }
}
