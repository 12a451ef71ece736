use super::*;
use crate::debt::Debt;
use crate::sizes::Sizes;

const MB: u64 = 1 << 20;

fn file(index: usize, bytes: u64) -> FileStats {
    FileStats {
        path: format!("file:///t/data/{index:05}.parquet").into(),
        partition: "day=2026-01-02".into(),
        spec_id: 0,
        bytes,
        rows: bytes / 100,
        sequence_number: 1,
        delete_files: 0,
        deleted_rows: 0,
        made_by: None,
    }
}

fn files(sizes: &[u64]) -> Vec<FileStats> {
    sizes.iter().enumerate().map(|(index, &bytes)| file(index, bytes)).collect()
}

fn with_target(target_bytes: u64) -> RewriteOptions {
    RewriteOptions::of_target(target_bytes)
}

/// What becomes of files of these sizes: inputs and expected outputs of each group.
fn groups(sizes: &[u64], options: &RewriteOptions) -> Vec<(usize, u64)> {
    let decision = bin_pack(&files(sizes), options);
    decision.groups.iter().map(|group| (group.files.len(), group.expected_outputs)).collect()
}

/// What it is, sizes of files, and the inputs and expected outputs of each group.
type Golden = (&'static str, Vec<u64>, Vec<(usize, u64)>);

#[test]
fn groups_follow_the_published_arithmetic() {
    let options = with_target(512 * MB);
    let golden: [Golden; 13] = [
        ("no file", vec![], vec![]),
        ("one small file", vec![MB], vec![]),
        ("four small files", vec![MB; 4], vec![]),
        ("five small files", vec![MB; 5], vec![(5, 1)]),
        ("two that exceed the target together", vec![380 * MB; 2], vec![]),
        ("three that exceed the target together", vec![180 * MB; 3], vec![(3, 1)]),
        ("five of the right size", vec![400 * MB; 5], vec![]),
        ("at the minimum", vec![384 * MB; 5], vec![]),
        ("just below the minimum", vec![384 * MB - 1; 20], vec![(20, 15)]),
        ("one above the maximum", vec![922 * MB], vec![]),
        ("small ones beside a right one", [vec![MB; 6], vec![512 * MB]].concat(), vec![(6, 1)]),
        ("small ones beside one above the maximum", [vec![MB; 6], vec![1000 * MB]].concat(), vec![(7, 2)]),
        ("four of 145 MB", vec![145 * MB; 4], vec![(4, 2)]),
    ];
    for (what, sizes, expected) in golden {
        assert_eq!(groups(&sizes, &options), expected, "{what}");
    }
}

#[test]
fn three_files_just_below_a_small_target_are_right() {
    let options = with_target(128 * MB);
    let decision = bin_pack(&files(&[120 * MB; 3]), &options);
    assert_eq!(decision.groups, []);
    assert!(decision.skipped.iter().all(|(_, reason)| *reason == SkipReason::RightSize));
}

#[test]
fn files_that_would_become_as_many_are_left_alone() {
    // Above half of the target but such that no two of them make one output.
    let options = RewriteOptions {
        sizes: Sizes { min_bytes: 500, target_bytes: 512, max_bytes: 540 },
        ..with_target(512)
    };
    let decision = bin_pack(&files(&[499; 461]), &options);
    assert_eq!(options.sizes.outputs(499 * 461), 449);
    assert_eq!(decision.groups.len(), 1);
    let options = RewriteOptions { max_file_group_bytes: 512 * 10, ..options };
    let decision = bin_pack(&files(&[499; 461]), &options);
    assert_eq!(options.sizes.outputs(499 * 10), 10);
    assert_eq!(decision.groups, []);
    assert_eq!(decision.skipped.len(), 461);
    let reason = SkipReason::NoFewerFiles { group_files: 10, group_bytes: 4990, outputs: 10 };
    assert_eq!(decision.skipped[0], (0, reason));
}

#[test]
fn a_large_file_and_many_small_ones_converge() {
    let options = with_target(512 * MB);
    let mut sizes = vec![MB; 200];
    sizes.push(700 * MB);
    assert_eq!(groups(&sizes, &options), [(200, 1)]);
    assert_eq!(groups(&[200 * MB, 700 * MB], &options), []);
}

#[test]
fn a_sum_just_below_the_target_makes_one_output() {
    let options = with_target(64 * MB);
    let decision = bin_pack(&files(&[63 * MB / 9; 9]), &options);
    assert_eq!(decision.groups.len(), 1);
    assert_eq!(decision.groups[0].expected_outputs, 1);
    assert_eq!(options.sizes.cut(decision.groups[0].bytes), None);
}

#[test]
fn groups_never_mix_partitions_or_specs() {
    let mut input = files(&[MB; 12]);
    for (index, file) in input.iter_mut().enumerate() {
        file.partition = if index % 2 == 0 { "day=2026-01-02".into() } else { "day=2026-01-03".into() };
        file.spec_id = i32::from(index >= 10);
    }
    let decision = bin_pack(&input, &with_target(512 * MB));
    let members: Vec<&[usize]> = decision.groups.iter().map(|group| &group.files[..]).collect();
    assert_eq!(members, [&[0, 2, 4, 6, 8][..], &[1, 3, 5, 7, 9][..]]);
    assert_eq!(decision.skipped.len(), 2);
}

#[test]
fn groups_are_filled_by_path_within_sequence_number() {
    let mut input = files(&[MB; 7]);
    input[0].sequence_number = 9;
    let options = RewriteOptions { min_input_files: 3, max_file_group_bytes: 3 * MB, ..with_target(2 * MB) };
    let decision = bin_pack(&input, &options);
    let members: Vec<&[usize]> = decision.groups.iter().map(|group| &group.files[..]).collect();
    assert_eq!(members, [&[1, 2, 3][..], &[4, 5, 6][..]]);
    let reason =
        SkipReason::TooFewFiles { group_files: 1, group_bytes: MB, min_input_files: 3, target_bytes: 2 * MB };
    assert_eq!(decision.skipped, [(0, reason)]);
}

#[test]
fn first_fit_fills_an_earlier_group_with_a_smaller_file() {
    let options = RewriteOptions { min_input_files: 2, max_file_group_bytes: 10, ..with_target(10) };
    let decision = bin_pack(&files(&[6, 5, 4, 5]), &options);
    let members: Vec<&[usize]> = decision.groups.iter().map(|group| &group.files[..]).collect();
    assert_eq!(members, [&[0, 2][..], &[1, 3][..]]);
}

#[test]
fn many_deleted_rows_make_a_file_of_the_right_size_a_group_of_its_own() {
    let mut input = files(&[600 * MB, 600 * MB]);
    input[0].deleted_rows = input[0].rows * 2 / 5;
    input[1].deleted_rows = input[1].rows / 5;
    let decision = bin_pack(&input, &with_target(512 * MB));
    assert_eq!(decision.groups.len(), 1);
    assert_eq!(decision.groups[0].files, [0]);
    assert_eq!(decision.skipped, [(1, SkipReason::RightSize)]);
    let options = RewriteOptions { delete_file_threshold: Some(2), ..with_target(512 * MB) };
    input[1].delete_files = 2;
    assert_eq!(bin_pack(&input, &options).groups[0].files, [0, 1]);
}

#[test]
fn an_entry_without_bytes_is_skipped_unless_it_has_no_rows_either() {
    let mut input = files(&[MB; 5]);
    input.push(FileStats { rows: 10, ..file(5, 0) });
    input.push(FileStats { rows: 0, ..file(6, 0) });
    let decision = bin_pack(&input, &with_target(512 * MB));
    assert_eq!(decision.groups[0].files, [0, 1, 2, 3, 4, 6]);
    assert_eq!(decision.skipped, [(5, SkipReason::NoBytes)]);
}

#[test]
fn a_group_without_rows_expects_no_output() {
    let input: Vec<FileStats> = (0..5).map(|index| FileStats { rows: 0, ..file(index, 400) }).collect();
    let decision = bin_pack(&input, &with_target(512 * MB));
    assert_eq!(decision.groups[0].expected_outputs, 0);
}

#[test]
fn job_order_sorts_and_numbers_the_groups() {
    let mut input = files(&[2 * MB, 2 * MB, 4 * MB, 4 * MB, MB, MB, MB]);
    for (index, file) in input.iter_mut().enumerate() {
        file.partition = ["a", "a", "b", "b", "c", "c", "c"][index].into();
    }
    let first = |job_order| {
        let options = RewriteOptions { job_order, min_input_files: 2, ..with_target(512 * MB) };
        let decision = bin_pack(&input, &options);
        let order: Vec<&str> = decision.groups.iter().map(|group| &*group.partition).collect();
        assert!(decision.groups.iter().enumerate().all(|(id, group)| group.id == id));
        order.join("")
    };
    assert_eq!(first(JobOrder::None), "abc");
    assert_eq!(first(JobOrder::BytesAsc), "cab");
    assert_eq!(first(JobOrder::BytesDesc), "bac");
    assert_eq!(first(JobOrder::FilesAsc), "abc");
    assert_eq!(first(JobOrder::FilesDesc), "cab");
}

#[test]
fn rewrite_all_takes_every_file() {
    let options = RewriteOptions { rewrite_all: true, ..with_target(512 * MB) };
    assert_eq!(groups(&[512 * MB], &options), [(1, 1)]);
}

#[test]
fn debt_is_what_the_groups_save() {
    let decision = bin_pack(&files(&[MB; 200]), &with_target(512 * MB));
    let expected = Debt { excess_files: 199, files_to_rewrite: 200, bytes_to_rewrite: 200 * MB };
    assert_eq!(Debt::of(&decision), expected);
}

#[test]
fn a_hundred_thousand_files_of_one_partition_are_planned_quickly() {
    let input: Vec<FileStats> = (0..100_000).map(|index| file(index, MB + index as u64)).collect();
    let options = RewriteOptions { max_file_group_bytes: 512 * MB, ..with_target(128 * MB) };
    let decision = bin_pack(&input, &options);
    let grouped: usize = decision.groups.iter().map(|group| group.files.len()).sum();
    assert_eq!(grouped + decision.skipped.len(), 100_000);
}

#[test]
fn files_that_one_run_made_for_this_target_are_left_alone() {
    let made = |run: &str| Some(std::sync::Arc::from(run));
    let options = RewriteOptions { min_input_files: 2, ..with_target(100 * MB) };
    let mut input = files(&[MB; 6]);
    input.iter_mut().for_each(|file| file.made_by = made("a"));
    let reasons = bin_pack(&input, &options).skipped;
    assert_eq!(reasons, (0..6).map(|index| (index, SkipReason::MadeTogether)).collect::<Vec<_>>());
    for other in [made("b"), None] {
        input[3].made_by = other;
        assert_eq!(bin_pack(&input, &options).groups.len(), 1);
    }
    input[3].made_by = made("a");
    let all = RewriteOptions { rewrite_all: true, ..options };
    assert_eq!(bin_pack(&input, &all).groups.len(), 1);
}
