//! A catalog in a folder, its tables, and the program run on them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use firn_table::catalog::{CatalogOptions, IfMissing, OpenCatalog, open_catalog, parse_table_ident};
use firn_table::commit::TableHandle;
use firn_table::storage::Stores;
use iceberg::table::Table;

use crate::process::{Ended, Running, binary};
use crate::servers::Place;
use crate::{checks, scratch};

/// A catalog and a folder of a test. Unless told otherwise: a SQLite catalog and a local directory in that folder.
#[derive(Debug, Clone)]
pub struct Warehouse {
    folder: PathBuf,
    options: CatalogOptions,
}

/// The name under which the program's configuration knows the catalog of a server.
const SERVER: &str = "server";

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

    /// One where the scenarios of this run are: on the servers that `FIRN_TEST_PLACE` names, by default as [`Self::new`].
    pub fn of_run(test: &str) -> Result<Self> {
        match Place::of_run()? {
            Some(place) => Self::on(test, place.catalog(test)?),
            None => Self::new(test),
        }
    }

    /// One on a server.
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

    /// How to reach the catalog.
    #[must_use]
    pub fn options(&self) -> CatalogOptions {
        self.options.clone()
    }

    /// How PyIceberg reaches the catalog: its properties, `name` among them.
    #[must_use]
    pub fn pyiceberg(&self) -> serde_json::Value {
        let options = &self.options;
        let mut properties = serde_json::to_value(&options.properties).unwrap_or_default();
        let (kind, uri) = match options.uri.split_once(':') {
            // Several processes share the file: they wait for the lock rather than fail.
            Some(("sqlite", path)) => ("sql", format!("sqlite:///{path}?timeout=30")),
            Some(("postgres", rest)) => ("sql", format!("postgresql+psycopg2:{rest}")),
            _ => ("rest", options.uri.clone()),
        };
        properties["type"] = kind.into();
        properties["uri"] = uri.into();
        properties["name"] = options.name.as_deref().unwrap_or("firn").into();
        if let (Some(warehouse), "sql") = (&options.warehouse, kind) {
            properties["warehouse"] = warehouse.as_str().into();
        }
        properties
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
        let mut problems = checks::problems(&table, &stores, after).await?;
        if !self.writes_metadata() {
            problems.retain(|problem| !is_of_the_server(problem));
        }
        checks::none(&table, &problems).with_context(|| self.folder.display().to_string())
    }

    /// Whether metadata files are firn's to write and to delete. The reference REST server leaves behind those of
    /// commits that it refused.
    fn writes_metadata(&self) -> bool {
        !self.options.uri.starts_with("http")
    }

    /// The program with `arguments`, on this catalog. Its working directory is the folder.
    pub fn firn(&self, arguments: &[&str]) -> Result<Command> {
        let options = &self.options;
        let mut command = Command::new(binary()?);
        command.args(arguments).current_dir(&self.folder);
        if !options.uri.starts_with("sqlite:") || !options.properties.is_empty() {
            command.env("FIRN_CONFIG", self.configuration()?).env("FIRN__TABLE__CATALOG", SERVER);
            return Ok(command);
        }
        command.env("FIRN__TABLE__CATALOG", &options.uri).env("FIRN__TABLE__CATALOG_NAME", "firn");
        command.env("FIRN__TABLE__WAREHOUSE", options.warehouse.as_deref().unwrap_or_default());
        Ok(command)
    }

    /// A configuration of the program that describes the catalog: variables have no names of catalogs.
    fn configuration(&self) -> Result<PathBuf> {
        let options = &self.options;
        let text = |value: &str| toml::Value::String(value.to_owned());
        let mut catalog = toml::Table::from_iter([("uri".to_owned(), text(&options.uri))]);
        catalog.extend(options.name.as_deref().map(|name| ("name".to_owned(), text(name))));
        catalog.extend(options.warehouse.as_deref().map(|place| ("warehouse".to_owned(), text(place))));
        let properties = options.properties.iter().map(|(name, value)| (name.clone(), text(value)));
        catalog.insert("properties".to_owned(), properties.collect::<toml::Table>().into());
        let named = toml::Table::from_iter([(SERVER.to_owned(), catalog.into())]);
        let whole = toml::Table::from_iter([("catalogs".to_owned(), named.into())]).to_string();
        // One folder may have several addresses of a catalog.
        let address: String = options.uri.chars().filter(char::is_ascii_alphanumeric).collect();
        let path = self.folder.join(format!("firn-{address}.toml"));
        // A process may be reading it.
        if std::fs::read_to_string(&path).ok().as_ref() != Some(&whole) {
            std::fs::write(&path, whole)?;
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

/// Whether a problem is a metadata file, or Hadoop's checksum of one, that nothing references.
fn is_of_the_server(problem: &str) -> bool {
    let file = problem.strip_suffix(".crc").unwrap_or(problem);
    problem.starts_with("nothing references") && file.ends_with(".metadata.json")
}
