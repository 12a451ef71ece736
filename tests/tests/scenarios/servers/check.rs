//! `firn check --connect` says which of catalog, store and permissions fails.

use anyhow::{Context, Result};
use firn_table::catalog::CatalogOptions;
use firn_tests::appender;
use firn_tests::servers::{self, Place};
use firn_tests::warehouse::Warehouse;
use serde_json::Value;

use super::postgres::Database;

const TABLE: &str = "db.t";

/// The exit code, the row that failed (empty where none did), and all that was printed.
fn checked(warehouse: &Warehouse) -> Result<(Option<i32>, String, String)> {
    let ended = warehouse.run(&["check", TABLE, "--connect", "--format", "json"])?;
    let rows = ended.json().with_context(|| ended.stderr.clone())?;
    let rows = rows.as_array().context("rows")?;
    let text = |row: &Value, column: &str| row[column].as_str().unwrap_or_default().to_owned();
    let failed = rows.iter().find(|row| row["result"] == "FAILED");
    if let Some(row) = failed {
        assert_ne!(text(row, "advice"), "", "{row}");
    }
    Ok((ended.code, failed.map(|row| text(row, "check")).unwrap_or_default(), ended.stdout))
}

fn changed(options: &CatalogOptions, change: impl FnOnce(&mut CatalogOptions)) -> Result<Warehouse> {
    let mut options = options.clone();
    change(&mut options);
    Warehouse::on("check", options)
}

async fn made(options: CatalogOptions) -> Result<Warehouse> {
    let warehouse = Warehouse::on("check", options)?;
    appender::create(warehouse.create().await?.catalog.as_ref(), TABLE).await?;
    Ok(warehouse)
}

#[tokio::test]
#[ignore = "needs Postgres and an S3 server: tests/run servers"]
async fn a_check_of_postgres_and_s3_names_what_fails() -> Result<()> {
    let s3 = servers::s3()?;
    let options = Place::PostgresS3.catalog("check")?;
    let sound = made(options.clone()).await?;
    let (code, failed, said) = checked(&sound)?;
    assert_eq!((code, failed.as_str()), (Some(0), ""), "{said}");

    let secret = s3.properties.get("s3.secret-access-key").context("a secret")?.clone();
    let set = |name: &str, value: &str| {
        changed(&options, |options| {
            options.properties.insert(name.to_owned(), value.to_owned());
        })
    };
    let cases = [
        (set("s3.secret-access-key", "wrong")?, 3, "store"),
        (set("s3.endpoint", "http://127.0.0.1:1")?, 6, "store"),
        (
            changed(&options, |options| options.uri = options.uri.replacen("firn:", "firn:wrong", 1))?,
            3,
            "catalog",
        ),
        (
            changed(&options, |options| options.uri = "postgres://firn:x@127.0.0.1:1/firn".to_owned())?,
            6,
            "catalog",
        ),
        (changed(&options, |options| options.name = Some("other".to_owned()))?, 3, "table"),
    ];
    for (warehouse, expected, row) in &cases {
        let (code, failed, said) = checked(warehouse)?;
        assert_eq!((code, failed.as_str()), (Some(*expected), *row), "{said}");
        assert!(!said.contains(&secret), "{said}");
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs Postgres: tests/run servers"]
async fn a_check_names_what_the_user_of_a_catalog_may_not_do() -> Result<()> {
    let database = Database::new()?;
    let options = database.options("check-data")?;
    made(options.clone()).await?;
    let reader = database.as_user("reader")?;
    database.sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC")?;
    let (code, failed, said) = checked(&changed(&options, |options| options.uri = reader)?)?;
    assert_eq!((code, failed.as_str()), (Some(3), "properties"), "{said}");
    assert!(said.contains("grant SELECT, INSERT, UPDATE"), "{said}");
    let nobody = database.as_user("nobody")?;
    database.sql("REVOKE SELECT ON ALL TABLES IN SCHEMA public FROM PUBLIC")?;
    let (code, failed, said) = checked(&changed(&options, |options| options.uri = nobody)?)?;
    assert_eq!((code, failed.as_str()), (Some(3), "catalog"), "{said}");
    Ok(())
}

#[tokio::test]
#[ignore = "needs a REST catalog and an S3 server: tests/run servers"]
async fn a_check_of_a_rest_catalog_and_s3_names_what_fails() -> Result<()> {
    let options = Place::RestS3.catalog("check")?;
    let sound = made(options.clone()).await?;
    let (code, failed, said) = checked(&sound)?;
    assert_eq!((code, failed.as_str()), (Some(0), ""), "{said}");
    let wrong_key = changed(&options, |options| {
        options.properties.insert("s3.secret-access-key".to_owned(), "wrong".to_owned());
    })?;
    let nobody = changed(&options, |options| options.uri = "http://127.0.0.1:1".to_owned())?;
    for (warehouse, expected, row) in [(wrong_key, 3, "store"), (nobody, 6, "catalog")] {
        let (code, failed, said) = checked(&warehouse)?;
        assert_eq!((code, failed.as_str()), (Some(expected), row), "{said}");
    }
    Ok(())
}
