//! The protections of the commit protocol, one by one, so that the tests can take one away and see that its absence
//! is noticed.
//!
//! A checker that never found anything may be blind. So for each protection a test switches it off, runs the
//! simulation until a checker finds what follows, and shows that the same seeds are clean with it on.
//!
//! **Not for programs.** Only tests call [`switch_off`]; a rule about the sources says so. The switch belongs to the
//! thread on which it was made: it is meant for a simulation, which runs on one thread. Code that a program moves to
//! other threads asks [`stands`] there and is told that all protections stand.

use std::cell::Cell;
use std::marker::PhantomData;

/// A protection that the tests can switch off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protection {
    /// The fence is asked on each attempt of a flush. Off: on the first one only.
    LedgerCheck,
    /// After any answer but "committed" the base is loaded. Off: the next attempt builds on the table as it was known.
    FreshBase,
    /// Once the outcome of a request was unknown, that of the commit is. Off: the last answer counts.
    StickyUnknown,
    /// Files that a request named are deleted only after definite outcomes. Off: whenever the commit did not land.
    DefiniteCleanup,
    /// Flushes behind an overtaken one that touch its partitions are discarded with it. Off: they stay in line.
    DiscardLater,
    /// The inputs of a rewrite are live in the base as they were planned. Off: nobody looks.
    LiveInputs,
    /// The deletes of a rewrite's inputs are those that were applied when it was planned. Off: nobody looks.
    DeleteChecks,
    /// The outputs of a rewrite have the sequence number that was planned on. Off: that of their commit.
    StartingSequenceNumber,
    /// A revoke is answered when what was read is committed or discarded. Off: at once.
    DrainOnRevoke,
    /// Snapshots expire only if no branch or tag has moved meanwhile. Off: whatever happened.
    ExpiryInterlock,
}

impl Protection {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::LedgerCheck,
        Self::FreshBase,
        Self::StickyUnknown,
        Self::DefiniteCleanup,
        Self::DiscardLater,
        Self::LiveInputs,
        Self::DeleteChecks,
        Self::StartingSequenceNumber,
        Self::DrainOnRevoke,
        Self::ExpiryInterlock,
    ];

    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

thread_local! {
    /// The protections that are off, by their bits.
    static OFF: Cell<u16> = const { Cell::new(0) };
}

/// Whether a protection is in force on this thread: always, unless a test has switched it off.
#[must_use]
pub fn stands(protection: Protection) -> bool {
    OFF.get() & protection.bit() == 0
}

/// Switches a protection off on this thread until the guard is dropped. For tests alone.
#[must_use = "the protection is on again as soon as the guard is dropped"]
pub fn switch_off(protection: Protection) -> Guard {
    let was_off = !stands(protection);
    OFF.set(OFF.get() | protection.bit());
    Guard { protection, was_off, of_this_thread: PhantomData }
}

/// Keeps a protection off.
#[derive(Debug)]
pub struct Guard {
    protection: Protection,
    was_off: bool,
    of_this_thread: PhantomData<*const ()>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.was_off {
            OFF.set(OFF.get() & !self.protection.bit());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protection_is_off_only_while_its_guard_lives_and_only_on_its_thread() {
        let all_stand = || Protection::ALL.into_iter().all(stands);
        assert!(all_stand());
        for protection in Protection::ALL {
            let guard = switch_off(protection);
            let off: Vec<_> = Protection::ALL.into_iter().filter(|p| !stands(*p)).collect();
            assert_eq!(off, [protection]);
            drop(switch_off(protection));
            assert!(!stands(protection), "the outer guard still lives");
            assert!(std::thread::spawn(move || Protection::ALL.into_iter().all(stands)).join().unwrap());
            drop(guard);
            assert!(all_stand());
        }
    }
}
