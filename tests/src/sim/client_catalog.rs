//! The catalog as a process sees it: through the network, with the outcomes that a REST client makes of answers.

use std::collections::HashMap;

use async_trait::async_trait;
use firn_table::catalog::{CommitCatalog, CommitOutcome};
use firn_table::storage::Stores;
use firn_table::{Error, ErrorKind};
use iceberg::spec::TableMetadata;
use iceberg::table::Table;
use iceberg::{
    Catalog, Namespace, NamespaceIdent, TableCommit, TableCreation, TableIdent, TableRequirement, TableUpdate,
};

use super::network::{Failure, Kind, Link, Request};
use super::records::Commit;
use super::server::{Head, Refusal, no_properties, table_of};
use super::world::{EPOCH_MS, World};

/// The catalog of one process.
#[derive(Debug)]
pub struct ClientCatalog {
    link: Link,
    /// Through the same network.
    stores: Stores,
}

impl ClientCatalog {
    /// The catalog behind this link; tables read their files through these stores.
    #[must_use]
    pub fn new(link: Link, stores: Stores) -> Self {
        Self { link, stores }
    }

    fn table(&self, ident: &TableIdent, head: &Head) -> Table {
        table_of(ident, head, &self.stores)
    }

    async fn load(&self, ident: &TableIdent) -> Result<Option<Table>, Failure> {
        let request = Request { kind: Kind::Load, target: ident.to_string() };
        let asked = ident.clone();
        let ask = || {
            let asked = asked.clone();
            self.link.call(request.clone(), move |world, _| world.server().head(&asked))
        };
        let head = match ask().await {
            // With another token.
            Err(Failure::Unauthorized) => ask().await?,
            answer => answer?,
        };
        Ok(head.map(|head| self.table(ident, &head)))
    }

    /// What a 409 or 400 means: only the head can tell.
    async fn look_again(&self, base: &Table, updates: &[TableUpdate]) -> CommitOutcome {
        let table = match self.load(base.identifier()).await {
            Ok(Some(table)) => table,
            Ok(None) => return CommitOutcome::Rejected(missing(base.identifier())),
            Err(failure) => return CommitOutcome::Unknown(unavailable(failure)),
        };
        let (now, before) = (table.metadata(), base.metadata());
        if has_all(now, updates) {
            return CommitOutcome::Committed(Box::new(table));
        }
        if table.metadata_location() != base.metadata_location() || now.uuid() != before.uuid() {
            return CommitOutcome::Conflict;
        }
        let text = "the catalog refused a commit whose base is still the head";
        CommitOutcome::Unknown(Error::new(ErrorKind::Unavailable, text))
    }
}

/// Whether a table has the snapshots that the updates add; updates that add none cannot be recognised.
fn has_all(metadata: &TableMetadata, updates: &[TableUpdate]) -> bool {
    let mut added = updates.iter().filter_map(|update| match update {
        TableUpdate::AddSnapshot { snapshot } => Some(snapshot.snapshot_id()),
        _ => None,
    });
    let first = added.next();
    first.is_some() && first.into_iter().chain(added).all(|id| metadata.snapshot_by_id(id).is_some())
}

fn missing(ident: &TableIdent) -> Error {
    Error::new(ErrorKind::NotFound, format!("table `{ident}` is not in the catalog any more"))
}

fn unavailable(failure: Failure) -> Error {
    Error::new(ErrorKind::Unavailable, failure.to_string())
}

/// What the server does with a commit.
fn serve(
    world: &World,
    who: &super::records::Who,
    ident: &TableIdent,
    (requirements, updates): (&[TableRequirement], Vec<TableUpdate>),
) -> Result<Head, Refusal> {
    let now_ms = EPOCH_MS + i64::try_from(world.now().as_millis()).unwrap_or(i64::MAX);
    match world.server().commit(ident, requirements, &updates, now_ms) {
        Ok(applied) => {
            let table = |head: &Head| table_of(ident, head, world.stores());
            world.committed(Commit {
                at: world.now(),
                by: who.clone(),
                before: Some(table(&applied.before)),
                after: Some(table(&applied.after)),
                updates,
            });
            Ok(applied.after)
        }
        Err(refusal) => {
            world.note(who, format!("commit refused: {}", super::words::of_refusal(&refusal)));
            Err(refusal)
        }
    }
}

#[async_trait]
impl CommitCatalog for ClientCatalog {
    async fn commit(
        &self,
        base: &Table,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> CommitOutcome {
        let ident = base.identifier().clone();
        let target = format!("{ident} ({})", super::words::of_updates(&updates));
        let request = Request { kind: Kind::Commit, target };
        let (who, sent) = (self.link.who.clone(), updates.clone());
        let answer = self
            .link
            .call(request, move |world, fate| {
                let kept = |update: &TableUpdate| {
                    !(fate.drops_properties && matches!(update, TableUpdate::SetProperties { .. }))
                };
                let sent = sent.into_iter().filter(kept).collect();
                serve(world, &who, &ident, (&requirements, sent))
            })
            .await;
        match answer {
            Ok(Ok(head)) => CommitOutcome::Committed(Box::new(self.table(base.identifier(), &head))),
            Ok(Err(Refusal::Missing)) => CommitOutcome::Rejected(missing(base.identifier())),
            Ok(Err(Refusal::Requirement(_) | Refusal::Update(_))) | Err(Failure::Conflict) => {
                self.look_again(base, &updates).await
            }
            Err(Failure::Throttled(wait)) => CommitOutcome::NotApplied {
                retry_after: Some(wait),
                cause: unavailable(Failure::Throttled(wait)),
            },
            Err(Failure::Unauthorized) => {
                CommitOutcome::NotApplied { retry_after: None, cause: unavailable(Failure::Unauthorized) }
            }
            Err(failure) => CommitOutcome::Unknown(unavailable(failure)),
        }
    }

    fn client_deletes_metadata(&self) -> bool {
        false
    }
}

fn not_here<T>() -> iceberg::Result<T> {
    Err(iceberg::Error::new(iceberg::ErrorKind::FeatureUnsupported, "this catalog is for one table"))
}

#[async_trait]
impl Catalog for ClientCatalog {
    async fn load_table(&self, ident: &TableIdent) -> iceberg::Result<Table> {
        match self.load(ident).await {
            Ok(Some(table)) => Ok(table),
            Ok(None) => {
                Err(iceberg::Error::new(iceberg::ErrorKind::TableNotFound, format!("no table `{ident}`")))
            }
            Err(failure) => Err(unavailable(failure).into()),
        }
    }

    async fn table_exists(&self, ident: &TableIdent) -> iceberg::Result<bool> {
        match self.load(ident).await {
            Ok(table) => Ok(table.is_some()),
            Err(failure) => Err(unavailable(failure).into()),
        }
    }

    async fn list_namespaces(&self, _: Option<&NamespaceIdent>) -> iceberg::Result<Vec<NamespaceIdent>> {
        not_here()
    }

    async fn create_namespace(
        &self,
        name: &NamespaceIdent,
        _: HashMap<String, String>,
    ) -> iceberg::Result<Namespace> {
        Ok(Namespace::with_properties(name.clone(), no_properties()))
    }

    async fn get_namespace(&self, name: &NamespaceIdent) -> iceberg::Result<Namespace> {
        Ok(Namespace::with_properties(name.clone(), no_properties()))
    }

    async fn namespace_exists(&self, _: &NamespaceIdent) -> iceberg::Result<bool> {
        Ok(true)
    }

    async fn update_namespace(&self, _: &NamespaceIdent, _: HashMap<String, String>) -> iceberg::Result<()> {
        not_here()
    }

    async fn drop_namespace(&self, _: &NamespaceIdent) -> iceberg::Result<()> {
        not_here()
    }

    async fn list_tables(&self, _: &NamespaceIdent) -> iceberg::Result<Vec<TableIdent>> {
        not_here()
    }

    async fn create_table(&self, _: &NamespaceIdent, _: TableCreation) -> iceberg::Result<Table> {
        not_here()
    }

    async fn drop_table(&self, _: &TableIdent) -> iceberg::Result<()> {
        not_here()
    }

    async fn purge_table(&self, _: &TableIdent) -> iceberg::Result<()> {
        not_here()
    }

    async fn rename_table(&self, _: &TableIdent, _: &TableIdent) -> iceberg::Result<()> {
        not_here()
    }

    async fn register_table(&self, _: &TableIdent, _: String) -> iceberg::Result<Table> {
        not_here()
    }

    async fn update_table(&self, _: TableCommit) -> iceberg::Result<Table> {
        not_here()
    }
}
