//! What every command gets: the settings, where results go, and the signal to stop.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use firn_table::catalog::{CatalogOptions, IfMissing, OpenCatalog, open_catalog, parse_table_ident};
use firn_table::commit::TableHandle;
use iceberg::TableIdent;
use tokio_util::sync::CancellationToken;

use crate::args::{Cli, Global};
use crate::config::settings::missing;
use crate::config::sources::{self, Given};
use crate::config::{Problem, Problems, Settings, Source};
use crate::exit::Failure;
use crate::logging::{self, Verbosity};
use crate::output::Output;
use crate::progress::{Progress, Visibility};
use crate::signals;

/// The file that is read where no other is named.
const DEFAULT_FILE: &str = "firn.toml";

/// What every command gets.
#[derive(Debug)]
pub(crate) struct Context {
    /// The effective settings.
    pub settings: Settings,
    /// Where results go.
    pub output: Output,
    /// Cancelled by the first SIGINT or SIGTERM.
    pub stop: CancellationToken,
    visibility: Visibility,
}

impl Context {
    /// Reads the settings, then starts logging and listening for signals. Needs a runtime.
    pub(crate) fn new(cli: &Cli) -> anyhow::Result<Self> {
        let settings = settings(&cli.global, cli.command.given())?;
        let verbosity = match (cli.global.quiet, cli.global.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Verbose,
            (false, _) => Verbosity::Debug,
        };
        logging::start(verbosity, settings.required("log.format")?)?;
        let visibility = if cli.global.quiet { Visibility::Hidden } else { Visibility::Shown };
        Ok(Self { settings, output: Output::new(cli.global.format), stop: signals::listen()?, visibility })
    }

    /// Progress of work with `total` steps (zero where it is not known).
    pub(crate) fn progress(&self, label: &'static str, total: u64) -> Progress {
        Progress::start(label, total, self.visibility)
    }

    /// Whether progress may be shown.
    pub(crate) fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// The name of the table to work on.
    pub(crate) fn table_ident(&self) -> anyhow::Result<TableIdent> {
        let name = self.settings.text("table.name").ok_or_else(|| {
            Failure::usage(
                "no table is named: give it as namespace.name, or set table.name in the configuration",
            )
        })?;
        Ok(parse_table_ident(name)?)
    }

    /// How to reach the catalog.
    pub(crate) fn catalog_options(&self) -> anyhow::Result<CatalogOptions> {
        Ok(catalog_options(&self.settings)?)
    }

    /// Opens the catalog.
    pub(crate) async fn open_catalog(&self) -> anyhow::Result<OpenCatalog> {
        Ok(open_catalog(&self.catalog_options()?, None).await?)
    }

    /// Opens the table on its branch.
    pub(crate) async fn open_table(&self) -> anyhow::Result<TableHandle> {
        let ident = self.table_ident()?;
        let OpenCatalog { catalog, stores } = self.open_catalog().await?;
        let branch = self.settings.required("table.branch")?;
        Ok(TableHandle::open(catalog, stores, ident, branch).await?)
    }
}

/// Lays file, environment and command line over the defaults.
fn settings(global: &Global, from_command: Vec<Given>) -> anyhow::Result<Settings> {
    let mut problems: Vec<Problem> = Vec::new();
    let mut given = Vec::new();
    if let Some((path, text)) = read_file(global.config.as_deref())? {
        match sources::from_toml(&text, &Source::File(path)) {
            Ok(more) => given.extend(more),
            Err(problem) => problems.push(*problem),
        }
    }
    // A variable that is not text cannot be one of ours.
    let variables =
        std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    given.extend(sources::from_environment(variables));
    for assignment in &global.assignments {
        match sources::from_assignment(assignment) {
            Ok(one) => given.push(one),
            Err(problem) => problems.push(*problem),
        }
    }
    given.extend(global.log.given());
    given.extend(from_command);
    match Settings::resolve(given) {
        Ok(settings) if problems.is_empty() => Ok(settings),
        Ok(_) => Err(Problems(problems).into()),
        Err(Problems(more)) => {
            problems.extend(more);
            Err(Problems(problems).into())
        }
    }
}

/// The file that was named, or `firn.toml` where there is one.
fn read_file(named: Option<&Path>) -> anyhow::Result<Option<(PathBuf, String)>> {
    let path = match named {
        Some(path) => path.to_owned(),
        None if Path::new(DEFAULT_FILE).exists() => PathBuf::from(DEFAULT_FILE),
        None => return Ok(None),
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) => Err(Failure::configuration(format!(
            "the configuration file `{}` cannot be read ({error}), so nothing was started",
            path.display()
        ))
        .into()),
    }
}

/// The catalog that `table.catalog` names: a section of `[catalogs]`, or a URI.
fn catalog_options(settings: &Settings) -> Result<CatalogOptions, Failure> {
    let names = settings.names(&["catalogs"]);
    let wanted = match (settings.text("table.catalog"), names.len()) {
        (Some(wanted), _) => wanted,
        (None, 1) => names.first().copied().unwrap_or_default(),
        (None, _) => return Err(missing("table.catalog")),
    };
    // Only a command that may create a table may create its catalog.
    let if_missing = if settings.flag("create.enabled") { IfMissing::Create } else { IfMissing::Refuse };
    let own = |key: &str, named: Option<String>| settings.text(key).map(str::to_owned).or(named);
    if !names.contains(wanted) {
        if !wanted.contains(':') {
            let known: Vec<&str> = names.into_iter().collect();
            return Err(Failure::configuration(format!(
                "catalog `{wanted}` is neither a URI (sqlite:PATH, postgres://…, https://…) nor a name in [catalogs] ({}), so no table can \
                 be opened",
                if known.is_empty() { "which is empty".to_owned() } else { known.join(", ") }
            )));
        }
        return Ok(CatalogOptions {
            uri: wanted.to_owned(),
            name: own("table.catalog-name", None),
            warehouse: own("table.warehouse", None),
            properties: HashMap::new(),
            if_missing,
        });
    }
    let section = |key: &str| format!("catalogs.{wanted}.{key}");
    let text = |key: &str| settings.text(&section(key)).map(str::to_owned);
    Ok(CatalogOptions {
        uri: text("uri").ok_or_else(|| missing(&section("uri")))?,
        name: own("table.catalog-name", text("name")),
        warehouse: own("table.warehouse", text("warehouse")),
        properties: settings.properties(&section("properties")).into_iter().collect(),
        if_missing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(toml: &str) -> Result<CatalogOptions, Failure> {
        let given = sources::from_toml(toml, &Source::Default).unwrap();
        catalog_options(&Settings::resolve(given).unwrap())
    }

    #[test]
    fn a_catalog_is_a_name_or_a_uri_or_the_only_one() {
        let named = "[catalogs.lake]\nuri = \"sqlite:a.db\"\nname = \"x\"\nwarehouse = \"file:///w\"\n";
        for toml in [named.to_owned(), format!("{named}[table]\ncatalog = \"lake\"")] {
            let options = options(&toml).unwrap();
            assert_eq!(options.uri, "sqlite:a.db");
            assert_eq!(options.name.as_deref(), Some("x"));
            assert_eq!(options.warehouse.as_deref(), Some("file:///w"));
        }
        let uri = options("[table]\ncatalog = \"sqlite:b.db\"\nwarehouse = \"file:///v\"").unwrap();
        assert_eq!((uri.uri.as_str(), uri.warehouse.as_deref()), ("sqlite:b.db", Some("file:///v")));
    }

    #[test]
    fn the_command_line_overrides_single_parts_of_a_named_catalog() {
        let toml = "[catalogs.lake]\nuri = \"sqlite:a.db\"\nname = \"x\"\n[table]\ncatalog-name = \"y\"";
        assert_eq!(options(toml).unwrap().name.as_deref(), Some("y"));
    }

    #[test]
    fn a_catalog_that_nobody_described_is_a_configuration_error() {
        let message = options("[table]\ncatalog = \"lake\"").unwrap_err().to_string();
        assert!(message.starts_with("catalog `lake` is neither a URI"), "{message}");
        let message = options("").unwrap_err().to_string();
        assert!(message.contains("FIRN__TABLE__CATALOG"), "{message}");
    }
}
