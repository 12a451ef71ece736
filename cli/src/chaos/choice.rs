//! Which rule acts on a request: a function of the seed, the rules, the time, and how many requests came before.
//!
//! Rules are asked in their order. Each counts the requests that fit its pattern and that no earlier rule took; its
//! n-th request always gets the same decision under the same seed, whatever other rules do and however requests race.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::rule::{Fault, Head, Rule, When};

/// Rules with what they have done.
#[derive(Debug)]
pub(crate) struct Choice {
    rules: Vec<Rule>,
    seed: u64,
    counts: Mutex<Vec<Counts>>,
}

/// What a rule has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Requests that fitted it.
    pub fitted: u64,
    /// Requests that it acted on.
    pub acted: u64,
}

/// A rule that acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit<'a> {
    /// Its number, from 1.
    pub rule: usize,
    /// What is to happen.
    pub fault: &'a Fault,
}

impl Choice {
    /// No request has come yet.
    pub(crate) fn new(rules: Vec<Rule>, seed: u64) -> Self {
        let counts = Mutex::new(vec![Counts::default(); rules.len()]);
        Self { rules, seed, counts }
    }

    /// The rules.
    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What each rule has done.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        self.lock().clone()
    }

    /// The first rule that acts on a request at this time after the start.
    pub(crate) fn decide(&self, head: Head<'_>, since_start: Duration) -> Option<Hit<'_>> {
        let fitting: Vec<bool> = self.rules.iter().map(|rule| rule.pattern.fits(head)).collect();
        let mut counts = self.lock();
        for (at, rule) in self.rules.iter().enumerate().filter(|(at, _)| fitting[*at]) {
            let counts = &mut counts[at];
            counts.fitted += 1;
            let drawn = || draw(self.seed, at as u64, counts.fitted);
            if acts(&rule.when, *counts, drawn, since_start) {
                counts.acted += 1;
                return Some(Hit { rule: at + 1, fault: &rule.fault });
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Counts>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a rule acts on the request that was just counted. `drawn` is the request's own number in `[0, 1)`.
fn acts(when: &When, counts: Counts, drawn: impl FnOnce() -> f64, since_start: Duration) -> bool {
    let Some(number) = counts.fitted.checked_sub(when.after).filter(|number| *number > 0) else {
        return false;
    };
    when.every.is_none_or(|every| number.is_multiple_of(every))
        && when.first.is_none_or(|first| counts.acted < first)
        && when.between.is_none_or(|(from, to)| from <= since_start && since_start < to)
        && when.share.is_none_or(|share| drawn() < share)
}

/// The number in `[0, 1)` of a rule's request: the same whenever it is asked for.
fn draw(seed: u64, rule: u64, number: u64) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(rule);
    // Two words make one number.
    random.set_word_pos(2 * u128::from(number));
    random.random()
}
