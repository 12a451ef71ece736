use firn_policies::{Sizes, SkipReason};

use super::*;

fn plan() -> Plan {
    let file = |path: &str, bytes| PlannedFile { path: path.to_owned(), bytes, rows: 10 };
    Plan {
        table: "db.events".to_owned(),
        table_uuid: "2f9b6c1e-0000-0000-0000-000000000000".to_owned(),
        branch: "main".to_owned(),
        planned_on: Some(7),
        options: RewriteOptions { sizes: Sizes::of_target(1000), ..RewriteOptions::default() },
        policy: None,
        groups: vec![PlannedGroup {
            id: 0,
            partition: "day=2026-01-02".to_owned(),
            spec_id: 0,
            files: vec![file("file:///t/a/1.parquet", 100), file("file:///t/b/1.parquet", 200)],
            bytes: 300,
            rows: 20,
            expected_outputs: 1,
            split_bytes: 1000,
        }],
        skipped: vec![SkippedFile {
            path: "file:///t/c.parquet".to_owned(),
            partition: String::new(),
            bytes: 5,
            reason: SkipReason::TooFewFiles {
                group_files: 1,
                group_bytes: 5,
                min_input_files: 5,
                target_bytes: 1000,
            },
        }],
        histogram: [100, 200, 5].into_iter().collect(),
        expected_histogram: [300, 5].into_iter().collect(),
        debt: Debt { excess_files: 1, files_to_rewrite: 2, bytes_to_rewrite: 300 },
    }
}

#[test]
fn a_plan_survives_serialisation() {
    let text = serde_json::to_string(&plan()).expect("json");
    assert_eq!(serde_json::from_str::<Plan>(&text).expect("a plan"), plan());
}

#[test]
fn totals_are_those_of_the_groups() {
    let plan = plan();
    assert_eq!((plan.input_files(), plan.input_bytes(), plan.input_rows()), (2, 300, 20));
    assert_eq!((plan.expected_outputs(), plan.is_empty()), (1, false));
}

#[test]
fn a_file_is_found_by_its_path_and_by_the_end_of_it() {
    let plan = plan();
    let rewritten = Why::Rewritten { group: 0, files: 2, expected_outputs: 1 };
    assert_eq!(plan.why("file:///t/b/1.parquet"), rewritten);
    assert_eq!(plan.why("b/1.parquet"), rewritten);
    assert_eq!(plan.why("c.parquet"), Why::Skipped(plan.skipped[0].clone()));
    assert_eq!(plan.why(".parquet"), Why::NotLive);
}
