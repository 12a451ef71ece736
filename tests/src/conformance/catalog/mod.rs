//! The kit for catalogs.

mod commits;
mod namespaces;
mod tables;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use firn_table::catalog::{
    CatalogOptions, CommitOutcome, IfMissing, NewTable, OpenCatalog, create_table, open_catalog,
};
use futures::future::BoxFuture;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
use iceberg::table::Table;
use iceberg::{NamespaceIdent, TableIdent, TableRequirement, TableUpdate};

use super::{all_hold, unique};

/// Opens a catalog as another process would: with connections and caches of its own.
pub type Opening = Arc<dyn Fn() -> BoxFuture<'static, Result<OpenCatalog>> + Send + Sync>;

/// A kind of catalog, for the kit.
#[derive(Clone)]
pub struct CatalogKind {
    /// For messages.
    pub name: String,
    opening: Opening,
}

impl fmt::Debug for CatalogKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogKind").field("name", &self.name).finish_non_exhaustive()
    }
}

impl CatalogKind {
    /// A catalog that is opened by these options, and made where there is none.
    #[must_use]
    pub fn of(name: &str, options: &CatalogOptions) -> Self {
        let options = CatalogOptions { if_missing: IfMissing::Create, ..options.clone() };
        let opening: Opening = Arc::new(move || {
            let options = options.clone();
            Box::pin(async move { Ok(open_catalog(&options, None).await?) })
        });
        Self::new(name, opening)
    }

    /// A catalog that is opened in some other way.
    #[must_use]
    pub fn new(name: &str, opening: Opening) -> Self {
        Self { name: name.to_owned(), opening }
    }

    async fn open(&self) -> Result<OpenCatalog> {
        (self.opening)().await
    }

    /// The catalog with a namespace of its own, which exists.
    async fn bench(&self) -> Result<Bench> {
        let opened = self.open().await?;
        let namespace = NamespaceIdent::new(unique("kit"));
        opened.catalog.create_namespace(&namespace, HashMap::new()).await?;
        Ok(Bench { opened, namespace })
    }
}

/// Runs the kit.
pub async fn conforms(kind: &CatalogKind) -> Result<()> {
    let mut outcomes = commits::all(kind).await;
    outcomes.extend(namespaces::all(kind).await);
    outcomes.extend(tables::all(kind).await);
    all_hold(&kind.name, outcomes)
}

/// A catalog, and a namespace in it that is the behaviour's own.
struct Bench {
    opened: OpenCatalog,
    namespace: NamespaceIdent,
}

impl Bench {
    fn ident(&self, name: &str) -> TableIdent {
        TableIdent::new(self.namespace.clone(), name.to_owned())
    }

    fn new_table(ident: TableIdent) -> NewTable {
        NewTable::new(ident, schema())
    }

    async fn table(&self, name: &str) -> Result<Table> {
        self.table_with(name, &[]).await
    }

    async fn table_with(&self, name: &str, properties: &[(&str, &str)]) -> Result<Table> {
        let mut new = Self::new_table(self.ident(name));
        new.properties =
            properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        create_table(self.opened.catalog.as_ref(), new).await.with_context(|| format!("creating `{name}`"))
    }

    async fn load(&self, name: &str) -> Result<Table> {
        Ok(self.opened.catalog.load_table(&self.ident(name)).await?)
    }

    /// Commits to this base until the outcome is a definite one.
    async fn commit(
        &self,
        base: &Table,
        requirements: &[TableRequirement],
        updates: &[TableUpdate],
    ) -> Result<CommitOutcome> {
        definite(&self.opened, base, requirements, updates).await
    }
}

async fn definite(
    opened: &OpenCatalog,
    base: &Table,
    requirements: &[TableRequirement],
    updates: &[TableUpdate],
) -> Result<CommitOutcome> {
    for _ in 0..100 {
        match opened.catalog.commit(base, requirements.to_vec(), updates.to_vec()).await {
            CommitOutcome::NotApplied { .. } => {}
            outcome => return Ok(outcome),
        }
    }
    bail!("a hundred tries were not applied")
}

fn committed(outcome: CommitOutcome) -> Result<Table> {
    match outcome {
        CommitOutcome::Committed(table) => Ok(*table),
        other => bail!("not committed: {other:?}"),
    }
}

/// The columns of the kit's tables, with ids that the catalog replaces.
fn schema() -> Schema {
    let id = NestedField::required(10, "id", Type::Primitive(PrimitiveType::Long)).into();
    let day = NestedField::optional(20, "day", Type::Primitive(PrimitiveType::Date)).into();
    Schema::builder().with_fields([id, day]).build().expect("two columns are a schema")
}

fn set(key: &str, value: &str) -> Vec<TableUpdate> {
    vec![TableUpdate::SetProperties { updates: HashMap::from([(key.to_owned(), value.to_owned())]) }]
}

fn same_uuid(table: &Table) -> Vec<TableRequirement> {
    vec![TableRequirement::UuidMatch { uuid: table.metadata().uuid() }]
}

/// The kind by which a caller of ours reacts.
fn kind_of<T>(result: iceberg::Result<T>) -> Option<firn_table::ErrorKind> {
    result.err().map(|error| firn_table::Error::from(error).kind())
}
