//! SQLite's databases: files, found or made.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::super::IfMissing;
use super::database::Database;
use crate::{Error, ErrorKind, Result};

/// How long SQLite itself waits for a lock before it answers BUSY: short, so that the caller decides.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait for one of the pool's connections.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECTIONS: u32 = 4;

/// The path in `sqlite:PATH`, `sqlite://PATH` and `sqlite:///absolute`; SQLAlchemy's four slashes are absolute too.
pub(in crate::catalog) fn path_of_uri(rest: &str) -> Result<PathBuf> {
    let path = match rest.strip_prefix("//") {
        Some(after) if after.starts_with('/') => format!("/{}", after.trim_start_matches('/')),
        Some(after) => after.to_owned(),
        None => rest.to_owned(),
    };
    if path.is_empty() {
        return Err(Error::new(
            ErrorKind::Configuration,
            "catalog `sqlite:` names no file: write `sqlite:PATH`",
        ));
    }
    Ok(PathBuf::from(path))
}

/// Whether a database ends with the process.
pub(super) fn is_in_memory(path: &Path) -> bool {
    path == Path::new(":memory:")
}

/// The database at `path`; the file and its folder are made where that is asked for.
pub(super) async fn open(path: &Path, if_missing: IfMissing) -> Result<Database> {
    let in_memory = is_in_memory(path);
    if !in_memory {
        prepare_file(path, if_missing).await?;
    }
    let connect = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(if_missing == IfMissing::Create)
        .busy_timeout(BUSY_TIMEOUT);
    let pool = SqlitePoolOptions::new()
        .max_connections(if in_memory { 1 } else { CONNECTIONS })
        .min_connections(u32::from(in_memory))
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_lazy_with(connect);
    Ok(Database::Sqlite(pool))
}

async fn prepare_file(database: &Path, if_missing: IfMissing) -> Result<()> {
    let shown = database.display();
    let exists = tokio::fs::try_exists(database).await.map_err(|error| {
        let message = format!("catalog database `{shown}` cannot be looked at");
        Error::new(ErrorKind::Configuration, message).with_source(error)
    })?;
    match if_missing {
        _ if exists => Ok(()),
        IfMissing::Refuse => {
            let message = format!("catalog database `{shown}` does not exist: check the path");
            Err(Error::new(ErrorKind::NotFound, message))
        }
        IfMissing::Create => {
            let Some(folder) = database.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
                return Ok(());
            };
            tokio::fs::create_dir_all(folder).await.map_err(|error| {
                let message = format!("cannot make the folder of the catalog database `{shown}`");
                Error::new(ErrorKind::Configuration, message).with_source(error)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_uris_name_their_path_literally() {
        for (rest, path) in [
            ("catalog.db", "catalog.db"),
            ("./a b%20c.db", "./a b%20c.db"),
            ("/abs/x.db", "/abs/x.db"),
            ("//rel/x.db", "rel/x.db"),
            ("///abs/x?.db", "/abs/x?.db"),
            ("////abs/x.db", "/abs/x.db"),
            (":memory:", ":memory:"),
        ] {
            assert_eq!(path_of_uri(rest).unwrap(), Path::new(path), "{rest}");
        }
        assert_eq!(path_of_uri("").unwrap_err().kind(), ErrorKind::Configuration);
    }
}
