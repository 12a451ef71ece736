use super::*;

fn properties(entries: &[(&str, &str)]) -> HashMap<String, String> {
    entries.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn overrides(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    properties(entries).into_iter().collect()
}

#[test]
fn without_options_icebergs_defaults_hold() {
    let options = RewriteOptions::parse(&HashMap::new(), &BTreeMap::new()).expect("no problem");
    assert_eq!(options, RewriteOptions::default());
    assert_eq!(options.sizes, Sizes::of_target(536_870_912));
    assert_eq!(options.max_file_group_bytes, 107_374_182_400);
}

#[test]
fn the_tables_target_counts_and_an_option_goes_before_it() {
    let table = properties(&[("write.target-file-size-bytes", "1000000")]);
    let options = RewriteOptions::parse(&table, &BTreeMap::new()).expect("no problem");
    assert_eq!(options.sizes, Sizes { min_bytes: 750_000, target_bytes: 1_000_000, max_bytes: 1_800_000 });
    let options = RewriteOptions::parse(&table, &overrides(&[("target-file-size-bytes", "2000000")]))
        .expect("no problem");
    assert_eq!(options.sizes.max_bytes, 3_600_000);
}

#[test]
fn every_option_is_read() {
    let options = RewriteOptions::parse(
        &HashMap::new(),
        &overrides(&[
            ("target-file-size-bytes", "100"),
            ("min-file-size-bytes", "50"),
            ("max-file-size-bytes", "200"),
            ("min-input-files", "2"),
            ("delete-file-threshold", "3"),
            ("delete-ratio-threshold", "0.5"),
            ("max-file-group-size-bytes", "1000"),
            ("max-concurrent-file-group-rewrites", "7"),
            ("partial-progress.enabled", "false"),
            ("partial-progress.max-commits", "4"),
            ("use-starting-sequence-number", "false"),
            ("rewrite-job-order", "bytes-desc"),
            ("rewrite-all", "true"),
        ]),
    );
    let expected = RewriteOptions {
        sizes: Sizes { min_bytes: 50, target_bytes: 100, max_bytes: 200 },
        min_input_files: 2,
        delete_file_threshold: Some(3),
        delete_ratio_threshold: 0.5,
        max_file_group_bytes: 1000,
        max_concurrent_groups: 7,
        max_commits: None,
        use_starting_sequence_number: false,
        job_order: JobOrder::BytesDesc,
        rewrite_all: true,
    };
    assert_eq!(options, Ok(expected));
}

#[test]
fn all_problems_are_reported_at_once() {
    let problems = RewriteOptions::parse(
        &HashMap::new(),
        &overrides(&[
            ("target-file-size-bytes", "100"),
            ("min-file-size-bytes", "100"),
            ("max-file-size-bytes", "100"),
            ("min-input-files", "0"),
            ("delete-ratio-threshold", "NaN"),
            ("max-file-group-size-bytes", "99"),
            ("partial-progress.max-commits", "many"),
            ("rewrite-job-order", "random"),
            ("target-size", "1"),
        ]),
    )
    .expect_err("eight problems");
    let mut options: Vec<&str> = problems.0.iter().map(|problem| problem.option.as_str()).collect();
    options.sort_unstable();
    assert_eq!(
        options,
        [
            "delete-ratio-threshold",
            "max-file-group-size-bytes",
            "max-file-size-bytes",
            "min-file-size-bytes",
            "min-input-files",
            "partial-progress.max-commits",
            "rewrite-job-order",
            "target-size",
        ]
    );
    assert!(
        problems
            .to_string()
            .contains("`partial-progress.max-commits` = `many` is not a whole number above 0")
    );
}

#[test]
fn a_target_of_the_table_that_is_no_number_is_a_problem_unless_overridden() {
    let table = properties(&[("write.target-file-size-bytes", "512MB")]);
    assert!(RewriteOptions::parse(&table, &BTreeMap::new()).is_err());
    assert!(RewriteOptions::parse(&table, &overrides(&[("target-file-size-bytes", "100")])).is_ok());
}

#[test]
fn a_target_above_the_default_group_size_widens_the_groups() {
    let options =
        RewriteOptions::parse(&HashMap::new(), &overrides(&[("target-file-size-bytes", "214748364800")]))
            .expect("no problem");
    assert_eq!(options.max_file_group_bytes, 214_748_364_800);
}
