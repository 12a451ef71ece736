//! Which table, in which catalog.

use crate::config::key::{Key, Kind};

/// Section `[table]`.
pub(super) const TABLE: &[Key] = &[
    Key::new("table.name", Kind::Text, "The table, as namespace.name.")
        .so("the command does not know what to work on"),
    Key::new(
        "table.catalog",
        Kind::Text,
        "The catalog: a name from [catalogs], or a URI (sqlite:PATH, postgres://HOST/DATABASE, or https://HOST/PATH \
         of a REST catalog). Without it, the only one in [catalogs].",
    )
    .so("no table can be opened")
    .flag("catalog"),
    Key::new("table.catalog-name", Kind::Text, "The name within the catalog's database; `firn` by default.")
        .so("tables of that name would not be found")
        .flag("catalog-name"),
    Key::new(
        "table.warehouse",
        Kind::Text,
        "Where tables without a location of their own are put; the warehouse's name in a REST catalog.",
    )
        .so("no table can be created")
        .flag("warehouse"),
    Key::new("table.branch", Kind::Text, "The branch to read and to commit to.").or("main").flag("branch"),
];

/// Sections `[catalogs.NAME]`.
pub(super) const CATALOG: &[Key] = &[
    Key::new(
        "catalogs.*.uri",
        Kind::Text,
        "Where the catalog is: sqlite:PATH, postgres://HOST/DATABASE, or https://HOST/PATH of a REST catalog.",
    )
    .so("the catalog cannot be reached")
    .masked(),
    Key::new("catalogs.*.name", Kind::Text, "The name within the catalog's database; `firn` by default."),
    Key::new(
        "catalogs.*.warehouse",
        Kind::Text,
        "Where tables without a location of their own are put; the warehouse's name in a REST catalog.",
    ),
    Key::new(
        "catalogs.*.properties",
        Kind::Properties,
        "Catalog and storage properties under Iceberg's names, such as s3.endpoint, token, credential or \
         header.X-Iceberg-Access-Delegation.",
    )
    .masked(),
];
