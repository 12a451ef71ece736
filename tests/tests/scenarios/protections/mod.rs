//! It can fail: each protection of the commit protocol is switched off, and a checker of the simulation finds what
//! follows from that, within a number of seeds that is written down. With the protection on, the same seeds are clean.

mod found;

use firn_table::protections::Protection;
use firn_tests::sim::profile::Theme;
use found::{Case, is_noticed, nothing};

/// Without it, a flush that was sent once lands again where another process has committed its offsets meanwhile.
#[test]
fn a_fence_that_is_asked_only_once_is_noticed() {
    is_noticed(&Case {
        protection: Protection::LedgerCheck,
        theme: Theme::Rivals,
        sets: nothing,
        found_by: &["W5"],
        within: 10,
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
        within: 20,
    });
}
