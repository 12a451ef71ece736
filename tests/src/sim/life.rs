//! The life of a process: it may crash, and it may not be scheduled for a while, at any point where it waits.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;

use super::records::Tale;

/// What is to happen to a process, by the number of the point: points are the polls of its future, and every request
/// before it is sent and when its answer arrives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Destiny {
    /// The point at which it crashes.
    pub crash_at: Option<u64>,
    /// The point at which it is no longer scheduled, and for how long.
    pub pause_at: Option<(u64, Duration)>,
}

/// How far a process is, and what is to happen to it. Clones are of the same process.
#[derive(Clone)]
pub struct Life {
    state: Arc<Mutex<State>>,
    dead: CancellationToken,
    tell: Option<Arc<dyn Fn(Tale) + Send + Sync>>,
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Life").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct State {
    points: u64,
    destiny: Destiny,
    paused_until: Option<Instant>,
}

/// How the future of a process ended.
#[derive(Debug)]
pub enum LifeEnd<T> {
    /// By itself.
    Returned(T),
    /// It crashed.
    Crashed,
}

impl Life {
    /// A process with this destiny.
    #[must_use]
    pub fn new(destiny: Destiny) -> Self {
        let state = State { points: 0, destiny, paused_until: None };
        Self { state: Arc::new(Mutex::new(state)), dead: CancellationToken::new(), tell: None }
    }

    /// The same process, with somebody who is told of its pauses.
    #[must_use]
    pub fn telling(self, tell: impl Fn(Tale) + Send + Sync + 'static) -> Self {
        Self { tell: Some(Arc::new(tell)), ..self }
    }

    /// A process to which nothing happens.
    #[must_use]
    pub fn charmed() -> Self {
        Self::new(Destiny::default())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Points so far.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.state().points
    }

    /// Nothing happens to it any more, and a pause ends.
    pub fn charm(&self) {
        let mut state = self.state();
        state.destiny = Destiny::default();
        state.paused_until = None;
    }

    /// It crashes now: none of its requests is sent any more, no answer reaches it.
    pub fn crash(&self) {
        self.dead.cancel();
    }

    /// It is not scheduled for this long.
    pub fn pause(&self, time: Duration) {
        self.state().paused_until = Some(Instant::now() + time);
        if let Some(tell) = &self.tell {
            tell(Tale::Paused(time));
        }
    }

    /// Whether it is not scheduled now.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.state().paused_until.is_some_and(|until| until > Instant::now())
    }

    /// Counts a point, and lets happen what is to happen at it.
    fn count(&self) {
        let (points, destiny) = {
            let mut state = self.state();
            state.points += 1;
            (state.points, state.destiny)
        };
        if destiny.crash_at == Some(points) {
            self.dead.cancel();
        }
        if let Some((at, time)) = destiny.pause_at
            && at == points
        {
            self.pause(time);
        }
    }

    fn paused_until(&self) -> Option<Instant> {
        self.state().paused_until.filter(|until| *until > Instant::now())
    }

    /// A point on a request's way: passes when the process is alive and scheduled, and never where it is dead.
    pub(super) async fn point(&self) {
        self.count();
        // A pause may end early, so it is looked at in small steps.
        while let Some(until) = self.paused_until() {
            tokio::time::sleep_until(until.min(Instant::now() + PAUSE_STEP)).await;
        }
        if self.dead.is_cancelled() {
            std::future::pending::<()>().await;
        }
    }

    /// Runs the future of the process until it ends or crashes.
    pub async fn live<T>(&self, future: impl Future<Output = T>) -> LifeEnd<T> {
        let scheduled = Scheduled { life: self, future: pin!(future), wake: None };
        tokio::select! {
            biased;
            () = self.dead.cancelled() => LifeEnd::Crashed,
            value = scheduled => LifeEnd::Returned(value),
        }
    }
}

/// The longest time after which the end of a pause is noticed.
const PAUSE_STEP: Duration = Duration::from_millis(500);

/// A future that is polled only while its process is scheduled.
struct Scheduled<'a, F> {
    life: &'a Life,
    future: Pin<&'a mut F>,
    wake: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Future for Scheduled<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.life.count();
        while let Some(until) = self.life.paused_until() {
            let next = until.min(Instant::now() + PAUSE_STEP);
            let wake = self.wake.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(next)));
            if wake.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.wake = None;
        }
        if self.life.dead.is_cancelled() {
            // The caller selects on it.
            return Poll::Pending;
        }
        self.future.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ten_points(life: &Life) -> u32 {
        for _ in 0..10 {
            life.point().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        7
    }

    #[tokio::test(start_paused = true)]
    async fn it_crashes_at_the_point_that_was_named_and_at_no_other() {
        let charmed = Life::charmed();
        assert!(matches!(charmed.live(ten_points(&charmed)).await, LifeEnd::Returned(7)));
        let all = charmed.points();
        for point in 1..=all {
            let life = Life::new(Destiny { crash_at: Some(point), pause_at: None });
            assert!(matches!(life.live(ten_points(&life)).await, LifeEnd::Crashed), "{point} of {all}");
            assert_eq!(life.points(), point);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_takes_its_time_and_changes_nothing_else() {
        let life = Life::new(Destiny { crash_at: None, pause_at: Some((5, Duration::from_secs(40))) });
        let before = Instant::now();
        assert!(matches!(life.live(ten_points(&life)).await, LifeEnd::Returned(7)));
        assert!((40..41).contains(&before.elapsed().as_secs()), "{:?}", before.elapsed());
    }
}
