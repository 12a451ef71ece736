//! Random runs.

use firn_tests::sim::check;
use firn_tests::sim::profile::Theme;
use firn_tests::sim::run::{Report, Run, run};

fn play(seed: u64, theme: Option<Theme>) -> Report {
    run(Run { seed, theme }, check::all())
}

#[test]
fn the_same_seed_has_the_same_history() {
    for theme in Theme::ALL {
        let (first, second) = (play(11, Some(theme)), play(11, Some(theme)));
        assert!(first.commits > 2, "{theme:?}: {} commits", first.commits);
        assert_eq!(first.history.difference(&second.history), None, "{theme:?}");
        let other = play(12, Some(theme));
        assert!(first.history.difference(&other.history).is_some(), "{theme:?}");
    }
}

#[test]
fn every_promise_is_kept_under_a_few_seeds() {
    for seed in 0..40 {
        let report = play(seed, None);
        if let Some(violation) = report.violation {
            let lines: Vec<String> = report.history.last(50).iter().map(ToString::to_string).collect();
            panic!("{}\nseed {seed} ({}) breaks {violation}", lines.join("\n"), report.theme.name());
        }
    }
}
