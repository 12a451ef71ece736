//! It can fail: each protection of the commit protocol is switched off, and a checker of the simulation finds what
//! follows from that, within a number of seeds that is written down. With the protection on, the same seeds are clean.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a script of a test fails by a panic, and says what it found"
)]

mod found;
mod scripted;

use std::time::Duration;

use firn_table::protections::{Protection, switch_off};
use firn_tests::sim::profile::{Profile, Theme};
use firn_tests::sim::stage;
use found::{Case, is_noticed, nothing};

/// Without it, a flush that was sent once lands again where another process has committed its offsets meanwhile.
#[test]
fn a_fence_that_is_asked_only_once_is_noticed() {
    is_noticed(&Case {
        protection: Protection::LedgerCheck,
        theme: Theme::Rivals,
        sets: nothing,
        found_by: &["W5"],
        within: 20,
    });
}

/// Without it, the outputs of a rewrite are added although others have taken its inputs out.
#[test]
fn inputs_that_nobody_looks_at_again_are_noticed() {
    is_noticed(&Case {
        protection: Protection::LiveInputs,
        theme: Theme::Compaction,
        sets: nothing,
        found_by: &["C1"],
        within: 60,
    });
}

/// Without it, a commit that lost against another one is sent again on the same base, and loses for ever.
#[test]
fn a_base_that_is_never_loaded_again_is_noticed() {
    is_noticed(&Case {
        protection: Protection::FreshBase,
        theme: Theme::Compaction,
        sets: nothing,
        found_by: &["stop", "drain", "W3"],
        within: 30,
    });
}

/// Without it, flushes that were read before an overtaken one was read again stay in line beside what is read again.
#[test]
fn later_flushes_that_are_kept_when_one_is_overtaken_are_noticed() {
    is_noticed(&Case {
        protection: Protection::DiscardLater,
        theme: Theme::Rivals,
        sets: nothing,
        found_by: &["stops"],
        within: 20,
    });
}

/// Commits land after their compactor has heard nothing of them, and the next one meets a conflict that it does not wait
/// out.
fn late_commits_of_the_impatient(profile: &mut Profile) {
    profile.commit_retries = Some(0);
    profile.faults = vec![("applied-late", 0.1), ("applied-then-hangs", 0.05)];
}

/// Without it, files are deleted although the request that names them may have landed, or may yet.
#[test]
fn a_clean_up_after_an_unknown_outcome_is_noticed() {
    is_noticed(&Case {
        protection: Protection::DefiniteCleanup,
        theme: Theme::Compaction,
        sets: late_commits_of_the_impatient,
        found_by: &["C5"],
        within: 150,
    });
}

/// Without it, a rewrite lands although rows of its inputs were deleted since it was planned: they come back.
#[test]
fn deletes_that_nobody_looks_for_are_noticed() {
    is_noticed(&Case {
        protection: Protection::DeleteChecks,
        theme: Theme::Deletes,
        sets: nothing,
        found_by: &["C1"],
        within: 60,
    });
}

/// Under load, a second process joins the group and leaves again; nothing fails.
fn join_and_leave() {
    stage::play(|stage| async move {
        let first = stage.writer("first", stage.plan());
        let mut second = None;
        for round in 0..60 {
            (0..4).for_each(|of| stage.produce(of, 3));
            stage.pass(Duration::from_millis(25)).await;
            if round == 20 {
                second = Some(stage.writer("second", stage.plan()));
            }
            if round == 40
                && let Some(second) = second.take()
            {
                second.stop().await.unwrap();
            }
        }
        for of in 0..4 {
            stage.committed(of, 180).await;
        }
        first.stop().await.unwrap();
    });
}

/// Without it, partitions are given up while a commit of theirs is out. The fence makes that harmless; what it costs is
/// work that is done twice, which the checker of revokes sees.
#[test]
fn a_revoke_that_does_not_wait_for_its_commit_is_noticed() {
    join_and_leave();
    let found = std::panic::catch_unwind(|| {
        let _off = switch_off(Protection::DrainOnRevoke);
        join_and_leave();
    });
    let panic = found.expect_err("the checker of revokes notices");
    let what = panic.downcast_ref::<String>().map_or("", String::as_str);
    assert!(what.contains("revoke"), "{what}");
}
