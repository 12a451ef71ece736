//! Postgres as a catalog: outcomes under locks, limits and lost sessions; layouts; TLS; other programs on the same
//! database.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use firn_table::ErrorKind;
use firn_table::catalog::{
    CatalogOptions, CommitOutcome, IfMissing, OpenCatalog, open_catalog, parse_table_ident,
};
use firn_tests::appender::{self, Appender};
use firn_tests::checks::After;
use firn_tests::readers::{ENGINES, Question, agree_of, java_sets};
use firn_tests::servers::Place;
use firn_tests::warehouse::Warehouse;
use firn_tests::{rows, scratch, servers};
use iceberg::table::Table;
use iceberg::{TableRequirement, TableUpdate};
use uuid::Uuid;

use crate::engines::{neighbour, ran};
use crate::tables;

const TABLE: &str = "db.t";

/// A database of its own on the server.
pub(super) struct Database {
    url: String,
    name: String,
}

impl Database {
    pub(super) fn new() -> Result<Self> {
        let name = format!("t{}", Uuid::new_v4().simple());
        psql(&servers::postgres()?, &format!("CREATE DATABASE {name}"))?;
        let url = servers::postgres()?;
        let (server, _) = url.rsplit_once('/').context("a URL names a database")?;
        Ok(Self { url: format!("{server}/{name}"), name })
    }

    pub(super) fn sql(&self, statement: &str) -> Result<String> {
        psql(&self.url, statement)
    }

    pub(super) fn options(&self, test: &str) -> Result<CatalogOptions> {
        let data = scratch::folder(test)?;
        Ok(CatalogOptions {
            uri: self.url.clone(),
            name: Some("firn".to_owned()),
            warehouse: Some(format!("file://{}", data.display())),
            if_missing: IfMissing::Create,
            ..CatalogOptions::default()
        })
    }

    /// The same database as another user, who is made.
    pub(super) fn as_user(&self, user: &str) -> Result<String> {
        let name = format!("{user}_{}", self.name);
        self.sql(&format!("CREATE USER {name} PASSWORD 'x'; GRANT USAGE ON SCHEMA public TO {name}"))?;
        let (_, place) = self.url.split_once('@').context("a URL with a user")?;
        Ok(format!("postgres://{name}:x@{place}"))
    }
}

fn psql(url: &str, statement: &str) -> Result<String> {
    let arguments = ["-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement];
    let output = Command::new("psql").args(arguments).output().context("running psql")?;
    ensure!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Another session, which stays open.
struct Session {
    child: Child,
    input: ChildStdin,
}

impl Session {
    /// Opens one, and waits until it has done its first statements.
    fn that_did(database: &Database, statements: &str) -> Result<Self> {
        let mut child = Command::new("psql")
            .args(["-q", "-At", "-d", &database.url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take().context("a pipe was asked for")?;
        writeln!(input, "{statements}\nSELECT 'done';")?;
        input.flush()?;
        let mut said = std::io::BufReader::new(child.stdout.take().context("a pipe was asked for")?);
        let mut line = String::new();
        while !line.contains("done") {
            line.clear();
            ensure!(std::io::BufRead::read_line(&mut said, &mut line)? > 0, "psql ended");
        }
        Ok(Self { child, input })
    }

    fn ends(mut self) -> Result<()> {
        writeln!(self.input, "ROLLBACK;")?;
        drop(self.input);
        self.child.wait()?;
        Ok(())
    }
}

async fn open(options: &CatalogOptions) -> Result<OpenCatalog> {
    Ok(open_catalog(options, None).await?)
}

async fn table(opened: &OpenCatalog) -> Result<Table> {
    appender::create(opened.catalog.as_ref(), TABLE).await?;
    Ok(opened.catalog.load_table(&parse_table_ident(TABLE)?).await?)
}

async fn commit(opened: &OpenCatalog, base: &Table) -> CommitOutcome {
    let updates = [("a".to_owned(), "1".to_owned())].into();
    let requirements = vec![TableRequirement::UuidMatch { uuid: base.metadata().uuid() }];
    opened.catalog.commit(base, requirements, vec![TableUpdate::SetProperties { updates }]).await
}

async fn metadata_files(opened: &OpenCatalog, table: &Table) -> Result<usize> {
    use futures::StreamExt;
    let folder = format!("{}/metadata", table.metadata().location());
    let (store, folder) = opened.stores.resolve(&folder)?;
    Ok(store.list(Some(&folder)).count().await)
}

#[tokio::test]
#[ignore = "needs Postgres: tests/run servers"]
async fn a_row_that_another_session_holds_is_no_conflict_and_leaves_no_file() -> Result<()> {
    let database = Database::new()?;
    let opened = open(&database.options("postgres-lock")?).await?;
    let base = table(&opened).await?;
    let holder = Session::that_did(&database, "BEGIN; SELECT 1 FROM iceberg_tables FOR UPDATE;")?;
    let began = Instant::now();
    let outcome = commit(&opened, &base).await;
    assert!(matches!(outcome, CommitOutcome::NotApplied { .. }), "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(15), "it waited {:?}", began.elapsed());
    holder.ends()?;
    assert_eq!(metadata_files(&opened, &base).await?, 1);
    assert!(matches!(commit(&opened, &base).await, CommitOutcome::Committed(_)));
    Ok(())
}

/// A trigger cancels, fails or ends the session while the UPDATE runs.
#[tokio::test]
#[ignore = "needs Postgres: tests/run servers"]
async fn what_the_database_says_of_a_commit_decides_its_outcome() -> Result<()> {
    let database = Database::new()?;
    let opened = open(&database.options("postgres-outcomes")?).await?;
    let base = table(&opened).await?;
    let raises = |state: &str| format!("RAISE EXCEPTION 'told to' USING ERRCODE = '{state}';");
    let ends = "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5);".to_owned();
    for (body, expected) in [
        (raises("40001"), "NotApplied"),
        (raises("40P01"), "NotApplied"),
        (raises("53100"), "NotApplied"),
        (raises("42501"), "Rejected"),
        (raises("22001"), "Rejected"),
        (raises("XX000"), "Unknown"),
        (ends, "Unknown"),
    ] {
        database.sql(&format!(
            "CREATE OR REPLACE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NEW; END $$; \
             CREATE OR REPLACE TRIGGER spoil BEFORE UPDATE ON iceberg_tables FOR EACH ROW EXECUTE FUNCTION spoil()"
        ))?;
        let outcome = commit(&opened, &base).await;
        let found = format!("{outcome:?}");
        assert!(found.starts_with(expected), "{body}: {found}");
    }
    database.sql("DROP TRIGGER spoil ON iceberg_tables")?;
    // Files of unknown outcomes stay, all others are gone.
    assert_eq!(metadata_files(&opened, &base).await?, 3);
    let outcome = commit(&opened, &base).await;
    assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
    Ok(())
}

/// A constraint that is checked at the end of the transaction: UPDATE succeeds and COMMIT does not.
#[tokio::test]
#[ignore = "needs Postgres: tests/run servers"]
async fn a_commit_that_fails_at_the_end_of_its_transaction_is_not_reported_as_landed() -> Result<()> {
    let database = Database::new()?;
    let opened = open(&database.options("postgres-deferred")?).await?;
    let base = table(&opened).await?;
    database.sql(
        "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RAISE EXCEPTION 'too late' USING ERRCODE = '40001'; END $$; \
         CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON iceberg_tables DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION late()",
    )?;
    let outcome = commit(&opened, &base).await;
    assert!(matches!(outcome, CommitOutcome::NotApplied { .. }), "{outcome:?}");
    database.sql("DROP TRIGGER late ON iceberg_tables")?;
    let head = opened.catalog.load_table(&parse_table_ident(TABLE)?).await?;
    assert_eq!(head.metadata(), base.metadata());
    assert_eq!(metadata_files(&opened, &base).await?, 1);
    Ok(())
}

/// Sessions that the server ended while nobody used them cost no commit its outcome.
#[tokio::test]
#[ignore = "needs Postgres: tests/run servers"]
async fn idle_sessions_that_were_ended_are_replaced() -> Result<()> {
    let database = Database::new()?;
    let opened = open(&database.options("postgres-idle")?).await?;
    let base = table(&opened).await?;
    let ended = database.sql(&format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{}' AND pid <> pg_backend_pid()",
        database.name
    ))?;
    assert_ne!(ended, "0");
    let outcome = commit(&opened, &base).await;
    assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
    Ok(())
}

#[tokio::test]
#[ignore = "needs Postgres: tests/run servers"]
async fn a_user_who_may_only_read_is_told_so() -> Result<()> {
    let database = Database::new()?;
    let options = database.options("postgres-reader")?;
    let opened = open(&options).await?;
    let base = table(&opened).await?;
    let reader = CatalogOptions { uri: database.as_user("reader")?, ..options.clone() };
    database.sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC")?;
    match commit(&open(&reader).await?, &base).await {
        CommitOutcome::Rejected(error) => {
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.to_string().contains("grant"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(metadata_files(&opened, &base).await?, 1);
    let nobody = CatalogOptions { uri: database.as_user("nobody")?, ..options };
    database.sql("REVOKE SELECT ON ALL TABLES IN SCHEMA public FROM PUBLIC")?;
    let outcome = commit(&open(&nobody).await?, &base).await;
    assert!(matches!(outcome, CommitOutcome::Rejected(_)), "{outcome:?}");
    Ok(())
}

/// What PyIceberg up to 0.11 and Java's schema V0 create.
#[tokio::test]
#[ignore = "needs Postgres: tests/run servers"]
async fn a_database_without_the_type_column_is_used_as_it_is() -> Result<()> {
    let database = Database::new()?;
    let options = CatalogOptions { if_missing: IfMissing::Refuse, ..database.options("postgres-v0")? };
    let none = open_catalog(&options, None).await.map(drop).expect_err("no catalog is there");
    assert_eq!(none.kind(), ErrorKind::Configuration);
    database.sql(
        "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, \
         table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), \
         previous_metadata_location VARCHAR(1000), PRIMARY KEY (catalog_name, table_namespace, table_name)); \
         CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT \
         NULL, property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000) NOT NULL, \
         PRIMARY KEY (catalog_name, namespace, property_key))",
    )?;
    let opened = open(&options).await?;
    let base = table(&opened).await?;
    let CommitOutcome::Committed(next) = commit(&opened, &base).await else { panic!("it landed") };
    let row = database.sql("SELECT * FROM iceberg_tables")?;
    let location = |table: &Table| table.metadata_location().unwrap_or_default().to_owned();
    assert_eq!(row, format!("firn|db|t|{}|{}", location(&next), location(&base)));
    Ok(())
}

#[tokio::test]
#[ignore = "needs Postgres: tests/run servers"]
async fn names_and_values_that_do_not_fit_are_refused() -> Result<()> {
    let database = Database::new()?;
    let opened = open(&database.options("postgres-long")?).await?;
    let long = "n".repeat(300);
    let error = appender::create(opened.catalog.as_ref(), &format!("db.{long}")).await;
    assert!(error.is_err());
    let error = appender::create(opened.catalog.as_ref(), "db.nul\0").await;
    assert!(error.is_err());
    Ok(())
}

#[tokio::test]
#[ignore = "needs Postgres: tests/run servers"]
async fn processes_that_make_the_catalog_at_once_all_open_it() -> Result<()> {
    let database = Database::new()?;
    let options = database.options("postgres-made-at-once")?;
    let mut processes = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let options = options.clone();
        processes.spawn(async move { open_catalog(&options, None).await.map(drop) });
    }
    for opened in processes.join_all().await {
        opened?;
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs Postgres: tests/run servers"]
async fn what_keeps_a_connection_from_coming_about_is_told_without_the_password() -> Result<()> {
    let url = servers::postgres()?;
    let (user, place) = url.split_once('@').context("a URL with a user")?;
    let password = user.rsplit(':').next().context("a URL with a password")?;
    let (server, _) = place.split_once('/').context("a URL with a database")?;
    for (uri, kind, says) in [
        (format!("{user}@{server}/missing"), ErrorKind::Configuration, "no such database"),
        (format!("postgres://firn:wrong{password}@{place}"), ErrorKind::Configuration, "password"),
        (format!("{user}@127.0.0.1:1/firn"), ErrorKind::Unavailable, "reached"),
        (format!("{user}@{place}?sslmode=verify-full"), ErrorKind::Configuration, "sslrootcert"),
        (
            format!("{user}@{place}?sslmode=verify-full&sslrootcert=missing.crt"),
            ErrorKind::Configuration,
            "sslrootcert",
        ),
    ] {
        let options = CatalogOptions { uri: uri.clone(), ..CatalogOptions::default() };
        let error = open_catalog(&options, None).await.map(drop).expect_err(says);
        let whole = format!("{:#}", anyhow::Error::from(error));
        assert!(whole.contains(says), "{whole}");
        assert!(!whole.contains(password), "{whole}");
        assert!(!format!("{options:?}").contains(password));
        let error = open_catalog(&options, None).await.map(drop).expect_err(says);
        assert_eq!(error.kind(), kind, "{error}");
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs Postgres: tests/run servers"]
async fn tls_is_used_as_the_mode_says() -> Result<()> {
    let database = Database::new()?;
    let authority = scratch::run_folder()?.join("postgres/ca.crt");
    let authority = authority.display();
    // The driver of Python in the URL, and the parameters that people have there.
    let place = database.url.replacen("postgres:", "postgresql+psycopg2:", 1);
    for (mode, encrypted) in [
        ("sslmode=disable".to_owned(), "f"),
        ("sslmode=prefer&connect_timeout=5&keepalives=1".to_owned(), "t"),
        ("sslmode=require".to_owned(), "t"),
        (format!("sslmode=verify-ca&sslrootcert={authority}"), "t"),
        (format!("sslmode=verify-full&sslrootcert={authority}"), "t"),
    ] {
        let uri = format!("{place}?{mode}&application_name=tls");
        let opened = open(&CatalogOptions { uri, ..database.options("postgres-tls")? }).await?;
        opened.catalog.list_namespaces(None).await?;
        let seen = database.sql(&format!(
            "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
             WHERE application_name = 'tls' AND datname = '{}'",
            database.name
        ))?;
        assert_eq!(seen, encrypted, "{mode}");
    }
    Ok(())
}

/// PyIceberg and Java's `JdbcCatalog` work on the tables of one database while firn does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Postgres, Java and Python: tests/run servers"]
async fn other_programs_write_and_read_the_same_database() -> Result<()> {
    const THEIRS: u64 = 1_000_000;
    let warehouse = Warehouse::on("postgres-neighbours", Place::PostgresLocal.catalog("neighbours")?)?;
    // Theirs first: each makes a table of its own.
    warehouse.create().await?;
    ran(neighbour("create", &warehouse, "db.theirs", &[3, 50])?)?;
    java_sets(&warehouse, "db.java", &[("made.by", "java")])?;
    let opened = warehouse.open().await?;
    let mut names = opened.catalog.list_tables(parse_table_ident(TABLE)?.namespace()).await?;
    names.sort_by_key(ToString::to_string);
    let names: Vec<&str> = names.iter().map(iceberg::TableIdent::name).collect();
    assert_eq!(names, ["java", "theirs"]);

    appender::create(opened.catalog.as_ref(), TABLE).await?;
    // Java takes longer from the catalog's row to the file than twenty commits take here: it loses to many of them,
    // and would lose to all without a pause now and then.
    let bears = [
        ("write.metadata.delete-after-commit.enabled", "false"),
        ("commit.retry.num-retries", "500"),
        ("commit.retry.min-wait-ms", "1"),
        ("commit.retry.max-wait-ms", "50"),
    ];
    let updates = bears.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    tables::update(&warehouse, TABLE, vec![TableUpdate::SetProperties { updates }]).await?;
    let process = Appender::new(warehouse.handle(TABLE).await?, "firn")?;
    let java = {
        let warehouse = Warehouse::on("postgres-java", warehouse.options())?;
        tokio::task::spawn_blocking(move || {
            for round in 0..3 {
                java_sets(&warehouse, TABLE, &[("made.by", "java"), ("round", &round.to_string())])?;
            }
            anyhow::Ok(())
        })
    };
    let mut next = 0;
    let mut turns = tokio::time::interval(Duration::from_millis(300));
    while !java.is_finished() || next < 100 {
        if next % 50 == 0 {
            turns.tick().await;
        }
        process.append(next..next + 10).await?;
        next += 10;
    }
    java.await??;
    let appended = ran(neighbour("append", &warehouse, "db.theirs", &[THEIRS, 5, 20])?)?;
    assert_eq!(appended["appends"], 5);
    process.append(next..next + 10).await?;

    let (table, stores) = warehouse.table(TABLE).await?;
    assert_eq!(table.metadata().properties().get("round").map(String::as_str), Some("2"));
    let ids = rows::ids(&table, &stores).await?;
    assert_eq!(ids, (0..next + 10).map(|offset| (appender::id(0, offset), 1)).collect());
    warehouse.check(TABLE, After::Fault).await?;
    let ours = Question { warehouse: &warehouse, table: TABLE.to_owned(), filters: Vec::new() };
    let theirs = Question { warehouse: &warehouse, table: "db.theirs".to_owned(), filters: Vec::new() };
    let answers = agree_of(&ENGINES, &[ours, theirs]).await?;
    assert_eq!(answers[1].rows, 250);
    Ok(())
}
