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

/// A catalog, and a folder of a test: by default a SQLite file and a local directory in that folder.
#[derive(Debug, Clone)]
pub struct Warehouse {
    folder: PathBuf,
    options: CatalogOptions,
}

impl Warehouse {
    /// A new one, empty.
    pub fn new(test: &str) -> Result<Self> {
        Self::with_data(test, |folder| folder.join("data"))
    }

    /// A new one whose tables are in a folder that `data` names; it gets the test's folder.
    pub fn with_data(test: &str, data: impl FnOnce(&Path) -> PathBuf) -> Result<Self> {
        let folder = scratch::folder(test)?;
        let options = CatalogOptions {
            uri: format!("sqlite:{}", folder.join("catalog.db").display()),
            name: Some("firn".to_owned()),
            warehouse: Some(format!("file://{}", data(&folder).display())),
            ..CatalogOptions::default()
        };
        Ok(Self { folder, options })
    }

    /// Another catalog, with a new folder for what the test leaves behind.
    pub fn on(test: &str, options: CatalogOptions) -> Result<Self> {
        Ok(Self { folder: scratch::folder(test)?, options })
    }

    /// The same folder for another catalog.
    #[must_use]
    pub fn with(&self, options: CatalogOptions) -> Self {
        Self { folder: self.folder.clone(), options }
    }

    /// The same catalog by another address.
    #[must_use]
    pub fn by(&self, uri: &str) -> Self {
        self.with(CatalogOptions { uri: uri.to_owned(), ..self.options.clone() })
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
        self.options.clone()
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
        let options = &self.options;
        let mut command = Command::new(binary()?);
        command.args(arguments).current_dir(&self.folder);
        // Variables have no names of catalogs: properties come from a file.
        if options.properties.is_empty() {
            command.env("FIRN__TABLE__CATALOG", &options.uri);
        } else {
            command.env("FIRN_CONFIG", self.configuration()?).env("FIRN__TABLE__CATALOG", "test");
        }
        command.envs(options.name.as_ref().map(|name| ("FIRN__TABLE__CATALOG_NAME", name)));
        command.envs(options.warehouse.as_ref().map(|warehouse| ("FIRN__TABLE__WAREHOUSE", warehouse)));
        Ok(command)
    }

    fn configuration(&self) -> Result<PathBuf> {
        let mut catalog = toml::Table::from_iter([("uri".to_owned(), self.options.uri.clone().into())]);
        let properties = self.options.properties.iter();
        let properties: toml::Table =
            properties.map(|(name, value)| (name.clone(), value.clone().into())).collect();
        catalog.insert("properties".to_owned(), properties.into());
        let catalogs = toml::Table::from_iter([("test".to_owned(), catalog.into())]);
        let file = toml::Table::from_iter([("catalogs".to_owned(), catalogs.into())]);
        let (text, address) =
            (file.to_string(), self.options.uri.replace(|c: char| !c.is_alphanumeric(), "-"));
        let path = self.folder.join(format!("catalog-{address}.toml"));
        // Another process may be reading it.
        if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            std::fs::write(&path, text)?;
        }
        Ok(path)
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
