//! How often and how long a commit is tried.

use std::collections::HashMap;
use std::time::Duration;

/// How often and how long a commit is tried.
#[derive(Debug, Clone)]
pub struct CommitLimits {
    /// Definite conflicts before `Conflict` is returned (Iceberg's `commit.retry.num-retries`).
    pub max_conflicts: u32,
    /// The first wait after a definite failure; doubled, with jitter.
    pub min_wait: Duration,
    /// The longest wait.
    pub max_wait: Duration,
    /// One request to the catalog or store.
    pub request_timeout: Duration,
    /// The whole commit; `None` tries until stopped (a writer that must not give up).
    pub deadline: Option<Duration>,
}

impl Default for CommitLimits {
    /// 100 conflicts, waits of 50 ms to 10 s, 30 s for a request, 30 minutes for a commit.
    fn default() -> Self {
        Self {
            max_conflicts: 100,
            min_wait: Duration::from_millis(50),
            max_wait: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            deadline: Some(Duration::from_secs(30 * 60)),
        }
    }
}

impl CommitLimits {
    /// The defaults, with what the table's properties say under Iceberg's names (`commit.retry.num-retries`,
    /// `-.min-wait-ms`, `-.max-wait-ms`, `-.total-timeout-ms`).
    #[must_use]
    pub fn of_properties(properties: &HashMap<String, String>) -> Self {
        let number = |name: &str| properties.get(&format!("commit.retry.{name}"))?.parse::<u64>().ok();
        let millis = |name: &str| number(name).map(Duration::from_millis);
        let default = Self::default();
        let retries = number("num-retries").and_then(|retries| u32::try_from(retries).ok());
        Self {
            max_conflicts: retries.unwrap_or(default.max_conflicts),
            min_wait: millis("min-wait-ms").unwrap_or(default.min_wait),
            max_wait: millis("max-wait-ms").unwrap_or(default.max_wait),
            request_timeout: default.request_timeout,
            deadline: millis("total-timeout-ms").or(default.deadline),
        }
    }
}
