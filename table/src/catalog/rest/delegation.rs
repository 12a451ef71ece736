//! Storage credentials that come with a table, handed to the stores, and where newer ones are had.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use iceberg::TableIdent;
use iceberg::spec::TableMetadata;

use super::failure::general;
use super::messages::{LoadedCredentials, LoadedTable, PrefixCredential, read, read_table};
use super::session::RestSession;
use super::settings::for_stores;
use crate::Result;
use crate::storage::{Grant, Renew, StorageCredential};

const CREDENTIALS: &str = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials";
/// Properties that put files of a table elsewhere than under its location.
const PATHS: [&str; 5] = [
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
    "write.location-provider.object-store.path",
];

/// What a load brought for the table's files; its credentials may be none.
pub(super) fn grant(session: &Arc<RestSession>, table: &TableIdent, loaded: &LoadedTable) -> Grant {
    let config = loaded.config.as_ref().map(for_stores).unwrap_or_default();
    let credentials = combine(&config, loaded.storage_credentials.as_deref().unwrap_or_default());
    Grant {
        table: table.to_string(),
        roots: roots(&loaded.metadata, loaded.metadata_location.as_deref()),
        credentials,
        renew: Arc::new(CredentialsOfTable {
            session: session.clone(),
            table: table.clone(),
            config: Hidden(config),
        }),
    }
}

/// The credentials by prefix, each with the table's other properties under it. Those properties alone are for what no
/// prefix covers, or, from an older server, for everything.
fn combine(config: &HashMap<String, String>, prefixes: &[PrefixCredential]) -> Vec<StorageCredential> {
    let mut credentials: Vec<StorageCredential> = prefixes
        .iter()
        .map(|credential| {
            let mut properties = config.clone();
            properties.extend(for_stores(&credential.config));
            StorageCredential { prefix: credential.prefix.clone(), properties }
        })
        .collect();
    if !config.is_empty() && credentials.iter().all(|credential| !credential.prefix.is_empty()) {
        credentials.push(StorageCredential { prefix: String::new(), properties: config.clone() });
    }
    credentials
}

fn roots(metadata: &TableMetadata, metadata_location: Option<&str>) -> Vec<String> {
    let elsewhere = PATHS.iter().filter_map(|name| metadata.properties().get(*name).map(String::as_str));
    let folder = metadata_location.and_then(|location| Some(location.rsplit_once('/')?.0));
    let all = std::iter::once(metadata.location()).chain(elsewhere).chain(folder);
    all.filter(|root| !root.is_empty()).map(str::to_owned).collect()
}

/// Fetches the credentials of a table anew.
#[derive(Debug)]
struct CredentialsOfTable {
    session: Arc<RestSession>,
    table: TableIdent,
    /// What the load gave beside the credentials.
    config: Hidden,
}

/// Properties whose values are not shown.
struct Hidden(HashMap<String, String>);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[async_trait]
impl Renew for CredentialsOfTable {
    /// From the endpoint for it where the server has one, else by loading the table.
    async fn renew(&self) -> Result<Vec<StorageCredential>> {
        let paths = self.session.paths();
        let what = format!("renewing the storage credentials of `{}`", self.table);
        let has_endpoint = self.session.config().advertises(CREDENTIALS);
        let url = if has_endpoint { paths.credentials(&self.table)? } else { paths.table(&self.table)? };
        let answer = self.session.get(url).await?.map_err(|refusal| general(&refusal, &what))?;
        if has_endpoint {
            let loaded: LoadedCredentials = read(&answer.body).map_err(|error| error.context(&what))?;
            return Ok(combine(&self.config.0, &loaded.storage_credentials));
        }
        let loaded = read_table(answer.body).await.map_err(|error| error.context(&what))?;
        let config = loaded.config.as_ref().map(for_stores).unwrap_or_default();
        Ok(combine(&config, loaded.storage_credentials.as_deref().unwrap_or_default()))
    }
}
