//! Plans: selections, reasons, refusals, and the layout as SQL tables.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use firn_compactor::{ErrorKind, PlanOptions, Why, layout_session, plan, sql};
use firn_policies::SkipReason;
use iceberg::TableUpdate;
use iceberg::spec::{FormatVersion, Transform};

use crate::support::{Lake, TestTable, plan_options, schema};

async fn filled(lake: &Lake, files: u64) -> TestTable {
    let table = lake.create(schema(), &[("id", Transform::Bucket(2))], &[]).await;
    for seed in 1..=files {
        table.append_random(50, seed).await;
    }
    table
}

fn selecting(filter: &str) -> PlanOptions {
    PlanOptions { filter: Some(filter.to_owned()), ..PlanOptions::default() }
}

#[tokio::test]
async fn a_condition_selects_files_and_the_others_say_so() {
    let lake = Lake::new().await;
    let table = filled(&lake, 8).await;
    let head = table.table().await;
    let all = plan(&head, &PlanOptions::default()).await.expect("a plan");
    assert_eq!((all.groups.len(), all.input_files(), all.input_rows()), (2, 16, 400));
    assert_eq!(all.histogram.files(), 16);
    assert_eq!(all.expected_histogram.files(), 2);
    assert_eq!((all.debt.excess_files, all.debt.bytes_to_rewrite), (14, all.input_bytes()));

    let some =
        plan(&head, &selecting("record_count > 0 and partition = 'id_bucket=1'")).await.expect("a plan");
    assert_eq!(some.groups.len(), 1);
    assert_eq!(some.groups[0].partition, "id_bucket=1");
    assert_eq!(some.skipped.len(), 8);
    assert!(some.skipped.iter().all(|file| file.reason == SkipReason::NotSelected));

    let options = PlanOptions { partition: Some("id_bucket=1".to_owned()), ..PlanOptions::default() };
    assert_eq!(plan(&head, &options).await.expect("a plan").groups, some.groups);
    let options = PlanOptions { partition: Some("id_bucket=7".to_owned()), ..PlanOptions::default() };
    assert!(plan(&head, &options).await.expect("a plan").is_empty());
}

#[tokio::test]
async fn a_plan_tells_what_becomes_of_a_file() {
    let lake = Lake::new().await;
    let table = filled(&lake, 8).await;
    let plan = plan(&table.table().await, &selecting("partition = 'id_bucket=0'")).await.expect("a plan");
    let path = plan.groups[0].files[3].path.clone();
    let rewritten = Why::Rewritten { group: 0, files: 8, expected_outputs: 1 };
    assert_eq!(plan.why(&path), rewritten);
    assert_eq!(plan.why(path.rsplit('/').next().expect("a name")), rewritten);
    let skipped = plan.skipped[0].clone();
    assert_eq!(plan.why(&skipped.path), Why::Skipped(skipped));
    assert_eq!(plan.why("nothing.parquet"), Why::NotLive);
}

#[tokio::test]
async fn what_is_wrong_is_said_before_anything_is_read() {
    let lake = Lake::new().await;
    let table = filled(&lake, 1).await;
    let head = table.table().await;
    let kind = async |options: PlanOptions| plan(&head, &options).await.expect_err("refused").kind();
    assert_eq!(kind(selecting("no_such_column > 1")).await, ErrorKind::Configuration);
    assert_eq!(kind(selecting("record_count >")).await, ErrorKind::Configuration);
    assert_eq!(kind(plan_options(&[("min-input-files", "none")])).await, ErrorKind::Configuration);
    assert_eq!(
        kind(plan_options(&[("use-starting-sequence-number", "false")])).await,
        ErrorKind::Unsupported
    );
    let branch = PlanOptions { branch: Some("audit".to_owned()), ..PlanOptions::default() };
    assert_eq!(kind(branch).await, ErrorKind::NotFound);
    let snapshot = PlanOptions { snapshot_id: Some(1), ..PlanOptions::default() };
    assert_eq!(kind(snapshot).await, ErrorKind::NotFound);
    let partition = PlanOptions { partition: Some("1".to_owned()), ..PlanOptions::default() };
    assert_eq!(kind(partition).await, ErrorKind::Configuration);
}

#[tokio::test]
async fn a_table_that_was_upgraded_to_version_3_is_appended_to_and_compacted() {
    let lake = Lake::new().await;
    let table = filled(&lake, 4).await;
    table.update(vec![TableUpdate::UpgradeFormatVersion { format_version: FormatVersion::V3 }]).await;
    table.append_random(50, 9).await;
    let before = table.rows().await;
    let report = table.compact(&[("min-input-files", "2")]).await;
    assert_eq!((report.groups_landed, report.files_in, report.files_out), (2, 10, 2), "{report:?}");
    assert_eq!(table.rows().await, before);
    let live = table.live().await;
    assert!(live.iter().all(|file| file.file.first_row_id().is_some()));
    assert!(
        plan(&table.table().await, &plan_options(&[("min-input-files", "2")]))
            .await
            .expect("a plan")
            .is_empty()
    );
}

#[tokio::test]
async fn the_layout_answers_sql() {
    let lake = Lake::new().await;
    let table = filled(&lake, 4).await;
    let session = layout_session(&table.table().await, None).await.expect("a session");
    let count = async |query: &str| {
        let batches = sql(&session, query).await.expect("rows");
        batches[0].column(0).as_primitive::<Int64Type>().value(0)
    };
    assert_eq!(count("select count(*) from files where partition = 'id_bucket=0'").await, 4);
    assert_eq!(count("select count(*) from partitions").await, 2);
    assert_eq!(count("select count(*) from snapshots").await, 4);
    assert!(count("select count(*) from manifests").await > 0);
    assert_eq!(count("select count(*) from offsets").await, 4);
    for query in
        ["create table x as select 1", "drop table files", "set datafusion.execution.batch_size = 1", "selec"]
    {
        assert_eq!(
            sql(&session, query).await.expect_err("refused").kind(),
            ErrorKind::Configuration,
            "{query}"
        );
    }
    let none = sql(&session, "select file_path from files where false").await.expect("no rows");
    assert_eq!((none[0].num_rows(), none[0].num_columns()), (0, 1));
}
