use chrono::{DateTime, Utc};
use proptest::prelude::*;

use super::*;
use crate::binpack::{FileStats, SkipReason, bin_pack};
use crate::options::RewriteOptions;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time")
}

fn schedule(lines: &str) -> Schedule {
    let policy = Policy::parse(&format!("name = 'p'\n[schedule]\n{lines}"));
    policy.expect("a policy").schedule.expect("a schedule")
}

fn files(partitions: &[(u64, usize)]) -> Vec<FileStats> {
    let mut files = Vec::new();
    for (partition, &(bytes, count)) in partitions.iter().enumerate() {
        files.extend((0..count).map(|number| FileStats {
            path: format!("p{partition}/f{number:04}").into(),
            partition: format!("p={partition}").into(),
            spec_id: 0,
            bytes,
            rows: bytes,
            sequence_number: 1,
            delete_files: 0,
            deleted_rows: 0,
            made_by: None,
        }));
    }
    files
}

#[test]
fn every_preset_is_a_policy_of_its_name_whose_options_are_right() {
    for (name, _) in PRESETS {
        let policy = Policy::preset(name).expect("a preset");
        assert_eq!(policy.name, name);
        let options = RewriteOptions::parse(&Default::default(), &policy.options_with(&BTreeMap::new()));
        assert!(options.is_ok(), "{name}: {options:?}");
    }
    assert_eq!(Policy::preset("nightly"), None);
}

#[test]
fn problems_are_told_together() {
    let text = "name = ' '\noptions = { a = [1] }\n[budget]\nfiles = 0\n[trigger]\ncommits = 0\n\
                [schedule]\ncron = 'soon'\nwindows = ['Mon 20:00', '10:00-10:00']\ntime-zone = 'Mars'";
    let problems = Policy::parse(text).expect_err("problems").to_string();
    for part in [
        "`name`",
        "option `a`",
        "`budget.files`",
        "`trigger.commits`",
        "`soon`",
        "`Mon 20:00`",
        "`10:00-10:00`",
        "`Mars`",
    ] {
        assert!(problems.contains(part), "{part} is not in: {problems}");
    }
    let unknown = Policy::parse("name = 'p'\nbudjet = 1").expect_err("a problem").to_string();
    assert!(unknown.contains("budjet"), "{unknown}");
    let size =
        Policy::parse("name = 'p'\nbudget = { bytes = '1 parsec' }").expect_err("a problem").to_string();
    assert!(size.contains("parsec"), "{size}");
}

#[test]
fn a_group_is_never_larger_than_the_budget_but_one_output_fits() {
    let policy = Policy::parse("name = 'p'\nbudget = { bytes = '1 GiB' }").expect("a policy");
    let group = |given: &[(&str, &str)]| {
        let given = given.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        policy.options_with(&given).get(MAX_FILE_GROUP_SIZE_BYTES).cloned()
    };
    assert_eq!(group(&[]), Some((1_u64 << 30).to_string()));
    assert_eq!(group(&[(TARGET_FILE_SIZE_BYTES, "2000000000")]), Some("2000000000".to_owned()));
    assert_eq!(group(&[(MAX_FILE_GROUP_SIZE_BYTES, "7")]), Some("7".to_owned()));
}

#[test]
fn the_budget_holds_over_all_partitions_and_the_most_useful_groups_come_first() {
    let options = RewriteOptions::of_target(10_000);
    // Partition 1 removes the most files for each byte, partition 0 the fewest.
    let files = files(&[(1000, 9), (10, 50), (100, 20)]);
    let policy = Policy {
        rank: Rank::FilesPerByte,
        budget: Budget { bytes: Some(3000), ..Budget::default() },
        ..Policy::default()
    };
    let decision = policy.within_budget(bin_pack(&files, &options));
    let partitions: Vec<&str> = decision.groups.iter().map(|group| &*group.partition).collect();
    assert_eq!(partitions, ["p=1", "p=2"]);
    let left = SkipReason::OverBudget { group_files: 9, group_bytes: 9000 };
    assert_eq!(decision.skipped, (0..9).map(|index| (index, left.clone())).collect::<Vec<_>>());
    // A group beyond the budget is done alone rather than never.
    let alone = Policy { budget: Budget { files: Some(5), ..Budget::default() }, ..policy };
    assert_eq!(alone.within_budget(bin_pack(&files, &options)).groups.len(), 1);
}

#[test]
fn any_threshold_starts_a_run_and_none_means_always() {
    let backlog = Backlog { commits: 10, files: 20, bytes: 300, oldest: Some(Duration::from_secs(60)) };
    assert_eq!(Trigger::default().waits_for(&backlog), None);
    let far = Trigger {
        commits: Some(11),
        small_files: Some(21),
        small_bytes: Some(301),
        age: Some(Duration::from_secs(61)),
    };
    let waits = far.waits_for(&backlog).expect("it waits");
    assert_eq!(waits, "10/11 commits, 20/21 files, 300/301 bytes, an age of 60/61 s");
    for reached in [
        Trigger { commits: Some(10), ..far },
        Trigger { small_files: Some(20), ..far },
        Trigger { small_bytes: Some(300), ..far },
        Trigger { age: Some(Duration::from_secs(60)), ..far },
    ] {
        assert_eq!(reached.waits_for(&backlog), None, "{reached:?}");
    }
}

#[test]
fn a_cron_expression_is_due_once_for_each_occurrence_in_its_zone() {
    let hourly = schedule("cron = '15 * * * *'");
    let last = at("2026-01-02T03:20:00Z");
    assert_eq!(hourly.standing(at("2026-01-02T03:20:00Z"), None), ScheduleStanding::Due);
    assert!(
        matches!(hourly.standing(at("2026-01-02T04:14:59Z"), Some(last)), ScheduleStanding::NotYet(Some(next)) if next == at("2026-01-02T04:15:00Z"))
    );
    assert_eq!(hourly.standing(at("2026-01-02T04:15:00Z"), Some(last)), ScheduleStanding::Due);
    assert_eq!(hourly.standing(at("2026-01-09T00:00:00Z"), Some(last)), ScheduleStanding::Due);
    let berlin = schedule("cron = '0 3 * * *'\ntime-zone = 'Europe/Berlin'");
    let last = at("2026-07-01T02:00:00Z");
    assert!(matches!(berlin.standing(at("2026-07-02T00:59:00Z"), Some(last)), ScheduleStanding::NotYet(_)));
    assert_eq!(berlin.standing(at("2026-07-02T01:00:00Z"), Some(last)), ScheduleStanding::Due);
}

#[test]
fn windows_are_of_the_zones_days_and_may_go_over_midnight() {
    let nights =
        schedule("windows = ['Fri 20:00-06:00', 'Sun-Mon 10:00-11:00']\ntime-zone = 'Europe/Berlin'");
    // 2026-01-02 is a Friday; Berlin is an hour ahead of UTC.
    let cases = [
        ("2026-01-02T18:59:00Z", false),
        ("2026-01-02T19:00:00Z", true),
        ("2026-01-03T04:59:00Z", true),
        ("2026-01-03T05:00:00Z", false),
        ("2026-01-02T04:00:00Z", false),
        ("2026-01-04T09:30:00Z", true),
        ("2026-01-05T09:30:00Z", true),
        ("2026-01-06T09:30:00Z", false),
    ];
    for (time, inside) in cases {
        let expected = if inside { ScheduleStanding::Due } else { ScheduleStanding::OutsideWindows };
        assert_eq!(nights.standing(at(time), None), expected, "{time}");
    }
    let whole = schedule("windows = ['00:00-24:00']");
    assert_eq!(whole.standing(at("2026-01-06T23:59:59Z"), None), ScheduleStanding::Due);
}

#[test]
fn a_partition_is_busy_until_it_was_quiet_for_long_enough() {
    let added = |partition, at_ms| Addition { partition, spec_id: 0, at_ms };
    let additions = [added("a", 1_000), added("a", 9_000), added("b", 4_000), added("c", 20_000)];
    let busy = busy_partitions(additions, Duration::from_secs(5), 10_000);
    assert_eq!(busy.into_iter().collect::<Vec<_>>(), [("a", 0), ("c", 0)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn runs_within_a_budget_lose_nothing_and_come_to_an_end(
        partitions in prop::collection::vec((1_u64..9_000, 1_usize..40), 0..30),
        bytes in 1_u64..200_000,
        most_files in 1_u64..100,
    ) {
        let options = RewriteOptions::of_target(10_000);
        let mut live = files(&partitions);
        let policy = Policy {
            rank: Rank::FilesPerByte,
            budget: Budget { bytes: Some(bytes), files: Some(most_files), time: None },
            ..Policy::default()
        };
        let all: u64 = live.iter().map(|file| file.bytes).sum();
        for run in 0.. {
            let decision = policy.within_budget(bin_pack(&live, &options));
            let seen = decision.skipped.len() + decision.groups.iter().map(|g| g.files.len()).sum::<usize>();
            prop_assert_eq!(seen, live.len());
            let read: u64 = decision.groups.iter().map(|group| group.bytes).sum();
            let count: usize = decision.groups.iter().map(|group| group.files.len()).sum();
            let held = read <= bytes && count as u64 <= most_files;
            prop_assert!(held || decision.groups.len() == 1);
            if decision.groups.is_empty() {
                break;
            }
            prop_assert!(run < partitions.len() + 1, "more runs than partitions");
            let mut after: Vec<FileStats> = decision.skipped.iter().map(|&(index, _)| live[index].clone()).collect();
            for group in &decision.groups {
                for (number, size) in options.sizes.output_sizes(group.bytes).into_iter().enumerate() {
                    let one = &live[group.files[0]];
                    let path = format!("{}/run{run}-{}-{number}", group.partition, group.id).into();
                    after.push(FileStats { path, bytes: size, rows: size, ..one.clone() });
                }
            }
            live = after;
            prop_assert_eq!(live.iter().map(|file| file.bytes).sum::<u64>(), all);
        }
        prop_assert!(bin_pack(&live, &options).groups.is_empty());
    }
}
