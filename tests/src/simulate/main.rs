//! `simulate`: runs seeds of the simulation, by hand or in a check.
//!
//! ```text
//! simulate --seeds FROM..TO [--for SECONDS] [--profile NAME] [--jobs N] [--history]
//! ```
//!
//! It ends with one line of counts, and with exit code 1 where a promise was broken: then it prints the line that
//! repeats the run, and the last events before the violation. Exit code 2: the arguments are wrong.

mod arguments;
mod tally;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use firn_tests::sim::check;
use firn_tests::sim::run::{Report, Run, run};

use arguments::Arguments;
use tally::{SharedTally, line_to_repeat};

/// Lines of history that are printed before a violation.
const SHOWN_LINES: usize = 50;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]
fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("simulate: {problem}\n{}", arguments::USAGE);
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    let tally = SharedTally::default();
    let next = AtomicU64::new(arguments.seeds.start);
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| work(&arguments, began, &next, &tally));
        }
    });
    let tally = tally.into_inner();
    println!("{}", tally.line(began.elapsed()));
    if tally.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Takes seeds until there is none left, or the time is over.
fn work(arguments: &Arguments, began: Instant, next: &AtomicU64, tally: &SharedTally) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        let time_is_over = arguments.time.is_some_and(|time| began.elapsed() >= time);
        if seed >= arguments.seeds.end || time_is_over {
            return;
        }
        let report = run(Run { seed, theme: arguments.theme }, check::all());
        show(arguments, seed, &report);
        tally.add(&report);
    }
}

#[expect(clippy::print_stdout, reason = "a program prints")]
fn show(arguments: &Arguments, seed: u64, report: &Report) {
    let lines = if arguments.history { usize::MAX } else { SHOWN_LINES };
    if report.violation.is_none() && !arguments.history {
        return;
    }
    let mut text = String::new();
    for entry in report.history.last(lines) {
        text.push_str(&format!("{entry}\n"));
    }
    if let Some(violation) = &report.violation {
        text.push_str(&format!("seed {seed} ({}) breaks {violation}\n", report.theme.name()));
        text.push_str(&format!("repeat it: {}\n", line_to_repeat(seed, arguments.theme)));
    }
    // In one piece, so that two threads do not mix their lines.
    print!("{text}");
}
