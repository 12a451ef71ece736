//! Manifests and manifest lists decoded from Avro straight into the types of `iceberg`.
//!
//! A file is a [`container`]: a header with the writer's schema, then blocks of entries. Fields are found by their
//! field id, as the specification of Iceberg demands, whatever they are called and in whatever order they stand; the
//! others are skipped without being decoded. What is known from a header alone (the parsed [`schema`], the table's schema
//! and the partition spec) is kept by its text ([`plan`]), since the manifests of a table share it: parsing it costs more
//! than the entries of a small manifest do.
//!
//! Nothing that a file claims is believed: each length is compared with the bytes that are there, a block has a largest
//! size, and types that nest deeply or contain themselves are refused. What is wrong is an error of kind
//! [`ErrorKind::Data`].
//!
//! Specification: "Manifests", "Manifest lists", "Appendix A: Avro"; Avro 1.12 "Object Container Files", "Binary encoding".

mod container;
mod cursor;
mod entry;
mod list;
mod partition;
mod plan;
mod schema;
#[cfg(test)]
mod tests;
mod values;

use iceberg::spec::{FormatVersion, Manifest, ManifestFile};

use crate::{Error, ErrorKind, Result};

/// A manifest with the schema and the spec of its own header. Nothing is inherited yet.
pub(super) fn read_manifest(bytes: &[u8]) -> Result<Manifest> {
    let (header, blocks) = container::open(bytes)?;
    let plan = plan::of(&header)?;
    let manifest = plan.manifest()?;
    let entries = blocks.decode(|cursor| entry::decode(cursor, &plan.schema, manifest))?;
    Ok(Manifest::new(manifest.header.clone(), entries))
}

/// The entries of a manifest list of a table of format `version`.
pub(super) fn read_list(bytes: &[u8], version: FormatVersion) -> Result<Vec<ManifestFile>> {
    let (header, blocks) = container::open(bytes)?;
    let plan = plan::of(&header)?;
    blocks.decode(|cursor| list::decode(cursor, &plan.schema, version))
}

fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Data, what)
}
