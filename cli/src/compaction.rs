//! The settings of a compaction as the library takes them.

use firn_compactor::{CompactOptions, PlanOptions, Resources};

use crate::config::Settings;
use crate::exit::Failure;

/// Iceberg's option for the size of the files to make.
const TARGET_FILE_SIZE_BYTES: &str = "target-file-size-bytes";

/// What to plan.
pub(crate) fn plan_options(settings: &Settings) -> Result<PlanOptions, Failure> {
    let mut overrides = settings.properties("compact.options");
    if let Some(bytes) = settings.number("compact.target-file-size") {
        overrides.insert(TARGET_FILE_SIZE_BYTES.to_owned(), bytes.to_string());
    }
    Ok(PlanOptions {
        filter: settings.text("compact.where").map(str::to_owned),
        partition: settings.text("compact.partition").map(str::to_owned),
        branch: Some(settings.required("table.branch")?.to_owned()),
        snapshot_id: None,
        overrides,
    })
}

/// What to compact, and with how much.
pub(crate) fn compact_options(settings: &Settings) -> Result<CompactOptions, Failure> {
    let mut resources = Resources::default();
    if let Some(bytes) = settings.number("compact.memory") {
        resources.memory_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    Ok(CompactOptions { plan: plan_options(settings)?, resources, ..CompactOptions::default() })
}
