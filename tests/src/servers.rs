//! Catalogs and stores on the servers of a run, and which of them the scenarios run on that run anywhere.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use firn_table::catalog::CatalogOptions;
use uuid::Uuid;

use crate::scratch;
use crate::server::{Kind, properties};

/// A catalog and a store on servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Postgres, and local files.
    PostgresLocal,
    /// Postgres, and the S3 server.
    PostgresS3,
    /// The REST catalog, and local files.
    RestLocal,
    /// The REST catalog, and the S3 server.
    RestS3,
}

/// All of them.
pub const PLACES: [Place; 4] = [Place::PostgresLocal, Place::PostgresS3, Place::RestLocal, Place::RestS3];

/// An S3 server with a bucket for the tests.
#[derive(Debug, Clone)]
pub struct S3Server {
    /// Iceberg's properties for it.
    pub properties: HashMap<String, String>,
    /// The bucket.
    pub bucket: String,
}

impl Place {
    /// As `FIRN_TEST_PLACE` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PostgresLocal => "postgres-local",
            Self::PostgresS3 => "postgres-s3",
            Self::RestLocal => "rest-local",
            Self::RestS3 => "rest-s3",
        }
    }

    /// Where the scenarios run that run anywhere: the place that `FIRN_TEST_PLACE` names, if it is set.
    pub fn of_run() -> Result<Option<Self>> {
        let Ok(name) = std::env::var("FIRN_TEST_PLACE") else { return Ok(None) };
        match PLACES.into_iter().find(|place| place.name() == name) {
            Some(place) => Ok(Some(place)),
            None => bail!("FIRN_TEST_PLACE is `{name}`: it may be one of {:?}", PLACES.map(Self::name)),
        }
    }

    /// A catalog there that is empty, and that no other test sees.
    pub fn catalog(self, test: &str) -> Result<CatalogOptions> {
        let name = format!("{test}-{}", &Uuid::new_v4().simple().to_string()[..10]);
        let (uri, catalog_name, warehouse) = match self {
            Self::PostgresLocal => {
                let data = scratch::folder(&format!("{test}-data"))?;
                (postgres()?, Some(name), Some(format!("file://{}", data.display())))
            }
            Self::PostgresS3 => (postgres()?, Some(name), Some(s3()?.folder(test))),
            // The server decides where tables go: by the name.
            Self::RestLocal => (format!("{}/@{name}", rest()?), None, None),
            Self::RestS3 => (format!("{}/@s3-{name}", rest()?), None, None),
        };
        let properties = match self {
            Self::PostgresLocal | Self::RestLocal => HashMap::new(),
            Self::PostgresS3 | Self::RestS3 => s3()?.properties,
        };
        Ok(CatalogOptions { uri, name: catalog_name, warehouse, properties, ..CatalogOptions::default() })
    }
}

/// The URI of the REST catalog. Below `/@NAME` are further ones.
pub fn rest() -> Result<String> {
    Kind::Rest.shared()
}

/// The URL of the Postgres database.
pub fn postgres() -> Result<String> {
    Kind::Postgres.shared()
}

/// The S3 server.
pub fn s3() -> Result<S3Server> {
    let mut properties = properties(&Kind::S3.shared()?);
    let bucket = properties.remove("bucket").context("FIRN_TEST_S3 names no bucket")?;
    Ok(S3Server { properties, bucket })
}

impl S3Server {
    /// A folder that nothing else uses.
    #[must_use]
    pub fn folder(&self, test: &str) -> String {
        format!("s3://{}/{test}-{}", self.bucket, &Uuid::new_v4().simple().to_string()[..10])
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.properties.get("s3.endpoint").map_or("", String::as_str)
    }

    /// The properties, some of them replaced.
    #[must_use]
    pub fn with(&self, changes: &[(&str, &str)]) -> HashMap<String, String> {
        let changes = changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.properties.clone().into_iter().chain(changes).collect()
    }
}
