//! What a header says, parsed once for all files that have the same.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use iceberg::spec::{ManifestMetadata, PrimitiveType};

use super::container::Header;
use super::invalid;
use super::schema::{self, Kind};
use crate::{Error, Result};

/// The keys of a header that a plan is made of.
const KEYS: [&str; 7] = [
    "avro.schema",
    "schema",
    "schema-id",
    "partition-spec",
    "partition-spec-id",
    "format-version",
    "content",
];

/// Plans that are kept; beyond that all are forgotten.
const PLANS_MOST: usize = 256;

/// Headers beyond this size are parsed each time.
const KEPT_BYTES_MOST: usize = 256 << 10;

/// How the entries of a file are decoded.
#[derive(Debug)]
pub(super) struct Plan {
    /// The schema that it was written with.
    pub(super) schema: Kind,
    manifest: Option<ManifestPlan>,
}

/// What a manifest has beside its schema.
#[derive(Debug)]
pub(super) struct ManifestPlan {
    /// Its header.
    pub(super) header: ManifestMetadata,
    /// The types of its partition tuple, in the order of the spec.
    pub(super) partition: Vec<PrimitiveType>,
    /// For each field of the written tuple its place in the spec; `None` where the spec has no such field.
    pub(super) places: Vec<Option<usize>>,
}

impl Plan {
    /// That of a manifest.
    pub(super) fn manifest(&self) -> Result<&ManifestPlan> {
        self.manifest.as_ref().ok_or_else(|| invalid("its header has no table schema: it is no manifest"))
    }
}

static KNOWN: LazyLock<Mutex<HashMap<Vec<u8>, Arc<Plan>>>> = LazyLock::new(Mutex::default);

/// The plan for files with this header.
pub(super) fn of(header: &Header) -> Result<Arc<Plan>> {
    let key = key_of(header);
    if let Some(known) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok(known.clone());
    }
    let plan = Arc::new(parse(header)?);
    if key.len() <= KEPT_BYTES_MOST {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= PLANS_MOST {
            known.clear();
        }
        known.insert(key, plan.clone());
    }
    Ok(plan)
}

/// The values of all keys with their lengths.
fn key_of(header: &Header) -> Vec<u8> {
    let mut key = Vec::new();
    for value in KEYS.map(|name| header.get(name)) {
        key.extend_from_slice(&value.map_or(usize::MAX, Vec::len).to_le_bytes());
        key.extend_from_slice(value.map_or(&[], Vec::as_slice));
    }
    key
}

fn parse(header: &Header) -> Result<Plan> {
    let text = header.get("avro.schema").ok_or_else(|| invalid("its header has no schema"))?;
    let schema = schema::parse(text)?;
    if schema.fields().is_none() {
        return Err(invalid("its schema is no record"));
    }
    let manifest =
        if header.contains_key("partition-spec") { Some(parse_manifest(header, &schema)?) } else { None };
    Ok(Plan { schema, manifest })
}

fn parse_manifest(header: &Header, schema: &Kind) -> Result<ManifestPlan> {
    let header = ManifestMetadata::parse(header)
        .map_err(|e| Error::from(e).context("its header does not describe a manifest"))?;
    let tuple = header
        .partition_spec
        .partition_type(&header.schema)
        .map_err(|e| Error::from(e).context("its partition spec does not fit its schema"))?;
    let mut partition = Vec::with_capacity(tuple.fields().len());
    for field in tuple.fields() {
        let kind = field.field_type.as_primitive_type();
        partition.push(
            kind.ok_or_else(|| invalid(format!("partition field `{}` is nested", field.name)))?.clone(),
        );
    }
    let written = schema.field(2).and_then(|file| file.kind.field(102)).and_then(|field| field.kind.fields());
    let place = |id: Option<i32>| tuple.fields().iter().position(|field| Some(field.id) == id);
    let places = written.unwrap_or_default().iter().map(|field| place(field.id)).collect();
    Ok(ManifestPlan { header, partition, places })
}
