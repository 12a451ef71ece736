//! Where CPU work runs: on threads for blocking work, so that a runtime's own threads stay free for requests; or,
//! for a simulation, where it is called, so that everything happens in one order that can be repeated.

use std::cell::Cell;
use std::future::Future;

use tokio::task::{JoinError, JoinHandle};

thread_local! {
    static INLINE: Cell<bool> = const { Cell::new(false) };
}

/// Keeps CPU work on the thread that it was made on, until it is dropped.
#[derive(Debug)]
pub struct Inline {
    before: bool,
}

impl Inline {
    /// From now on, what this thread starts runs on this thread, and tasks that only spread CPU work are not spawned.
    /// For single-threaded runtimes of simulations: long work holds up everything else on the thread.
    #[must_use]
    pub fn here() -> Self {
        Self { before: INLINE.replace(true) }
    }
}

impl Drop for Inline {
    fn drop(&mut self) {
        INLINE.set(self.before);
    }
}

/// Whether CPU work stays on this thread.
#[must_use]
pub fn is_inline() -> bool {
    INLINE.get()
}

/// Runs CPU work off the runtime's threads.
///
/// # Errors
/// The work panicked, or the runtime is going down.
pub async fn off_runtime<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    if is_inline() {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await
}

/// Ends its task when it is dropped.
struct Owned<T>(JoinHandle<T>);

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a future in a task of its own, so that several use several threads. The task ends with the returned future.
///
/// # Errors
/// The task panicked, or the runtime is going down.
pub async fn in_task<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    if is_inline() {
        return Ok(future.await);
    }
    let mut task = Owned(tokio::spawn(future));
    (&mut task.0).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_stays_on_the_thread_while_the_guard_lives() {
        let here = std::thread::current().id();
        let thread = || std::thread::current().id();
        assert_ne!(off_runtime(thread).await.unwrap(), here);
        {
            let _outer = Inline::here();
            {
                let _inner = Inline::here();
                assert_eq!(off_runtime(thread).await.unwrap(), here);
            }
            assert_eq!(off_runtime(thread).await.unwrap(), here, "the outer guard still lives");
            assert_eq!(in_task(async { 7 }).await.unwrap(), 7);
        }
        assert_ne!(off_runtime(thread).await.unwrap(), here);
    }
}
