//! Manifests as the crate `iceberg` reads them, each parsed once: checkers and the foreign engine of a simulation read
//! the same ones again and again. They share nothing with firn's own reader, whose faults they are to find.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use iceberg::spec::Manifest;

/// Manifests that are kept; beyond that all are forgotten.
const MOST: usize = 1_000;

thread_local! {
    static PARSED: RefCell<HashMap<Bytes, Arc<Manifest>>> = RefCell::default();
}

/// As [`Manifest::parse_avro`]. Known by content: worlds of a simulation give the same names to different files.
pub(crate) fn manifest(bytes: &Bytes) -> iceberg::Result<Arc<Manifest>> {
    if let Some(known) = PARSED.with_borrow(|parsed| parsed.get(bytes).cloned()) {
        return Ok(known);
    }
    let manifest = Arc::new(Manifest::parse_avro(bytes)?);
    PARSED.with_borrow_mut(|parsed| {
        if parsed.len() >= MOST {
            parsed.clear();
        }
        parsed.insert(bytes.clone(), manifest.clone());
    });
    Ok(manifest)
}
