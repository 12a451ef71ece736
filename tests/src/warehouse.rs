//! A catalog in a folder, its tables, and the program run on them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use firn_table::catalog::{CatalogOptions, IfMissing, OpenCatalog, open_catalog, parse_table_ident};
use firn_table::commit::TableHandle;
use firn_table::storage::Stores;
use iceberg::table::Table;

use crate::process::{Ended, Running, binary};
use crate::{checks, scratch};

/// A SQLite catalog and a local directory, in a folder of a test.
#[derive(Debug)]
pub struct Warehouse {
    folder: PathBuf,
}

impl Warehouse {
    /// A new one, empty.
    pub fn new(test: &str) -> Result<Self> {
        Ok(Self { folder: scratch::folder(test)? })
    }

    /// The folder: `catalog.db`, the tables below `data`, logs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The SQLite file.
    #[must_use]
    pub fn catalog_file(&self) -> PathBuf {
        self.folder.join("catalog.db")
    }

    /// How to reach the catalog.
    #[must_use]
    pub fn options(&self) -> CatalogOptions {
        CatalogOptions {
            uri: format!("sqlite:{}", self.catalog_file().display()),
            name: Some("firn".to_owned()),
            warehouse: Some(format!("file://{}", self.folder.join("data").display())),
            ..CatalogOptions::default()
        }
    }

    /// Opens the catalog.
    pub async fn open(&self) -> Result<OpenCatalog> {
        Ok(open_catalog(&self.options(), None).await?)
    }

    /// Makes the catalog, where a test works on it without the program.
    pub async fn create(&self) -> Result<OpenCatalog> {
        let options = CatalogOptions { if_missing: IfMissing::Create, ..self.options() };
        Ok(open_catalog(&options, None).await?)
    }

    /// Loads a table, with the stores of its files.
    pub async fn table(&self, name: &str) -> Result<(Table, Stores)> {
        let opened = self.open().await?;
        let table = opened.catalog.load_table(&parse_table_ident(name)?).await?;
        Ok((table, opened.stores))
    }

    /// Opens a table to commit to it.
    pub async fn handle(&self, name: &str) -> Result<TableHandle> {
        let opened = self.open().await?;
        Ok(TableHandle::open(opened.catalog, opened.stores, parse_table_ident(name)?, "main").await?)
    }

    /// Fails with everything that is wrong with a table.
    pub async fn check(&self, name: &str, after: checks::After) -> Result<()> {
        let (table, stores) = self.table(name).await?;
        checks::check(&table, &stores, after).await.with_context(|| self.folder.display().to_string())
    }

    /// The program with `arguments`, on this catalog. Its working directory is the folder.
    pub fn firn(&self, arguments: &[&str]) -> Result<Command> {
        let options = self.options();
        let mut command = Command::new(binary()?);
        command.args(arguments).current_dir(&self.folder);
        command.env("FIRN__TABLE__CATALOG", options.uri).env("FIRN__TABLE__CATALOG_NAME", "firn");
        command.env("FIRN__TABLE__WAREHOUSE", options.warehouse.unwrap_or_default());
        Ok(command)
    }

    /// Runs the program to its end, whatever that is.
    pub fn run(&self, arguments: &[&str]) -> Result<Ended> {
        let output = self.firn(arguments)?.output()?;
        Ok(Ended {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Starts the program; `log` names the file, in the folder, for what it says.
    pub fn start(&self, arguments: &[&str], log: &str) -> Result<Running> {
        Running::start(self.firn(arguments)?, &self.folder.join(log))
    }
}
