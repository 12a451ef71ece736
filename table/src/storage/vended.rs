//! Credentials that a catalog gives out for its tables: which of them a location needs, and renewing them in time.
//!
//! A [`Grant`] is what one load of a table brought: credentials by prefix, for what lies under the table's roots. Tables
//! of one bucket may have different ones, so a location is looked up twice: the table whose root is nearest above it,
//! then, among that table's credentials, the one with the longest prefix. Stores that are open already sign the next
//! request with what was granted last; a credential that is about to expire is renewed before it signs one more.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use iceberg::io::{S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY, S3_SESSION_TOKEN};
use object_store::CredentialProvider;
use object_store::aws::{AwsCredential, AwsCredentialProvider};

use super::normalize;
use crate::{Error, ErrorKind, Result};

/// When the session token expires, in milliseconds since the epoch.
const EXPIRES_AT_MS: &str = "s3.session-token-expires-at-ms";
/// What changes when credentials are renewed; a change of any other property needs another client.
const RENEWED: [&str; 4] = [S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY, S3_SESSION_TOKEN, EXPIRES_AT_MS];
/// The longest time before its expiry that a credential is renewed: a tenth of its life, up to this.
const MAX_MARGIN_MS: i64 = 5 * 60 * 1000;

/// Storage properties for what lies under a prefix.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StorageCredential {
    /// A location, or only its scheme; empty for all that the table has.
    pub(crate) prefix: String,
    /// Properties under Iceberg's names; they win over those of the catalog.
    pub(crate) properties: HashMap<String, String>,
}

impl fmt::Debug for StorageCredential {
    /// Without the values: some are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageCredential").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// Fetches the credentials of a table anew.
#[async_trait]
pub(crate) trait Renew: fmt::Debug + Send + Sync {
    /// All credentials of the table, as they are now.
    async fn renew(&self) -> Result<Vec<StorageCredential>>;
}

/// The credentials of one table.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    /// Whose they are; a later grant of the same name replaces this one.
    pub(crate) table: String,
    /// The locations under which the table's files lie.
    pub(crate) roots: Vec<String>,
    /// The credentials; one with an empty prefix is for all under the roots.
    pub(crate) credentials: Vec<StorageCredential>,
    /// Where to get newer ones.
    pub(crate) renew: Arc<dyn Renew>,
}

/// All grants of a catalog.
#[derive(Debug, Default)]
pub(super) struct Vended {
    tables: Mutex<HashMap<String, Arc<Holder>>>,
    ids: AtomicU64,
}

/// What a location needs beyond the catalog's properties.
#[derive(Debug, Clone)]
pub(super) struct Granted {
    /// Tells clients apart: one per holder and prefix.
    pub(super) key: (u64, String),
    pub(super) properties: HashMap<String, String>,
    /// Signs with what was granted last; `None` where the grant has no keys.
    pub(super) provider: Option<AwsCredentialProvider>,
}

impl Vended {
    /// Takes over what a load brought.
    pub(super) fn grant(&self, grant: Grant) {
        let mut tables = lock(&self.tables);
        if grant.credentials.is_empty() {
            tables.remove(&grant.table);
            return;
        }
        let roots: Vec<String> = grant.roots.iter().map(|root| normalize(root)).collect();
        if let Some(holder) = tables.get(&grant.table)
            && holder.roots == roots
            && holder.takes(&grant.credentials)
        {
            return;
        }
        let id = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        let holder = Holder {
            id,
            roots,
            renew: grant.renew,
            renewing: tokio::sync::Mutex::default(),
            current: Mutex::new(Current { credentials: grant.credentials, since_ms: now_ms() }),
        };
        tables.insert(grant.table, Arc::new(holder));
    }

    /// The grant for a location, if there is one.
    pub(super) fn find(&self, location: &str) -> Option<Granted> {
        let tables = lock(&self.tables);
        if tables.is_empty() {
            return None;
        }
        let location = normalize(location);
        let nearest = tables.values().filter_map(|holder| Some((holder.match_of(&location)?, holder)));
        let (matched, holder) =
            nearest.max_by_key(|(matched, holder)| (matched.root, matched.prefix.len(), holder.id))?;
        Some(holder.granted(matched.prefix))
    }
}

/// How a location matches a table's grant.
#[derive(Debug)]
struct Match {
    /// The length of the root above it; 0 where a prefix alone covers it.
    root: usize,
    /// The prefix, as the catalog gave it.
    prefix: String,
}

/// The credentials of one table, as granted last.
#[derive(Debug)]
struct Holder {
    id: u64,
    roots: Vec<String>,
    renew: Arc<dyn Renew>,
    /// Who holds it fetches; the others wait for what comes.
    renewing: tokio::sync::Mutex<()>,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    credentials: Vec<StorageCredential>,
    /// When they were granted.
    since_ms: i64,
}

impl Holder {
    /// Keeps newer credentials where a client that is open can sign with them: same prefixes, same other properties.
    fn takes(&self, newer: &[StorageCredential]) -> bool {
        let mut current = lock(&self.current);
        let same = current.credentials.len() == newer.len()
            && current.credentials.iter().zip(newer).all(|(old, new)| {
                old.prefix == new.prefix && fixed(&old.properties) == fixed(&new.properties)
            });
        if same {
            *current = Current { credentials: newer.to_vec(), since_ms: now_ms() };
        }
        same
    }

    fn match_of(&self, location: &str) -> Option<Match> {
        let under = self.roots.iter().filter(|root| is_under(location, root)).map(String::len).max();
        let current = lock(&self.current);
        let prefixes = current.credentials.iter().map(|credential| &credential.prefix);
        let covers = |prefix: &&String| match under {
            Some(_) => covers(prefix, location),
            // Elsewhere only a prefix that names a place says whose the location is.
            None => !names_no_place(prefix) && covers(prefix, location),
        };
        let prefix = prefixes.filter(covers).max_by_key(|prefix| prefix.len())?.clone();
        Some(Match { root: under.unwrap_or(0), prefix })
    }

    fn granted(self: &Arc<Self>, prefix: String) -> Granted {
        let properties = self.properties(&prefix).unwrap_or_default();
        let signs = properties.contains_key(S3_ACCESS_KEY_ID);
        let provider = || -> AwsCredentialProvider {
            Arc::new(Provider { holder: self.clone(), prefix: prefix.clone() })
        };
        Granted { provider: signs.then(provider), properties, key: (self.id, prefix) }
    }

    fn properties(&self, prefix: &str) -> Option<HashMap<String, String>> {
        let current = lock(&self.current);
        let mut all = current.credentials.iter();
        all.find(|credential| credential.prefix == prefix).map(|credential| credential.properties.clone())
    }

    /// How long the credential of a prefix is good: `None` for ever.
    fn life(&self, prefix: &str) -> Option<Life> {
        let expires_at_ms = self.properties(prefix)?.get(EXPIRES_AT_MS)?.parse().ok()?;
        let since_ms = lock(&self.current).since_ms;
        Some(Life { since_ms, expires_at_ms })
    }

    /// Renews the credentials if the one of `prefix` is about to expire. One caller fetches, the others wait for it.
    async fn renew_in_time(&self, prefix: &str) -> Result<()> {
        let due = || self.life(prefix).is_some_and(|life| life.is_due(now_ms()));
        if !due() {
            return Ok(());
        }
        let _fetching = self.renewing.lock().await;
        if !due() {
            return Ok(());
        }
        match self.renew.renew().await {
            Ok(newer) => {
                let mut current = lock(&self.current);
                *current = Current { credentials: newer, since_ms: now_ms() };
                Ok(())
            }
            Err(error) if self.life(prefix).is_some_and(|life| !life.is_over(now_ms())) => {
                tracing::warn!(%error, "storage credentials were not renewed yet: the old ones still hold");
                Ok(())
            }
            Err(error) => {
                Err(error.context("the table's storage credentials have expired and were not renewed"))
            }
        }
    }
}

/// When a credential was granted and when it ends.
#[derive(Debug, Clone, Copy)]
struct Life {
    since_ms: i64,
    expires_at_ms: i64,
}

impl Life {
    fn is_due(self, now_ms: i64) -> bool {
        let margin = (self.expires_at_ms.saturating_sub(self.since_ms) / 10).clamp(0, MAX_MARGIN_MS);
        now_ms >= self.expires_at_ms.saturating_sub(margin)
    }

    fn is_over(self, now_ms: i64) -> bool {
        now_ms >= self.expires_at_ms
    }
}

/// Signs for one prefix of one table.
#[derive(Debug)]
struct Provider {
    holder: Arc<Holder>,
    prefix: String,
}

#[async_trait]
impl CredentialProvider for Provider {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let credential = async {
            self.holder.renew_in_time(&self.prefix).await?;
            let properties = self.holder.properties(&self.prefix).unwrap_or_default();
            let property = |name: &str| properties.get(name).cloned();
            match (property(S3_ACCESS_KEY_ID), property(S3_SECRET_ACCESS_KEY)) {
                (Some(key_id), Some(secret_key)) => {
                    Ok(Arc::new(AwsCredential { key_id, secret_key, token: property(S3_SESSION_TOKEN) }))
                }
                _ => Err(Error::new(
                    ErrorKind::Unavailable,
                    format!("the catalog gave no storage credentials for `{}` this time", self.prefix),
                )),
            }
        };
        credential.await.map_err(|error: Error| object_store::Error::Generic {
            store: "credentials of the catalog",
            source: Box::new(error),
        })
    }
}

fn fixed(properties: &HashMap<String, String>) -> HashMap<&String, &String> {
    properties.iter().filter(|(name, _)| !RENEWED.contains(&name.as_str())).collect()
}

/// Whether a location is a folder or lies in it; both are normalised.
fn is_under(location: &str, folder: &str) -> bool {
    location.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a prefix, as a catalog gives it, covers a normalised location.
fn covers(prefix: &str, location: &str) -> bool {
    if names_no_place(prefix) {
        let scheme = prefix.split(':').next().unwrap_or_default();
        let scheme = if matches!(scheme, "s3a" | "s3n") { "s3" } else { scheme };
        return scheme.is_empty() || location.split(':').next() == Some(scheme);
    }
    is_under(location, normalize(prefix).trim_end_matches('/'))
}

/// Whether a prefix is empty or only a scheme.
fn names_no_place(prefix: &str) -> bool {
    prefix.split_once(':').map_or(!prefix.contains('/'), |(_, rest)| rest.trim_matches('/').is_empty())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Counting {
        renewed: AtomicU64,
        fails: bool,
    }

    #[async_trait]
    impl Renew for Counting {
        async fn renew(&self) -> Result<Vec<StorageCredential>> {
            let count = self.renewed.fetch_add(1, Ordering::Relaxed) + 1;
            if self.fails {
                return Err(Error::new(ErrorKind::Unavailable, "the catalog is away"));
            }
            Ok(vec![credential("", &format!("renewed-{count}"), Some(now_ms() + 3_600_000))])
        }
    }

    fn credential(prefix: &str, key: &str, expires_at_ms: Option<i64>) -> StorageCredential {
        let mut properties = HashMap::from([
            (S3_ACCESS_KEY_ID.to_owned(), key.to_owned()),
            (S3_SECRET_ACCESS_KEY.to_owned(), "secret".to_owned()),
        ]);
        properties.extend(expires_at_ms.map(|at| (EXPIRES_AT_MS.to_owned(), at.to_string())));
        StorageCredential { prefix: prefix.to_owned(), properties }
    }

    fn grant(table: &str, root: &str, credentials: Vec<StorageCredential>, renew: &Arc<Counting>) -> Grant {
        Grant { table: table.to_owned(), roots: vec![root.to_owned()], credentials, renew: renew.clone() }
    }

    fn key_of(vended: &Vended, location: &str) -> Option<String> {
        vended.find(location).map(|granted| granted.properties[S3_ACCESS_KEY_ID].clone())
    }

    #[test]
    fn the_nearest_root_and_then_the_longest_prefix_decide() {
        let (vended, renew) = (Vended::default(), Arc::default());
        let wide = vec![credential("s3", "wide", None), credential("s3://b/w/t/data", "data", None)];
        vended.grant(grant("n.t", "s3a://b/w/t/", wide, &renew));
        vended.grant(grant("n.u", "s3://b/w/t/u", vec![credential("", "inner", None)], &renew));
        let elsewhere = vec![credential("s3://other/x", "other", None)];
        vended.grant(grant("n.v", "s3://b/v", elsewhere, &renew));
        for (location, expected) in [
            ("s3://b/w/t/metadata/m.avro", Some("wide")),
            ("s3://b/w/t/data/f.parquet", Some("data")),
            ("s3n://b/w/t//data/f.parquet", Some("data")),
            ("s3://b/w/t/u/data/f.parquet", Some("inner")),
            ("s3://b/w/t2/f.parquet", None),
            ("s3://b/w/t/database/f", Some("wide")),
            ("s3://other/x/f", Some("other")),
            ("s3://other/xy/f", None),
            ("s3://c/w/t/f", None),
        ] {
            assert_eq!(key_of(&vended, location).as_deref(), expected, "{location}");
        }
        vended.grant(grant("n.t", "s3://b/w/t", Vec::new(), &renew));
        assert_eq!(key_of(&vended, "s3://b/w/t/f"), None);
    }

    #[test]
    fn a_client_is_kept_as_long_as_only_keys_change() {
        let (vended, renew) = (Vended::default(), Arc::default());
        let key = |credential: StorageCredential| {
            vended.grant(grant("n.t", "s3://b/t", vec![credential], &renew));
            vended.find("s3://b/t/f").unwrap().key
        };
        let first = key(credential("", "a", None));
        assert_eq!(key(credential("", "b", Some(1))), first);
        assert_eq!(key_of(&vended, "s3://b/t/f").as_deref(), Some("b"));
        let mut moved = credential("", "b", None);
        moved.properties.insert("s3.endpoint".to_owned(), "http://h".to_owned());
        assert_ne!(key(moved), first);
    }

    async fn signed_with(vended: &Vended) -> object_store::Result<String> {
        let provider = vended.find("s3://b/t/f").unwrap().provider.unwrap();
        Ok(provider.get_credential().await?.key_id.clone())
    }

    #[tokio::test]
    async fn a_credential_is_renewed_before_it_expires_and_once() {
        let (vended, renew) = (Vended::default(), Arc::<Counting>::default());
        vended.grant(grant(
            "n.t",
            "s3://b/t",
            vec![credential("", "old", Some(now_ms() + 3_600_000))],
            &renew,
        ));
        assert_eq!(signed_with(&vended).await.unwrap(), "old");
        vended.grant(grant("n.t", "s3://b/t", vec![credential("", "old", Some(now_ms()))], &renew));
        let signed = futures::future::join_all((0..20).map(|_| signed_with(&vended))).await;
        assert!(signed.iter().all(|key| key.as_ref().unwrap() == "renewed-1"), "{signed:?}");
        assert_eq!(renew.renewed.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_renewal_that_fails_matters_only_after_the_expiry() {
        let (vended, renew) = (Vended::default(), Arc::new(Counting { fails: true, ..Counting::default() }));
        let life = Life { since_ms: 0, expires_at_ms: 1000 };
        assert!(!life.is_due(899) && life.is_due(900) && !life.is_over(999) && life.is_over(1000));
        vended.grant(grant("n.t", "s3://b/t", vec![credential("", "old", Some(now_ms() - 1))], &renew));
        let error = signed_with(&vended).await.unwrap_err().to_string();
        assert!(error.contains("have expired") && !error.contains("secret\""), "{error}");
    }
}
