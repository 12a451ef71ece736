//! Runs seeds without a protection until a checker finds what follows, and the same seeds with it.

use firn_table::protections::{Protection, switch_off};
use firn_tests::sim::check;
use firn_tests::sim::dice::Dice;
use firn_tests::sim::profile::{Profile, Theme};
use firn_tests::sim::run::{Report, run_profile};
use firn_tests::sim::stage::{Stage, play_under};

/// A protection, and how its absence is noticed.
pub(super) struct Case {
    pub(super) protection: Protection,
    /// The runs in which it matters.
    pub(super) theme: Theme,
    /// What of a run is not left to the seed.
    pub(super) sets: fn(&mut Profile),
    /// The checkers, one of which finds it. Others may speak before it does: a broken table also stops its writers.
    pub(super) found_by: &'static [&'static str],
    /// Within so many seeds; it took fewer than half as many when this was written.
    pub(super) within: u64,
}

impl Case {
    fn play(&self, seed: u64) -> Report {
        let mut profile = Profile::draw(Some(self.theme), &Dice::new(seed));
        (self.sets)(&mut profile);
        run_profile(seed, &profile, check::all())
    }
}

/// Nothing: all is left to the seed.
pub(super) fn nothing(_profile: &mut Profile) {}

/// Fails where none of the expected checkers notices that the protection is off, or the same promises are broken under
/// these seeds with it on.
pub(super) fn is_noticed(case: &Case) {
    let Case { protection, theme, found_by, within, .. } = case;
    let found = (0..*within).find_map(|seed| {
        let _off = switch_off(*protection);
        let report = case.play(seed);
        let violation = report.violation.filter(|violation| found_by.contains(&violation.promise));
        violation.map(|violation| (seed, violation))
    });
    let name = theme.name();
    assert!(
        found.is_some(),
        "{protection:?} was off for {within} seeds of `{name}` unnoticed by {found_by:?}"
    );
    let (seed, violation) = found.expect("looked at above");
    println!("{protection:?} off: {} finds it within {} seeds: {violation}", violation.promise, seed + 1);
    for seed in (0..=seed).rev() {
        let report = case.play(seed);
        let broken = report.violation.as_ref().filter(|violation| found_by.contains(&violation.promise));
        assert_eq!(
            broken,
            None,
            "seed {seed} of `{}` with all protections on\n{}",
            theme.name(),
            last_lines(&report)
        );
    }
}

/// As [`is_noticed`], for a script whose latencies and faults follow from the seed, and one checker.
pub(super) fn is_noticed_in<F: Future<Output = ()>>(
    script: impl Fn(Stage) -> F,
    protection: Protection,
    (found_by, within): (&str, u64),
) {
    let found = (0..within).find_map(|seed| {
        let _off = switch_off(protection);
        play_under(seed, check::all(), &script).err().map(|broken| (seed, broken))
    });
    assert!(found.is_some(), "{protection:?} was off under {within} seeds unnoticed");
    let (last, broken) = found.expect("looked at above");
    let promise = broken.violation.as_ref().map(|violation| violation.promise);
    assert_eq!(promise, Some(found_by), "{protection:?} off, seed {last}:\n{broken}");
    println!("{protection:?} off: {found_by} finds it within {} seeds", last + 1);
    for seed in 0..within {
        let played = play_under(seed, check::all(), &script);
        assert!(played.is_ok(), "seed {seed} with all protections on:\n{}", played.unwrap_err());
    }
}

fn last_lines(report: &Report) -> String {
    report.history.last(50).iter().map(|line| format!("{line}\n")).collect()
}
