//! Bodies of requests and answers, as Iceberg's open API defines them.

use std::collections::HashMap;

use bytes::Bytes;
use iceberg::spec::{Schema, SortOrder, TableMetadata, UnboundPartitionSpec};
use iceberg::{NamespaceIdent, TableIdent, TableRequirement, TableUpdate};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::metadata_file::explain;
use crate::{Error, ErrorKind, Result};

/// Bodies larger than this are parsed off the runtime's threads.
const SMALL_BYTES: usize = 64 << 10;

#[derive(Debug, Deserialize)]
pub(super) struct NamespacePage {
    pub(super) namespaces: Vec<NamespaceIdent>,
    #[serde(default, rename = "next-page-token")]
    pub(super) next_page_token: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TablePage {
    pub(super) identifiers: Vec<TableIdent>,
    #[serde(default, rename = "next-page-token")]
    pub(super) next_page_token: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NamespaceBody {
    pub(super) namespace: NamespaceIdent,
    /// Null where the server keeps none.
    #[serde(default)]
    pub(super) properties: Option<HashMap<String, String>>,
}

#[derive(Debug, Serialize)]
pub(super) struct PropertiesChange<'a> {
    pub(super) removals: Vec<&'a String>,
    pub(super) updates: HashMap<&'a String, &'a String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct CreateTable<'a> {
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) location: Option<&'a str>,
    pub(super) schema: &'a Schema,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) partition_spec: Option<&'a UnboundPartitionSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) write_order: Option<&'a SortOrder>,
    pub(super) stage_create: bool,
    pub(super) properties: HashMap<String, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct RegisterTable<'a> {
    pub(super) name: &'a str,
    pub(super) metadata_location: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct RenameTable<'a> {
    pub(super) source: &'a TableIdent,
    pub(super) destination: &'a TableIdent,
}

#[derive(Debug, Serialize)]
pub(super) struct CommitTable<'a> {
    pub(super) identifier: &'a TableIdent,
    pub(super) requirements: &'a [TableRequirement],
    pub(super) updates: &'a [TableUpdate],
}

/// The answer to a load, a creation, a registration and a commit.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct LoadedTable {
    #[serde(default)]
    pub(super) metadata_location: Option<String>,
    pub(super) metadata: TableMetadata,
    /// Properties of the table's files, as older servers send them; may hold secrets.
    #[serde(default)]
    pub(super) config: Option<HashMap<String, String>>,
    #[serde(default)]
    pub(super) storage_credentials: Option<Vec<PrefixCredential>>,
}

/// The answer of the endpoint for credentials alone.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct LoadedCredentials {
    pub(super) storage_credentials: Vec<PrefixCredential>,
}

#[derive(Deserialize)]
pub(super) struct PrefixCredential {
    pub(super) prefix: String,
    pub(super) config: HashMap<String, String>,
}

/// Serialises a body.
pub(super) fn body(message: &impl Serialize) -> Result<Bytes> {
    serde_json::to_vec(message).map(Bytes::from).map_err(|error| {
        Error::new(ErrorKind::Internal, "a request to the catalog cannot be serialised").with_source(error)
    })
}

/// Reads the body of a success. One that is not what it should be comes from something before the catalog, or was cut.
pub(super) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(unreadable)
}

/// Reads the body that holds a table, off the runtime's threads where it is long.
///
/// # Errors
/// `Unavailable` where it is no answer of a catalog; `Unsupported` and `Data` as for a metadata file.
pub(super) async fn read_table(body: Bytes) -> Result<LoadedTable> {
    if body.len() <= SMALL_BYTES {
        return parse_table(&body);
    }
    let parsed = tokio::task::spawn_blocking(move || parse_table(&body)).await;
    parsed.map_err(|error| Error::new(ErrorKind::Internal, "reading a table failed").with_source(error))?
}

fn parse_table(body: &[u8]) -> Result<LoadedTable> {
    serde_json::from_slice(body).map_err(|error| {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        match answer.get("metadata").map(serde_json::to_vec) {
            Some(Ok(metadata)) => explain(&metadata, error).context("the catalog's answer"),
            _ => unreadable(error),
        }
    })
}

/// Without the words of the parser: they may repeat a part of the body, and so a credential.
fn unreadable(error: serde_json::Error) -> Error {
    let message = format!(
        "the catalog's answer cannot be read (line {}, column {}): it was cut, or comes from a proxy",
        error.line(),
        error.column()
    );
    Error::new(ErrorKind::Unavailable, message)
}
