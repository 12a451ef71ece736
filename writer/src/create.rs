//! Making the table that a writer fills.

use std::collections::HashMap;

use firn_table::catalog::{OpenCatalog, default_properties, requested_format_version};
use iceberg::spec::{FormatVersion, Schema, UnboundPartitionSpec};
use iceberg::table::Table;
use iceberg::{NamespaceIdent, TableCreation, TableIdent};

use crate::{Error, Result};

/// A table to be created.
#[derive(Debug, Clone)]
pub struct NewTable {
    /// Its schema; the catalog may renumber the field ids.
    pub schema: Schema,
    /// Its partition spec; `None` where it is not partitioned.
    pub partition: Option<UnboundPartitionSpec>,
    /// Its location; `None` leaves it to the catalog.
    pub location: Option<String>,
    /// Properties over [`default_properties`]; `format-version` (2 or 3) is the version that the table is made in.
    pub properties: HashMap<String, String>,
}

/// Creates the table, and its namespace where there is none. `AlreadyExists` where there is a table of that name:
/// another process may have been faster, and what it made can be opened.
pub async fn create_table(catalog: &OpenCatalog, ident: &TableIdent, new: NewTable) -> Result<Table> {
    let failed =
        |e: iceberg::Error| Error::from(e).context(format_args!("table `{ident}` cannot be created"));
    ensure_namespace(catalog, ident.namespace()).await.map_err(failed)?;
    let mut properties: HashMap<String, String> = default_properties().into_iter().collect();
    properties.extend(new.properties);
    let format_version = requested_format_version(&mut properties)?.unwrap_or(FormatVersion::V2);
    let creation = TableCreation::builder()
        .name(ident.name().to_owned())
        .location_opt(new.location)
        .schema(new.schema)
        .partition_spec_opt(new.partition)
        .properties(properties)
        .format_version(format_version)
        .build();
    catalog.catalog.create_table(ident.namespace(), creation).await.map_err(failed)
}

async fn ensure_namespace(catalog: &OpenCatalog, namespace: &NamespaceIdent) -> iceberg::Result<()> {
    for depth in 1..=namespace.len() {
        let level = NamespaceIdent::from_strs(&namespace[..depth])?;
        if catalog.catalog.namespace_exists(&level).await? {
            continue;
        }
        match catalog.catalog.create_namespace(&level, HashMap::new()).await {
            Err(e) if e.kind() != iceberg::ErrorKind::NamespaceAlreadyExists => return Err(e),
            _ => {}
        }
    }
    Ok(())
}
