use super::*;

const MB: u64 = 1 << 20;

#[test]
fn defaults_are_three_quarters_and_one_point_eight_of_the_target() {
    let sizes = Sizes::of_target(512 * MB);
    assert_eq!(sizes.min_bytes, 384 * MB);
    assert_eq!(sizes.max_bytes, 512 * MB * 9 / 5);
    assert_eq!(sizes.roll_bytes(), 512 * MB + (512 * MB * 9 / 5 - 512 * MB) / 2);
}

/// Sums, and what Iceberg's arithmetic makes of them with a target of 1,000, a minimum of 750 and a maximum of 1,800
/// (roll size 1,400), in thousands of bytes so that the 5 KiB of a split are visible.
#[test]
fn outputs_and_split_sizes_follow_the_published_arithmetic() {
    let sizes = Sizes { min_bytes: 750_000, target_bytes: 1_000_000, max_bytes: 1_800_000 };
    let overhead = 5 * 1024;
    let golden = [
        // sum, outputs, split
        (0, 1, 1_000_000),
        (1, 1, 1_000_000),
        (999_999, 1, 1_000_000 + overhead - 1),
        (1_000_000, 1, 1_000_000 + overhead),
        (1_099_999, 1, 1_099_999 + overhead),
        (1_100_000, 2, 1_000_000),
        (1_400_000, 2, 1_000_000),
        (1_750_000, 2, 1_000_000),
        (1_750_001, 2, 1_000_000),
        (1_999_999, 2, 1_000_000 + overhead - 1),
        (2_000_000, 2, 1_000_000 + overhead),
        (2_199_999, 2, 1_099_999 + overhead),
        (2_200_000, 3, 1_000_000),
        (2_750_001, 3, 1_000_000),
        (10_700_000, 10, 1_070_000 + overhead),
        (10_760_000, 11, 1_000_000),
        (100_750_000, 100, 1_007_500 + overhead),
    ];
    for (sum, outputs, split) in golden {
        assert_eq!(sizes.outputs(sum), outputs, "outputs of {sum}");
        assert_eq!(sizes.split_bytes(sum), split.min(sizes.roll_bytes()), "split size of {sum}");
    }
}

#[test]
fn a_roll_size_below_one_point_one_targets_bounds_the_widest_average() {
    let sizes = Sizes { min_bytes: 750_000, target_bytes: 1_000_000, max_bytes: 1_100_000 };
    assert_eq!(sizes.roll_bytes(), 1_050_000);
    assert_eq!(sizes.outputs(1_049_999), 1);
    assert_eq!(sizes.outputs(1_050_000), 2);
}

#[test]
fn four_files_a_little_above_the_target_become_one() {
    let sizes = Sizes::of_target(512 * MB);
    assert_eq!(sizes.outputs(4 * 145 * MB), 2);
    assert_eq!(sizes.output_sizes(4 * 145 * MB), [580 * MB]);
}

#[test]
fn outputs_are_never_more_than_planned_and_all_but_the_last_are_of_the_right_size() {
    for target_bytes in [1_000_000, 512 * MB] {
        let sizes = Sizes::of_target(target_bytes);
        for step in 1..2_000 {
            let sum = target_bytes * step / 97;
            let made = sizes.output_sizes(sum);
            assert_eq!(made.iter().sum::<u64>(), sum);
            assert!(made.len() as u64 <= sizes.outputs(sum), "{sum}: {made:?}");
            let (last, full) = made.split_last().expect("a sum above zero makes a file");
            assert!(
                full.iter().all(|&bytes| (target_bytes..=sizes.roll_bytes()).contains(&bytes)),
                "{made:?}"
            );
            assert!(*last <= sizes.roll_bytes(), "{sum}: {made:?}");
            if sum > 2 * target_bytes {
                assert!(sizes.is_right(*last + 6 * 1024 * full.len() as u64), "{sum}: tiny rest in {made:?}");
            }
        }
    }
}

#[test]
fn nothing_is_cut_from_what_fits_one_file() {
    let sizes = Sizes::of_target(1_000_000);
    assert_eq!(sizes.cut(0), None);
    assert_eq!(sizes.cut(sizes.roll_bytes()), None);
    assert_eq!(sizes.cut(sizes.roll_bytes() + 1), Some(1_000_000));
    assert_eq!(sizes.output_sizes(0), [0_u64; 0]);
}
