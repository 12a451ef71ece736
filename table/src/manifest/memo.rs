//! Manifests that a simulation parsed before. Parsing is a function of the bytes alone, and a simulated world reads
//! the same ones again and again, for which it pays with most of its time. Nothing is kept outside of simulations.

use std::cell::RefCell;
use std::collections::HashMap;

use iceberg::spec::Manifest;

use super::avro;
use crate::{Result, threads};

/// Manifests that are kept; beyond that all are forgotten.
const MOST: usize = 2_000;

thread_local! {
    static PARSED: RefCell<HashMap<Vec<u8>, Manifest>> = RefCell::default();
}

/// As [`avro::read_manifest`].
pub(super) fn read_manifest(bytes: &[u8]) -> Result<Manifest> {
    if !threads::is_inline() {
        return avro::read_manifest(bytes);
    }
    if let Some(known) = PARSED.with_borrow(|parsed| parsed.get(bytes).cloned()) {
        return Ok(known);
    }
    let manifest = avro::read_manifest(bytes)?;
    PARSED.with_borrow_mut(|parsed| {
        if parsed.len() >= MOST {
            parsed.clear();
        }
        parsed.insert(bytes.to_vec(), manifest.clone());
    });
    Ok(manifest)
}
