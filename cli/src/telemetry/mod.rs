//! What a running writer tells to machines: metrics and health over HTTP, log lines, and a flight recorder.
//!
//! ```text
//! writer ──event──▶ Everyone ─┬─▶ lines on standard output   (crate::events)
//!                             ├─▶ log lines                  (log)
//!                             ├─▶ counters, gauges           (metrics)  ─┬─▶ /metrics          (server)
//!                             ├─▶ readiness and health       (health)   ─┴─▶ /ready, /health
//!                             └─▶ one record per commit      (crate::flight)
//! ```
//!
//! Each listener takes an event in a few microseconds and waits for nothing.

mod health;
mod log;
mod metrics;
mod server;
mod weighted;

use std::sync::Arc;

use anyhow::Context as _;
use firn_writer::observe::Status;
use firn_writer::{Event, Observer};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::flight::recorder::FlightRecorder;
use health::Health;
use metrics::Metrics;

/// Everything that listens to a writer, until it is finished.
pub(crate) struct Telemetry {
    listeners: Vec<Arc<dyn Observer>>,
    recorder: Option<FlightRecorder>,
    /// The server, where there is one; it ends with this value.
    server: JoinSet<()>,
    stop: CancellationToken,
}

/// Passes what it hears to all listeners, in order.
struct Everyone(Vec<Arc<dyn Observer>>);

impl Observer for Everyone {
    fn on_event(&self, event: &Event) {
        self.0.iter().for_each(|listener| listener.on_event(event));
    }

    fn on_status(&self, status: &Status) {
        self.0.iter().for_each(|listener| listener.on_status(status));
    }
}

impl Telemetry {
    /// Starts what the settings ask for. From here on `/health` answers; `/ready` says that the writer is starting.
    pub(crate) async fn start(settings: &Settings, first: Arc<dyn Observer>) -> anyhow::Result<Self> {
        let mut telemetry = Self {
            listeners: vec![first, Arc::new(log::LogLines)],
            recorder: None,
            server: JoinSet::new(),
            stop: CancellationToken::new(),
        };
        if let Some(path) = settings.path("write.flight-recorder") {
            let limit = settings.number("write.flight-recorder-bytes").unwrap_or(u64::MAX);
            let recorder = FlightRecorder::start(&path, limit)
                .with_context(|| format!("the flight recorder `{}` cannot be written", path.display()))?;
            telemetry.listeners.push(Arc::new(recorder.observer()));
            telemetry.recorder = Some(recorder);
        }
        if let Some(address) = settings.text("write.metrics-address") {
            let what = || format!("`write.metrics-address` = `{address}` cannot be listened at");
            let listener = tokio::net::TcpListener::bind(address).await.with_context(what)?;
            let pages = Arc::new(server::Pages { metrics: Metrics::new(), health: Health::default() });
            tracing::info!(address = %listener.local_addr()?, "metrics and health are served");
            telemetry.listeners.push(pages.clone());
            telemetry.server.spawn(server::serve(listener, pages, telemetry.stop.clone()));
        }
        Ok(telemetry)
    }

    /// What the writer talks to.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(Everyone(self.listeners.clone()))
    }

    /// Ends what was started, and waits until it is written. The writer must be done.
    pub(crate) async fn finish(mut self) {
        self.stop.cancel();
        while self.server.join_next().await.is_some() {}
        self.listeners.clear();
        if let Some(recorder) = self.recorder {
            recorder.finish();
        }
    }
}
