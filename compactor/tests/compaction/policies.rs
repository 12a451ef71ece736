//! Plans under a policy: what waits, what is left alone, and what one run may do.

use firn_compactor::{CompactOptions, ErrorKind, Plan, PlanOptions, PolicyAt, Silent, compact, plan};
use firn_policies::{Policy, SkipReason};
use iceberg::spec::Transform;
use tokio_util::sync::CancellationToken;

use crate::support::{Lake, TestTable, schema};

const MINUTE_MS: i64 = 60_000;

async fn filled(lake: &Lake, commits: u64) -> TestTable {
    let table = lake.create(schema(), &[("id", Transform::Bucket(4))], &[]).await;
    for seed in 1..=commits {
        table.append_random(80, seed).await;
    }
    table
}

/// The time of the table's last commit.
async fn last_commit(table: &TestTable) -> i64 {
    table.table().await.metadata().current_snapshot().expect("a snapshot").timestamp_ms()
}

fn at(policy: &str, now_ms: i64) -> PlanOptions {
    let policy = Policy::parse(&format!("name = 'p'\n{policy}")).expect("a policy");
    PlanOptions { policy: Some(PolicyAt { policy, now_ms }), ..PlanOptions::default() }
}

async fn planned(table: &TestTable, options: &PlanOptions) -> Plan {
    plan(&table.table().await, options).await.expect("a plan")
}

fn causes(plan: &Plan) -> Vec<&str> {
    let waiting = plan.skipped.iter().filter_map(|file| match &file.reason {
        SkipReason::Waiting { cause } => Some(cause.as_str()),
        _ => None,
    });
    let mut causes: Vec<&str> = waiting.collect();
    causes.dedup();
    causes
}

#[tokio::test]
async fn a_run_waits_for_its_backlog_and_counts_commits_from_the_last_one() {
    let lake = Lake::new().await;
    let table = filled(&lake, 6).await;
    let now = last_commit(&table).await;
    let waiting = planned(&table, &at("trigger = { commits = 7, age = '1h' }", now)).await;
    assert_eq!((waiting.groups.len(), waiting.skipped.len()), (0, 24));
    assert_eq!(causes(&waiting), ["6/7 commits, an age of 0/3600 s"]);
    assert_eq!(waiting.policy.as_deref(), Some("p"));
    let old = planned(&table, &at("trigger = { commits = 7, age = '1h' }", now + 61 * MINUTE_MS)).await;
    assert_eq!(old.input_files(), 24);

    let due = at("trigger = { commits = 6 }", now);
    let options = CompactOptions { plan: due.clone(), ..CompactOptions::default() };
    let stop = CancellationToken::new();
    let report = compact(&table.handle, &options, std::sync::Arc::new(Silent), stop).await.expect("a run");
    assert_eq!(report.files_in, 24);
    for seed in 7..=11 {
        table.append_random(80, seed).await;
    }
    assert_eq!(causes(&planned(&table, &due).await), ["5/6 commits"]);
}

#[tokio::test]
async fn an_occurrence_has_to_pass_after_the_last_run() {
    let lake = Lake::new().await;
    let table = filled(&lake, 6).await;
    let daily = "schedule = { cron = '0 3 * * *' }";
    let now = last_commit(&table).await;
    let options = CompactOptions { plan: at(daily, now), ..CompactOptions::default() };
    let stop = CancellationToken::new();
    compact(&table.handle, &options, std::sync::Arc::new(Silent), stop).await.expect("a run");
    for seed in 7..=12 {
        table.append_random(80, seed).await;
    }
    let now = last_commit(&table).await;
    let early = planned(&table, &at(daily, now)).await;
    assert!(
        early.is_empty() && causes(&early)[0].starts_with("its next occurrence is "),
        "{:?}",
        causes(&early)
    );
    assert!(!planned(&table, &at(daily, now + 24 * 60 * MINUTE_MS)).await.is_empty());
}

#[tokio::test]
async fn partitions_are_left_alone_until_they_are_quiet_and_a_rewrite_does_not_wake_them() {
    let lake = Lake::new().await;
    let table = filled(&lake, 6).await;
    let now = last_commit(&table).await;
    let busy = planned(&table, &at("quiet = '10m'", now + 9 * MINUTE_MS)).await;
    assert!(busy.is_empty());
    assert!(busy.skipped.iter().all(|file| file.reason == SkipReason::Busy));
    let quiet =
        at("quiet = '10m'\noptions = { min-input-files = 2, rewrite-all = true }", now + 11 * MINUTE_MS);
    let options = CompactOptions { plan: quiet.clone(), ..CompactOptions::default() };
    let stop = CancellationToken::new();
    let report = compact(&table.handle, &options, std::sync::Arc::new(Silent), stop).await.expect("a run");
    assert_eq!((report.files_in, report.files_out), (24, 4));
    // The rewrite's own snapshot is younger than ten minutes before any of these times.
    assert_eq!(planned(&table, &quiet).await.input_files(), 4);
}

#[tokio::test]
async fn one_budget_holds_over_all_partitions_and_runs_within_it_come_to_an_end() {
    let lake = Lake::new().await;
    let table = filled(&lake, 6).await;
    let now = last_commit(&table).await;
    let whole = planned(&table, &PlanOptions::default()).await;
    assert_eq!((whole.groups.len(), whole.input_files()), (4, 24));
    let limited = at("rank = 'files-per-byte'\nbudget = { files = 12 }", now);
    let mut runs = Vec::new();
    loop {
        let options = CompactOptions { plan: limited.clone(), ..CompactOptions::default() };
        let stop = CancellationToken::new();
        let report =
            compact(&table.handle, &options, std::sync::Arc::new(Silent), stop).await.expect("a run");
        if report.groups_planned == 0 {
            break;
        }
        runs.push(report.files_in);
    }
    assert_eq!(runs, [12, 12]);
    let over = planned(&filled(&Lake::new().await, 6).await, &limited).await;
    let left = over.skipped.iter().filter(|file| matches!(file.reason, SkipReason::OverBudget { .. }));
    assert_eq!(left.count(), 12);
}

#[tokio::test]
async fn a_policys_condition_holds_beside_the_callers() {
    let lake = Lake::new().await;
    let table = filled(&lake, 6).await;
    let mut options = at("where = \"partition <> 'id_bucket=0'\"", 0);
    options.filter = Some("partition <> 'id_bucket=1'".to_owned());
    let plan = planned(&table, &options).await;
    let partitions: Vec<&str> = plan.groups.iter().map(|group| group.partition.as_str()).collect();
    assert_eq!(partitions, ["id_bucket=2", "id_bucket=3"]);
    let wrong = firn_compactor::plan(&table.table().await, &at("where = 'nothing > 1'", 0)).await;
    assert_eq!(wrong.expect_err("a problem").kind(), ErrorKind::Configuration);
}
