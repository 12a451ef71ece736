//! One budget in bytes for everything a writer holds: fetched messages, batches, encoded files (promise W4).
//!
//! Only the intake waits. A [`Charge`] that it was admitted with travels with the data, shrinks or grows to what the
//! data really takes in each stage, and gives its bytes back when it is dropped. Later stages never wait for bytes,
//! so that what is in the writer can always leave it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The budget. Cheap to share.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
    peak: AtomicUsize,
    freed: Notify,
}

/// Bytes that are in use; they are given back on drop.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    /// A budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), peak: AtomicUsize::new(0), freed: Notify::new() })
    }

    /// The limit in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// The most bytes that were in use at once.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Acquire)
    }

    /// Takes `bytes` if they fit, or if nothing else is in use (one message may be larger than the budget).
    #[must_use]
    pub fn try_admit(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        self.used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
                (used == 0 || used.saturating_add(bytes) <= self.limit).then(|| used.saturating_add(bytes))
            })
            .ok()?;
        self.note_peak();
        Some(Charge { budget: Arc::clone(self), bytes })
    }

    /// Takes `bytes` whether they fit or not: for what is there already.
    #[must_use]
    pub fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.used.fetch_add(bytes, Ordering::AcqRel);
        self.note_peak();
        Charge { budget: Arc::clone(self), bytes }
    }

    /// Waits until `bytes` fit.
    pub async fn admit(self: &Arc<Self>, bytes: usize) -> Charge {
        loop {
            let freed = self.freed.notified();
            if let Some(charge) = self.try_admit(bytes) {
                return charge;
            }
            freed.await;
        }
    }

    fn note_peak(&self) {
        self.peak.fetch_max(self.used(), Ordering::AcqRel);
    }
}

impl Charge {
    /// Bytes of this charge.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the charge to what the data really takes. Growing never waits.
    pub fn set(&mut self, bytes: usize) {
        if bytes >= self.bytes {
            self.budget.used.fetch_add(bytes - self.bytes, Ordering::AcqRel);
            self.bytes = bytes;
            self.budget.note_peak();
        } else {
            self.give_back(self.bytes - bytes);
        }
    }

    /// Parts `bytes` from this charge, which must hold them; what it does not hold is charged anew.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        if bytes > self.bytes {
            self.set(bytes);
        }
        self.bytes -= bytes;
        Self { budget: Arc::clone(&self.budget), bytes }
    }

    /// Takes over what another charge holds.
    pub fn absorb(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.budget.used.fetch_sub(bytes, Ordering::AcqRel);
        self.budget.freed.notify_waiters();
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.give_back(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_gives_its_bytes_back_once() {
        let budget = Budget::new(100);
        let mut a = budget.try_admit(60).unwrap();
        assert!(budget.try_admit(41).is_none());
        let b = a.split(20);
        drop(a);
        assert_eq!(budget.used(), 20);
        let mut c = budget.try_admit(80).unwrap();
        c.absorb(b);
        assert_eq!(c.bytes(), 100);
        c.set(10);
        assert_eq!(budget.used(), 10);
        drop(c);
        assert_eq!((budget.used(), budget.peak()), (0, 100));
    }

    #[test]
    fn what_is_larger_than_the_budget_is_admitted_alone() {
        let budget = Budget::new(100);
        let large = budget.try_admit(500).unwrap();
        assert!(budget.try_admit(1).is_none());
        drop(large);
        assert!(budget.try_admit(1).is_some());
    }

    #[tokio::test]
    async fn the_intake_waits_until_bytes_are_given_back() {
        let budget = Budget::new(100);
        let held = budget.admit(100).await;
        let waiting = budget.admit(50);
        tokio::pin!(waiting);
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        drop(held);
        assert_eq!(waiting.await.bytes(), 50);
    }
}
