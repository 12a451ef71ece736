//! The kits on what needs no server.

use std::collections::HashMap;

use anyhow::Result;
use firn_table::storage::Stores;
use firn_tests::conformance::catalog::{self, CatalogKind};
use firn_tests::conformance::store::{self, StoreKind};
use firn_tests::scratch;
use firn_tests::warehouse::Warehouse;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_conforms_as_a_catalog() -> Result<()> {
    let options = Warehouse::new("sqlite-kit")?.options();
    catalog::conforms(&CatalogKind::of("SQLite with local files", &options)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn local_files_conform_as_a_store() -> Result<()> {
    let folder = scratch::folder("store-kit")?.join("with space %41 é");
    std::fs::create_dir(&folder)?;
    let folder = folder.display();
    for base in [folder.to_string(), format!("file:{folder}"), format!("file://{folder}")] {
        let stores = Stores::new(HashMap::new());
        store::conforms(&StoreKind { name: base.clone(), stores, base }).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_conforms_as_a_store() -> Result<()> {
    for base in ["memory://warehouse/a", "memory:/a"] {
        let stores = Stores::new(HashMap::new());
        store::conforms(&StoreKind { name: base.to_owned(), stores, base: base.to_owned() }).await?;
    }
    Ok(())
}
