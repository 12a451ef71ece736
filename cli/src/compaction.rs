//! The settings of a compaction as the library takes them.

use std::time::Duration;

use chrono::Utc;
use firn_compactor::{CompactOptions, PlanOptions, PolicyAt, Resources};
use firn_policies::Policy;
use firn_policies::policy::PRESETS;

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
        policy: policy(settings)?.map(|policy| PolicyAt { policy, now_ms: Utc::now().timestamp_millis() }),
    })
}

/// How long a run may take.
pub(crate) fn max_time(plan: &PlanOptions) -> Option<Duration> {
    plan.policy.as_ref()?.policy.budget.time
}

/// The policy that was named, with the limits that were given over its own; `None` where neither is there.
fn policy(settings: &Settings) -> Result<Option<Policy>, Failure> {
    let named = settings.text("compact.policy").map(named).transpose()?;
    let bytes = settings.number("compact.max-bytes");
    let files = settings.number("compact.max-files");
    let time = settings.duration("compact.max-time");
    if named.is_none() && bytes.is_none() && files.is_none() && time.is_none() {
        return Ok(None);
    }
    let mut policy = named.unwrap_or_else(|| Policy { name: "limits".to_owned(), ..Policy::default() });
    policy.budget.bytes = bytes.or(policy.budget.bytes);
    policy.budget.files = files.or(policy.budget.files);
    policy.budget.time = time.or(policy.budget.time);
    Ok(Some(policy))
}

/// A preset, or the policy in a file.
fn named(name: &str) -> Result<Policy, Failure> {
    if let Some(preset) = Policy::preset(name) {
        return Ok(preset);
    }
    let text = std::fs::read_to_string(name).map_err(|error| {
        let presets = PRESETS.map(|(preset, _)| preset).join("`, `");
        Failure::configuration(format!(
            "policy `{name}` is none of the presets `{presets}`, and cannot be read as a file: {error}"
        ))
    })?;
    Policy::parse(&text).map_err(|wrong| Failure::configuration(format!("policy `{name}`: {wrong}")))
}

/// What to compact, and with how much.
pub(crate) fn compact_options(settings: &Settings) -> Result<CompactOptions, Failure> {
    let mut resources = Resources::default();
    if let Some(bytes) = settings.number("compact.memory") {
        resources.memory_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    Ok(CompactOptions { plan: plan_options(settings)?, resources, ..CompactOptions::default() })
}
