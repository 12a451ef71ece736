//! Two versions of the formats or engines in one program do not fit together: their types differ.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

/// Whether a package may stand in the lock file only once.
fn is_single(name: &str) -> bool {
    let family = |prefix: &str| name == prefix || name.starts_with(&format!("{prefix}-"));
    family("arrow")
        || family("parquet")
        || family("datafusion")
        || name == "object_store"
        || name == "iceberg"
}

/// The packages that stand in `lock` in several versions and must not.
fn doubled(lock: &str) -> Result<Vec<String>> {
    let lock: toml::Table = lock.parse()?;
    let packages =
        lock.get("package").and_then(toml::Value::as_array).context("a lock file lists packages")?;
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let field = |name: &str| package.get(name).and_then(toml::Value::as_str).context("name and version");
        let name = field("name")?;
        if is_single(name) {
            versions.entry(name).or_default().insert(field("version")?);
        }
    }
    let several = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    Ok(several.map(|(name, versions)| format!("{name}: {versions:?}")).collect())
}

#[test]
fn a_second_version_of_a_format_or_engine_is_found() -> Result<()> {
    let lock = |packages: &[(&str, &str)]| {
        packages
            .iter()
            .map(|(n, v)| format!("[[package]]\nname = \"{n}\"\nversion = \"{v}\"\n"))
            .collect::<String>()
    };
    let both = [("arrow-array", "57.1.0"), ("arrow-array", "58.0.0"), ("rand", "0.8.5"), ("rand", "0.9.1")];
    assert_eq!(doubled(&lock(&both))?, [r#"arrow-array: {"57.1.0", "58.0.0"}"#]);
    for name in ["arrow", "parquet", "datafusion", "datafusion-common", "object_store", "iceberg"] {
        assert_eq!(doubled(&lock(&[(name, "1.0.0"), (name, "2.0.0")]))?.len(), 1, "{name}");
        assert_eq!(doubled(&lock(&[(name, "1.0.0")]))?, Vec::<String>::new(), "{name}");
    }
    Ok(())
}

#[test]
fn the_lock_file_has_one_version_of_each_format_and_engine() -> Result<()> {
    let lock = std::fs::read_to_string(super::tree::root().join("Cargo.lock"))?;
    assert_eq!(doubled(&lock)?, Vec::<String>::new());
    assert!(lock.contains("name = \"datafusion\"") && lock.contains("name = \"arrow-array\""));
    Ok(())
}
