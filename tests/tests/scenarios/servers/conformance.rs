//! The kits on servers.

use anyhow::Result;
use firn_table::storage::Stores;
use firn_tests::conformance::catalog::{self, CatalogKind};
use firn_tests::conformance::store::{self, StoreKind};
use firn_tests::servers::{self, Place};

async fn catalog_conforms(place: Place) -> Result<()> {
    let options = place.catalog("kit")?;
    catalog::conforms(&CatalogKind::of(place.name(), &options)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs Postgres: tests/run servers"]
async fn postgres_conforms_with_local_files() -> Result<()> {
    catalog_conforms(Place::PostgresLocal).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs Postgres and an S3 server: tests/run servers"]
async fn postgres_conforms_with_s3() -> Result<()> {
    catalog_conforms(Place::PostgresS3).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs a REST catalog: tests/run servers"]
async fn a_rest_catalog_conforms_with_local_files() -> Result<()> {
    catalog_conforms(Place::RestLocal).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs a REST catalog and an S3 server: tests/run servers"]
async fn a_rest_catalog_conforms_with_s3() -> Result<()> {
    catalog_conforms(Place::RestS3).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs an S3 server: tests/run servers"]
async fn the_s3_server_conforms_as_a_store() -> Result<()> {
    let s3 = servers::s3()?;
    for spelling in ["s3:", "s3a:"] {
        let base = s3.folder("store-kit").replacen("s3:", spelling, 1);
        let stores = Stores::new(s3.properties.clone());
        store::conforms(&StoreKind { name: format!("{spelling} on the S3 server"), stores, base }).await?;
    }
    Ok(())
}
