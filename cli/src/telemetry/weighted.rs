//! A histogram whose samples have a weight: one of a commit's latencies stands for thousands of messages.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// Counts by upper bound; clones share them.
#[derive(Debug, Clone)]
pub(super) struct WeightedHistogram {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    sum: f64,
    count: u64,
    /// Upper bound, and the samples up to it that are above the bound before.
    buckets: Vec<(f64, u64)>,
}

impl WeightedHistogram {
    /// Bounds in ascending order; what is above the last one is counted too.
    pub(super) fn new(bounds: impl IntoIterator<Item = f64>) -> Self {
        let buckets = bounds.into_iter().chain([f64::INFINITY]).map(|bound| (bound, 0)).collect();
        Self { state: Arc::new(Mutex::new(State { sum: 0.0, count: 0, buckets })) }
    }

    /// Adds a value that stands for `weight` samples.
    pub(super) fn add(&self, value: f64, weight: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.sum += value * weight as f64;
        state.count += weight;
        let at = state.buckets.partition_point(|(bound, _)| *bound < value);
        if let Some((_, count)) = state.buckets.get_mut(at) {
            *count += weight;
        }
    }
}

impl EncodeMetric for WeightedHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        encoder.encode_histogram::<NoLabelSet>(state.sum, state.count, &state.buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
