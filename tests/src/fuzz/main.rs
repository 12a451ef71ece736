//! `fuzz`: mutated messages, decoded by the decoders of the writer and by slow, obvious ones, and compared.
//!
//! ```text
//! fuzz [--seconds N] [--seed N] [--format json|avro|raw]
//! ```
//!
//! The same seed gives the same messages. It ends with one line of counts for each format; where a decoder panics or
//! two decoders differ, with the message in hexadecimal, the seed, and exit code 1. Exit code 2: the arguments are wrong.

mod arguments;
#[path = "../../../writer/src/decode/tests/avro_reference.rs"]
#[allow(clippy::unwrap_used, clippy::panic)]
mod avro_reference;
mod mutate;
#[path = "../../../writer/src/decode/tests/reference.rs"]
#[allow(clippy::unwrap_used, clippy::panic)]
mod reference;
mod target;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use arguments::Arguments;
use mutate::Mutator;
use target::{Finding, Kind, Target};

/// Messages decoded together: one that is rejected must leave nothing behind in the rows of the others.
const BATCH: usize = 16;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]
fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("fuzz: {problem}\n{}", arguments::USAGE);
            return ExitCode::from(2);
        }
    };
    // What panics is told with its message; the default report would come once for each try to find it.
    std::panic::set_hook(Box::new(|_| ()));
    let share = arguments.time / u32::try_from(arguments.kinds.len()).unwrap_or(1);
    for kind in arguments.kinds {
        match fuzz(kind, arguments.seed, share) {
            Ok(Counts { executions, rows }) => {
                println!("{kind}: {executions} executions, {rows} rows, seed {}", arguments.seed);
            }
            Err(finding) => {
                println!("{kind}: {finding}\nseed {}", arguments.seed);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

#[derive(Debug, Default)]
struct Counts {
    executions: u64,
    /// Messages that were rows, for both decoders.
    rows: u64,
}

/// Runs until the time is over; at least one batch.
fn fuzz(kind: Kind, seed: u64, time: Duration) -> Result<Counts, Box<Finding>> {
    let mut target = Target::new(kind);
    let mut mutator = Mutator::new(seed, kind.corpus());
    let began = Instant::now();
    let mut counts = Counts::default();
    loop {
        let messages: Vec<Vec<u8>> = (0..BATCH).map(|_| mutator.message()).collect();
        counts.rows += target.compare(&messages)?;
        counts.executions += BATCH as u64;
        if began.elapsed() >= time {
            return Ok(counts);
        }
    }
}
