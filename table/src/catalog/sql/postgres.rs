//! Postgres's databases: URLs as PyIceberg's users have them, and connections.
//!
//! `postgres://user:password@host:port/database?sslmode=require&…`, also with the scheme `postgresql` and with the name
//! of a Python driver behind it (`postgresql+psycopg2`). Parameters are those of libpq; one that is not known is
//! refused, because it may be a mistyped one that matters. `sslmode=verify-ca` is taken for `verify-full`. What a URL
//! leaves out is taken from where libpq takes it (`PGPASSWORD`, the password file): the driver does that. Prepared
//! statements are used: a pooler in between must pool sessions, or know them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions, PgSslMode};
use sqlx::{ConnectOptions, Connection};
use url::Url;

use super::database::Database;
use super::failure::Failure;
use crate::{Error, ErrorKind, Result};

/// How long a connection may take, where the URL does not say (`connect_timeout`, in seconds).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that nobody uses are closed before a firewall forgets them.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
const CONNECTIONS: u32 = 4;

/// Parameters that are handed to the driver.
const KNOWN: [&str; 12] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "user",
];
/// Parameters of libpq that have no bearing on a catalog, or ask for what is done anyway.
const IGNORED: [&str; 10] = [
    "client_encoding",
    "fallback_application_name",
    "gssencmode",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "sslcompression",
    "sslsni",
    "tcp_user_timeout",
];
/// libpq's name for the certificates that the system trusts.
const SYSTEM_CERTIFICATES: &str = "system";

/// Locks and statements end before the client stops waiting for them, so that their outcome is definite. Limits that
/// the user or the server has set stay.
const LIMITS: &str = "SELECT set_config(name, CASE name WHEN 'lock_timeout' THEN '5s' ELSE '20s' END, false) \
     FROM pg_settings WHERE name IN ('lock_timeout', 'statement_timeout') AND setting = '0'";

/// Where a database is and how to log in. Shown without the password.
#[derive(Clone)]
pub(in crate::catalog) struct PostgresAddress {
    connect: PgConnectOptions,
    connect_timeout: Duration,
    /// The file of the authority's certificate, where the URL names one.
    root_certificate: Option<String>,
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connect = &self.connect;
        let database = connect.get_database().unwrap_or_default();
        match connect.get_socket() {
            Some(socket) => write!(f, "postgres:///{database}?host={}", socket.display())?,
            None => write!(f, "postgres://{}:{}/{database}", connect.get_host(), connect.get_port())?,
        }
        write!(f, " as {}", connect.get_username())
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether a URI's scheme is one of Postgres.
pub(in crate::catalog) fn is_scheme(scheme: &str) -> bool {
    let scheme = scheme.to_ascii_lowercase();
    matches!(scheme.split_once('+').map_or(scheme.as_str(), |(kind, _)| kind), "postgres" | "postgresql")
}

impl PostgresAddress {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// `Configuration` where it is no URL, or a parameter is not known or has no meaning. No message repeats the URL:
    /// it may hold a password.
    pub(in crate::catalog) fn parse(uri: &str) -> Result<Self> {
        let wrong = |message: &str| Error::new(ErrorKind::Configuration, message);
        let given = Url::parse(uri).map_err(|error| {
            wrong(
                "the catalog's address is no URL: write `postgres://user:password@host:port/database`, with what is \
                 special in user and password percent-encoded",
            )
            .with_source(error)
        })?;
        if given.host_str().is_some_and(|host| host.contains(',')) {
            return Err(wrong("the catalog's address names several hosts: name the one that takes writes"));
        }
        let mut url = given.clone();
        // Only these may go into the driver's log.
        url.query_pairs_mut().clear();
        let mut connect_timeout = CONNECT_TIMEOUT;
        for (name, value) in given.query_pairs() {
            match name.as_ref() {
                "connect_timeout" => connect_timeout = seconds(&value)?,
                "sslrootcert" if value == SYSTEM_CERTIFICATES => {
                    url.query_pairs_mut().append_pair("sslmode", "verify-full");
                }
                known if KNOWN.contains(&known) => {
                    url.query_pairs_mut().append_pair(known, &value);
                }
                ignored if IGNORED.contains(&ignored) => {}
                other => {
                    return Err(wrong(&format!(
                        "parameter `{other}` of the catalog's address is not one that firn knows: remove it, or \
                         correct it"
                    )));
                }
            }
        }
        url.set_fragment(None);
        let connect = PgConnectOptions::from_str(url.as_str()).map_err(|error| {
            wrong("the catalog's address has a parameter without meaning").with_source(error)
        })?;
        let named = given.query_pairs().find(|(name, _)| name == "sslrootcert");
        let connect = as_libpq_would(connect, named.is_some());
        let certificate = named.map(|(_, value)| value.into_owned());
        let root_certificate = certificate.filter(|value| value != SYSTEM_CERTIFICATES);
        Ok(Self { connect, connect_timeout, root_certificate })
    }

    /// Connects once, so that what is wrong is told at once and exactly, and makes a pool.
    pub(super) async fn open(&self) -> Result<Database, Failure> {
        if let Some(path) = &self.root_certificate
            && let Err(error) = tokio::fs::metadata(path).await
        {
            let message = format!(
                "`sslrootcert` in the catalog's address names `{path}`, which cannot be read: name the file with the \
                 authority's certificate"
            );
            return Err(Failure::Rejected(Error::new(ErrorKind::Configuration, message).with_source(error)));
        }
        let connecting = PgConnection::connect_with(&self.connect);
        match tokio::time::timeout(self.connect_timeout, connecting).await {
            Ok(Ok(connection)) => {
                let _ = connection.close().await; // it served its purpose
            }
            Ok(Err(error)) => return Err(Failure::connecting(error)),
            Err(_) => return Err(Failure::not_connected_within(self.connect_timeout)),
        }
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .idle_timeout(IDLE_TIMEOUT)
            .acquire_timeout(self.connect_timeout)
            .after_connect(|connection, _| {
                Box::pin(async move { sqlx::query(LIMITS).execute(connection).await.map(drop) })
            })
            .connect_lazy_with(self.connect.clone());
        Ok(Database::Postgres(pool))
    }
}

/// Where the driver differs from libpq.
fn as_libpq_would(connect: PgConnectOptions, has_root_certificate: bool) -> PgConnectOptions {
    let mode = match connect.get_ssl_mode() {
        // The driver's `allow` never uses TLS.
        PgSslMode::Allow => PgSslMode::Prefer,
        // Without a look at the host's name the driver panics where several implementations of cryptography are
        // compiled into a program: the stricter mode takes that one's place.
        PgSslMode::VerifyCa => PgSslMode::VerifyFull,
        PgSslMode::Require if has_root_certificate => PgSslMode::VerifyFull,
        mode => mode,
    };
    let address =
        connect.get_host().strip_prefix('[').and_then(|host| host.strip_suffix(']')).map(str::to_owned);
    let mut connect = connect.ssl_mode(mode).disable_statement_logging();
    if let Some(address) = address {
        connect = connect.host(&address);
    }
    if connect.get_application_name().is_none() {
        connect = connect.application_name("firn");
    }
    connect
}

fn seconds(text: &str) -> Result<Duration> {
    match text.trim().parse::<u64>() {
        Ok(seconds @ 1..) => Ok(Duration::from_secs(seconds)),
        // libpq waits for ever then.
        Ok(0) => Ok(CONNECT_TIMEOUT),
        Err(_) => {
            let message =
                format!("`connect_timeout` of the catalog's address is `{text}`: write a number of seconds");
            Err(Error::new(ErrorKind::Configuration, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(uri: &str) -> PostgresAddress {
        PostgresAddress::parse(uri).unwrap_or_else(|error| panic!("{uri}: {error}"))
    }

    #[test]
    fn every_spelling_of_an_address_is_one_address() {
        for scheme in ["postgres", "postgresql", "postgresql+psycopg2", "postgresql+psycopg", "POSTGRES"] {
            assert!(is_scheme(scheme));
            let address = parse(&format!("{scheme}://ann:p%40ss@db.example:6543/lake%20one"));
            assert_eq!(address.to_string(), "postgres://db.example:6543/lake one as ann");
        }
        assert!(!is_scheme("mysql"));
        assert_eq!(parse("postgres://ann@[::1]/x").connect.get_host(), "::1");
        assert_eq!(
            parse("postgresql:///x?host=/run/pg&user=ann").to_string(),
            "postgres:///x?host=/run/pg as ann"
        );
    }

    #[test]
    fn tls_modes_are_those_of_libpq() {
        for (query, mode) in [
            ("", PgSslMode::Prefer),
            ("?sslmode=disable", PgSslMode::Disable),
            ("?sslmode=allow", PgSslMode::Prefer),
            ("?sslmode=require", PgSslMode::Require),
            ("?sslmode=require&sslrootcert=ca.crt", PgSslMode::VerifyFull),
            ("?sslmode=verify-ca&sslrootcert=ca.crt", PgSslMode::VerifyFull),
            ("?sslmode=verify-full&sslrootcert=ca.crt", PgSslMode::VerifyFull),
            ("?sslrootcert=system", PgSslMode::VerifyFull),
        ] {
            let found = parse(&format!("postgres://a@b/c{query}")).connect.get_ssl_mode();
            assert_eq!(format!("{found:?}"), format!("{mode:?}"), "{query}");
        }
    }

    #[test]
    fn parameters_are_taken_ignored_or_refused_and_no_secret_is_repeated() {
        let address = parse("postgres://a:secret@b/c?connect_timeout=3&keepalives=1&application_name=x");
        assert_eq!(address.connect_timeout, Duration::from_secs(3));
        assert_eq!(address.connect.get_application_name(), Some("x"));
        assert_eq!(parse("postgres://a:secret@b/c").connect.get_application_name(), Some("firn"));
        assert!(!format!("{address:?}").contains("secret"));
        for uri in [
            "postgres://a:secret@b/c?sslmod=require",
            "postgres://a:secret@b/c?sslmode=always",
            "postgres://a:secret@b/c?connect_timeout=soon",
            "postgres://a:secret@b,c/d",
            "postgres://a:secret@b:port/d",
            "postgres://a:se/cret@b/d",
        ] {
            let error = PostgresAddress::parse(uri).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{uri}");
            let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            assert!(!format!("{error} {source}").contains("secret"), "{error}: {source}");
        }
    }
}
