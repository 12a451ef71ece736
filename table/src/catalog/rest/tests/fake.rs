//! A catalog with one table behind the server, which fails as it is told.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iceberg::spec::{
    FormatVersion, NestedField, PrimitiveType, Schema, SortOrder, TableMetadata, TableMetadataBuilder, Type,
    UnboundPartitionSpec,
};
use iceberg::{TableIdent, TableRequirement, TableUpdate};
use object_store::memory::InMemory;
use serde::Deserialize;
use serde_json::{Value, json};

use super::server::{Received, Reply, Server};
use crate::catalog::update::apply;
use crate::catalog::{CatalogOptions, OpenCatalog, open_catalog};

pub(super) const LOCATION: &str = "memory://rest/n/t";
pub(super) const TABLE: &str = "/v1/namespaces/n/tables/t";

/// What is done with a commit instead of applying it and answering.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// It is not applied, and this is answered.
    Refused(Reply),
    /// It is applied, and this is answered.
    Applied(Reply),
    /// This is answered, and it is applied, if it still can be, when the next commit comes.
    Late(Reply),
}

#[derive(Debug)]
struct State {
    metadata: Option<TableMetadata>,
    version: u64,
    faults: VecDeque<Fault>,
    late: Vec<Commit>,
    config: Value,
}

#[derive(Debug, Clone, Deserialize)]
struct Commit {
    requirements: Vec<TableRequirement>,
    updates: Vec<TableUpdate>,
}

/// The catalog; clones share it.
#[derive(Debug, Clone)]
pub(super) struct Fake {
    state: Arc<Mutex<State>>,
    /// The store that all who open the catalog share.
    store: Arc<InMemory>,
}

impl Fake {
    pub(super) fn new() -> Self {
        let state = State {
            metadata: Some(metadata(LOCATION)),
            version: 0,
            faults: VecDeque::new(),
            late: Vec::new(),
            config: json!({"defaults": {}, "overrides": {}}),
        };
        Self { state: Arc::new(Mutex::new(state)), store: Arc::default() }
    }

    pub(super) async fn serve(&self) -> Server {
        let fake = self.clone();
        Server::start(move |request| fake.answer(request)).await
    }

    /// Opens the catalog behind `server` as a process does, on the shared store.
    pub(super) async fn open(&self, server: &Server, properties: &[(&str, &str)]) -> OpenCatalog {
        let store = self.store.clone();
        open_catalog(&options(server, properties), Some(Arc::new(move |_| store.clone()))).await.unwrap()
    }

    pub(super) fn set_config(&self, config: Value) {
        self.state().config = config;
    }

    pub(super) fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state().faults.extend(faults);
    }

    pub(super) fn faults_left(&self) -> usize {
        self.state().faults.len()
    }

    pub(super) fn metadata(&self) -> TableMetadata {
        self.state().metadata.clone().unwrap()
    }

    /// Another client changes the table, or (`None`) drops it.
    pub(super) fn change(&self, change: impl FnOnce(TableMetadata) -> Option<TableMetadata>) {
        let mut state = self.state();
        let now = state.metadata.take().unwrap();
        state.metadata = change(now);
        state.version += 1;
    }

    pub(super) fn answer(&self, request: &Received) -> Reply {
        let mut state = self.state();
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/v1/config") => Reply::json(200, &state.config),
            ("GET", TABLE) => state.load(),
            ("POST", TABLE) => state.commit(serde_json::from_slice(&request.body).unwrap()),
            _ => Reply::refusal(404, "NoSuchTableException"),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn location(&self) -> String {
        format!("{LOCATION}/metadata/{:05}-x.metadata.json", self.version)
    }

    fn load(&self) -> Reply {
        let Some(metadata) = &self.metadata else { return Reply::refusal(404, "NoSuchTableException") };
        Reply::json(200, &json!({"metadata-location": self.location(), "metadata": metadata}))
    }

    fn commit(&mut self, commit: Commit) -> Reply {
        for late in std::mem::take(&mut self.late) {
            self.apply(late);
        }
        match self.faults.pop_front() {
            None => self.apply(commit),
            Some(Fault::Refused(reply)) => reply,
            Some(Fault::Applied(reply)) => {
                self.apply(commit);
                reply
            }
            Some(Fault::Late(reply)) => {
                self.late.push(commit);
                reply
            }
        }
    }

    fn apply(&mut self, commit: Commit) -> Reply {
        let Some(head) = &self.metadata else { return Reply::refusal(404, "NoSuchTableException") };
        match apply(head, &self.location(), &commit.requirements, &commit.updates) {
            Ok(applied) => {
                self.metadata = Some(applied.metadata);
                self.version += 1;
                self.load()
            }
            Err(crate::catalog::update::Refusal::Requirement) => Reply::refusal(409, "CommitFailedException"),
            Err(crate::catalog::update::Refusal::Update(_)) => Reply::refusal(400, "ValidationException"),
        }
    }
}

pub(super) fn ident() -> TableIdent {
    TableIdent::from_strs(["n", "t"]).unwrap()
}

/// A table of one column.
pub(super) fn metadata(location: &str) -> TableMetadata {
    let column = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into();
    let builder = TableMetadataBuilder::new(
        Schema::builder().with_fields([column]).build().unwrap(),
        UnboundPartitionSpec::builder().build(),
        SortOrder::unsorted_order(),
        location.to_owned(),
        FormatVersion::V2,
        HashMap::new(),
    );
    builder.unwrap().build().unwrap().metadata
}

/// Opens the catalog behind a server, with a store of its own.
pub(super) async fn open(server: &Server, properties: &[(&str, &str)]) -> crate::Result<OpenCatalog> {
    open_catalog(&options(server, properties), None).await
}

fn options(server: &Server, properties: &[(&str, &str)]) -> CatalogOptions {
    CatalogOptions { uri: server.uri(), properties: owned(properties), ..CatalogOptions::default() }
}

pub(super) fn owned(properties: &[(&str, &str)]) -> HashMap<String, String> {
    properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
