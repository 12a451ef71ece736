//! Opening a catalog by its URI, and names of tables.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use iceberg::{NamespaceIdent, TableIdent};

use super::rest::{RestCatalog, RestSession};
use super::sql::{Address, PostgresAddress, SqlCatalog, SqlOptions, postgres, sqlite};
use super::{CatalogOptions, OpenCatalog};
use crate::storage::{Location, StoreWrapper, Stores};
use crate::{Error, ErrorKind, Result};

const DEFAULT_NAME: &str = "firn";

/// Opens a catalog by its URI. `wrapper` is put around every store.
///
/// # Errors
/// `Configuration` for a URI that no catalog answers to, or a database that holds none; `NotFound` where there is no
/// database and [`CatalogOptions::if_missing`] refuses; `Unavailable` where it does not answer.
pub async fn open_catalog(options: &CatalogOptions, wrapper: Option<StoreWrapper>) -> Result<OpenCatalog> {
    let Some((scheme, rest)) = options.uri.split_once(':') else {
        let message = format!(
            "catalog `{}` is neither a known name nor a URI: write `sqlite:PATH`, `postgres://…` or `https://…`",
            options.uri
        );
        return Err(Error::new(ErrorKind::Configuration, message));
    };
    match scheme.to_ascii_lowercase().as_str() {
        "sqlite" => open_sql(Address::Sqlite(sqlite::path_of_uri(rest)?), options, wrapper).await,
        scheme if postgres::is_scheme(scheme) => {
            let address = Address::Postgres(Box::new(PostgresAddress::parse(&options.uri)?));
            open_sql(address, options, wrapper).await
        }
        "http" | "https" => {
            let session = RestSession::open(&rest_properties(options)).await?;
            let stores = stores(session.store_properties().clone(), wrapper);
            let catalog = RestCatalog::new(session, stores.clone());
            Ok(OpenCatalog { catalog: Arc::new(catalog), stores })
        }
        // The rest of the URI may hold a password: it is not repeated.
        other => {
            let message = format!(
                "catalogs of kind `{other}` are not known to this build: use `sqlite:PATH`, `postgres://…` or `https://…`"
            );
            Err(Error::new(ErrorKind::Configuration, message))
        }
    }
}

fn stores(properties: HashMap<String, String>, wrapper: Option<StoreWrapper>) -> Stores {
    let stores = Stores::new(properties);
    match wrapper {
        Some(wrapper) => stores.with_wrapper(wrapper),
        None => stores,
    }
}

/// The properties with address and warehouse among them, as Iceberg's own clients have it.
fn rest_properties(options: &CatalogOptions) -> HashMap<String, String> {
    let mut properties = options.properties.clone();
    properties.insert("uri".to_owned(), options.uri.clone());
    properties.extend(options.warehouse.clone().map(|warehouse| ("warehouse".to_owned(), warehouse)));
    properties
}

async fn open_sql(
    address: Address,
    options: &CatalogOptions,
    wrapper: Option<StoreWrapper>,
) -> Result<OpenCatalog> {
    let sql = SqlOptions {
        address,
        name: options.name.clone().unwrap_or_else(|| DEFAULT_NAME.to_owned()),
        warehouse: options.warehouse.as_deref().map(warehouse_location).transpose()?,
        if_missing: options.if_missing,
    };
    let stores = stores(options.properties.clone(), wrapper);
    let catalog = SqlCatalog::open(sql, stores.clone()).await?;
    Ok(OpenCatalog { catalog: Arc::new(catalog), stores })
}

/// A warehouse as an absolute location; a local path becomes `file:///…`.
fn warehouse_location(warehouse: &str) -> Result<String> {
    match Location::parse(warehouse) {
        Ok(_) if !warehouse.starts_with('/') => return Ok(warehouse.trim_end_matches('/').to_owned()),
        Err(error) if warehouse.is_empty() || warehouse.contains("://") => {
            return Err(error.context("warehouse"));
        }
        Ok(_) | Err(_) => {}
    }
    let path = std::path::absolute(Path::new(warehouse)).map_err(|error| {
        let message = format!("warehouse `{warehouse}` has no absolute path");
        Error::new(ErrorKind::Configuration, message).with_source(error)
    })?;
    let Some(path) = path.to_str() else {
        let message = format!("warehouse `{warehouse}` is not UTF-8: locations in Iceberg are text");
        return Err(Error::new(ErrorKind::Configuration, message));
    };
    Ok(format!("file://{}", path.trim_end_matches('/')))
}

/// Parses `namespace.name` (the namespace may have several levels).
///
/// # Errors
/// `Configuration` where a part is empty or there is no namespace.
pub fn parse_table_ident(text: &str) -> Result<TableIdent> {
    let parts: Vec<&str> = text.split('.').collect();
    match parts.split_last() {
        Some((name, namespace)) if !namespace.is_empty() && parts.iter().all(|part| !part.is_empty()) => {
            let namespace = NamespaceIdent::from_strs(namespace)?;
            Ok(TableIdent::new(namespace, (*name).to_owned()))
        }
        _ => {
            let message = format!("table `{text}` is no name of a table: write `namespace.name`");
            Err(Error::new(ErrorKind::Configuration, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_warehouse_becomes_absolute() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        assert_eq!(warehouse_location("wh/x").unwrap(), format!("file://{here}/wh/x"));
        assert_eq!(warehouse_location("/wh 1/").unwrap(), "file:///wh 1");
        assert_eq!(warehouse_location("s3://bucket/wh/").unwrap(), "s3://bucket/wh");
        assert_eq!(warehouse_location("file:/wh").unwrap(), "file:/wh");
        assert_eq!(warehouse_location("hdfs://host/wh").unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(warehouse_location("").unwrap_err().kind(), ErrorKind::Configuration);
    }

    #[test]
    fn table_names_need_a_namespace() {
        let table = parse_table_ident("a.b.c").unwrap();
        assert_eq!((table.namespace().to_string().as_str(), table.name()), ("a.b", "c"));
        for wrong in ["", "a", ".a", "a.", "a..b"] {
            assert_eq!(parse_table_ident(wrong).unwrap_err().kind(), ErrorKind::Configuration, "{wrong}");
        }
    }
}
