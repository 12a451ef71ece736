//! Which fault comes when.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Faults for the calls to come: first a script, call by call, then chances under a seed. Clones share it.
#[derive(Debug, Clone)]
pub struct Schedule<F> {
    state: Arc<Mutex<State<F>>>,
}

#[derive(Debug)]
struct State<F> {
    script: VecDeque<Option<F>>,
    chances: Option<Chances<F>>,
    injected: Vec<F>,
}

#[derive(Debug)]
struct Chances<F> {
    random: ChaCha8Rng,
    of: Vec<(F, f64)>,
}

impl<F: Clone + Debug> Schedule<F> {
    /// No faults, until some are [added](Self::then).
    #[must_use]
    pub fn none() -> Self {
        Self::script([])
    }

    /// These for the next calls, one each (`None`: the call passes), and none afterwards.
    #[must_use]
    pub fn script(faults: impl IntoIterator<Item = Option<F>>) -> Self {
        let state = State { script: faults.into_iter().collect(), chances: None, injected: Vec::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Each call meets each fault with its chance (0 to 1; their sum at most 1), drawn under `seed`.
    #[must_use]
    pub fn seeded(seed: u64, chances: impl IntoIterator<Item = (F, f64)>) -> Self {
        let schedule = Self::none();
        schedule.lock().chances =
            Some(Chances { random: ChaCha8Rng::seed_from_u64(seed), of: chances.into_iter().collect() });
        schedule
    }

    /// One fault more, for the first call after all that are scripted.
    pub fn then(&self, fault: F) {
        self.lock().script.push_back(Some(fault));
    }

    /// The same fault for the next `calls` calls after all that are scripted: a storm.
    pub fn storm(&self, fault: &F, calls: usize) {
        self.lock().script.extend(std::iter::repeat_n(Some(fault.clone()), calls));
    }

    /// From now on all calls pass.
    pub fn quiet(&self) {
        let mut state = self.lock();
        state.script.clear();
        state.chances = None;
    }

    /// What was injected so far, in order.
    #[must_use]
    pub fn injected(&self) -> Vec<F> {
        self.lock().injected.clone()
    }

    /// The fault of this call.
    pub(super) fn next(&self) -> Option<F> {
        let mut state = self.lock();
        let fault = match state.script.pop_front() {
            Some(scripted) => scripted,
            None => state.chances.as_mut().and_then(Chances::draw),
        };
        state.injected.extend(fault.clone());
        fault
    }

    fn lock(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Clone> Chances<F> {
    fn draw(&mut self) -> Option<F> {
        let mut point: f64 = self.random.random();
        for (fault, chance) in &self.of {
            if point < *chance {
                return Some(fault.clone());
            }
            point -= chance;
        }
        None
    }
}
