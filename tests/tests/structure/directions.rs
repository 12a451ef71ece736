//! Which crate may depend on which: cli → writer, compactor → table, policies, and never back.

use anyhow::{Context, Result};

/// What each package of the workspace may use of the others.
const OURS: [(&str, &[&str]); 8] = [
    ("firn-policies", &[]),
    ("firn-table", &[]),
    ("firn-writer", &["firn-table"]),
    ("firn-compactor", &["firn-table", "firn-policies"]),
    ("firn-distributed", &["firn-compactor", "firn-table", "firn-policies"]),
    ("firn-cli", &["firn-table", "firn-policies", "firn-writer", "firn-compactor", "firn-distributed"]),
    (
        "firn-tests",
        &["firn-table", "firn-policies", "firn-writer", "firn-compactor", "firn-distributed", "firn-cli"],
    ),
    ("firn-examples", &["firn-table", "firn-policies", "firn-writer", "firn-compactor"]),
];

/// Families of packages that belong to some crates alone.
const RESERVED: [(&str, &[&str]); 5] = [
    ("rdkafka", &["firn-writer", "firn-tests"]),
    ("datafusion", &["firn-compactor", "firn-distributed", "firn-cli"]),
    ("ballista", &["firn-distributed"]),
    ("clap", &["firn-cli"]),
    ("indicatif", &["firn-cli"]),
];

/// Every dependency of a manifest, whatever its kind and platform, by the name of its package.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let mut out = Vec::new();
    for (key, value) in manifest {
        let Some(table) = value.as_table() else { continue };
        match key.as_str() {
            "dependencies" | "dev-dependencies" | "build-dependencies" => {
                let package = |value: &toml::Value| value.get("package")?.as_str().map(str::to_owned);
                out.extend(table.iter().map(|(name, value)| package(value).unwrap_or_else(|| name.clone())));
            }
            "target" => out.extend(table.values().filter_map(toml::Value::as_table).flat_map(dependencies)),
            _ => {}
        }
    }
    out
}

/// The dependencies of a manifest that point the wrong way.
fn forbidden(manifest: &str) -> Result<Vec<String>> {
    let manifest: toml::Table = manifest.parse()?;
    let name = manifest.get("package").and_then(|package| package.get("name")?.as_str()).context("a name")?;
    let allowed = OURS.iter().find(|(ours, _)| *ours == name).context("a package that the rules name")?.1;
    let wrong = |dependency: &String| {
        let reserved = |(family, owners): &(&str, &[&str])| {
            let of_family = dependency == family || dependency.starts_with(&format!("{family}-"));
            let of_family = of_family || dependency.starts_with(&format!("{family}_"));
            of_family && !owners.contains(&name)
        };
        let ours = dependency.starts_with("firn-") && !allowed.contains(&dependency.as_str());
        ours || RESERVED.iter().any(reserved)
    };
    Ok(dependencies(&manifest).into_iter().filter(wrong).map(|wrong| format!("{name} → {wrong}")).collect())
}

#[test]
fn a_dependency_that_points_back_or_is_reserved_is_found() -> Result<()> {
    let of = |name: &str, rest: &str| forbidden(&format!("[package]\nname = \"{name}\"\n{rest}"));
    assert_eq!(of("firn-table", "[dependencies]\nfirn-writer = \"1\"")?, ["firn-table → firn-writer"]);
    assert_eq!(
        of("firn-writer", "[dev-dependencies]\nfirn-compactor = \"1\"")?,
        ["firn-writer → firn-compactor"]
    );
    assert_eq!(
        of("firn-policies", "[dependencies]\nfirn-table.workspace = true")?,
        ["firn-policies → firn-table"]
    );
    assert_eq!(of("firn-table", "[dependencies.datafusion-common]\nversion = \"1\"")?.len(), 1);
    assert_eq!(of("firn-compactor", "[build-dependencies]\nrdkafka-sys = \"1\"")?.len(), 1);
    assert_eq!(of("firn-writer", "[target.'cfg(unix)'.dependencies]\nclap_complete = \"1\"")?.len(), 1);
    assert_eq!(
        of("firn-table", "[dependencies]\nsql = { package = \"datafusion\", version = \"1\" }")?.len(),
        1
    );
    assert_eq!(
        of("firn-writer", "[dependencies]\nfirn-table = \"1\"\nrdkafka = \"1\"")?,
        Vec::<String>::new()
    );
    assert!(of("firn-new", "").is_err(), "a package that the rules do not name");
    Ok(())
}

#[test]
fn dependencies_of_the_members_point_one_way() -> Result<()> {
    let root = super::tree::root();
    let workspace: toml::Table = std::fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
    let members = workspace["workspace"]["members"].as_array().context("members")?;
    assert!(members.len() >= 7, "{members:?}");
    for member in members {
        let folder = root.join(member.as_str().context("a member is a folder")?);
        assert_eq!(forbidden(&std::fs::read_to_string(folder.join("Cargo.toml"))?)?, Vec::<String>::new());
    }
    Ok(())
}
