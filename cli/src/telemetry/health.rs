//! Whether a writer is ready, and whether it keeps its promise of freshness.

use std::sync::{Mutex, PoisonError};

use firn_writer::{Event, Observer};

/// What the events said last.
#[derive(Debug, Default)]
pub(super) struct Health {
    state: Mutex<State>,
}

#[derive(Debug, Clone, Default)]
struct State {
    phase: Phase,
    /// Why rows do not become visible.
    trouble: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Starting,
    Running,
    Stopping,
}

impl Health {
    /// Ready while the writer runs: from its start until it is told to stop. Else why not.
    pub(super) fn ready(&self) -> Result<(), String> {
        match self.state().phase {
            Phase::Running => Ok(()),
            Phase::Starting => Err("the writer is starting: it opens the table".to_owned()),
            Phase::Stopping => Err("the writer is stopping: it commits what it has in hand".to_owned()),
        }
    }

    /// Healthy unless the promise of freshness is broken. Else why.
    pub(super) fn healthy(&self) -> Result<(), String> {
        self.state().trouble.map_or(Ok(()), Err)
    }

    /// A poisoned lock is as good as any: the state is replaced field by field.
    fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Observer for Health {
    fn on_event(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Started { .. } => state.phase = Phase::Running,
            Event::Stopping => state.phase = Phase::Stopping,
            Event::Unhealthy { oldest_row_age, reason } => {
                let age = oldest_row_age.as_secs_f64();
                state.trouble =
                    Some(format!("a row is not in the table {age:.1} s after it was decoded: {reason}"));
            }
            Event::Healthy => state.trouble = None,
            _ => {}
        }
    }
}
