//! Exit codes, as an interface: scripts and cron jobs branch on them, so a number keeps its meaning.

use std::fmt;
use std::io::Write;

use clap::ValueEnum;
use firn_table::ErrorKind;

use crate::config::Problems;

/// What the process tells its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[repr(u8)]
pub(crate) enum ExitCode {
    /// What was asked for is done.
    Done = 0,
    /// A fault of firn itself: please report it.
    Internal = 1,
    /// The command line cannot be understood.
    Usage = 2,
    /// The configuration, or the table it names, does not allow what was asked for.
    Configuration = 3,
    /// There was nothing to do, and `--require-work` was given.
    NothingToDo = 4,
    /// Part of the work is done and committed, another part failed.
    PartlyDone = 5,
    /// A broker, catalog or store did not answer; the same command may succeed later.
    Unavailable = 6,
    /// Data or the ledger is not as it must be: a message that cannot be decoded, rows that differ.
    BadData = 7,
    /// Another run holds the table.
    Held = 8,
    /// Stopped by a second signal before the work could be brought to an end.
    Interrupted = 130,
}

impl ExitCode {
    /// The number that the operating system gets.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    /// All codes with what they mean, for the help text.
    pub(crate) fn table() -> String {
        let rows = [
            (Self::Done, "done"),
            (Self::Internal, "internal fault: please report it"),
            (Self::Usage, "the command line cannot be understood"),
            (Self::Configuration, "the configuration or the table does not allow it"),
            (Self::NothingToDo, "nothing to do, with --require-work"),
            (Self::PartlyDone, "partly done: some of it is committed, some failed"),
            (Self::Unavailable, "a broker, catalog or store did not answer: try again"),
            (Self::BadData, "bad data: a message, the ledger, or rows that differ"),
            (Self::Held, "another run holds the table"),
            (Self::Interrupted, "interrupted before the work could end"),
        ];
        let lines = rows.map(|(code, meaning)| format!("  {:>3}  {meaning}\n", code.number()));
        format!("Exit codes:\n{}", lines.concat())
    }
}

/// An error that knows its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: ExitCode,
    message: String,
}

impl Failure {
    /// A failure with a code of the program's own choice.
    pub(crate) fn new(code: ExitCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A wish that the command line cannot express so.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Usage, message)
    }

    /// Something that the user can mend in the configuration or the table.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Configuration, message)
    }

    /// A fault of firn itself.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Internal, message)
    }

    /// The exit code.
    pub(crate) fn code(&self) -> ExitCode {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Writes an error to standard error, and finds its exit code.
pub(crate) fn report(result: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    if is_broken_pipe(&error) {
        // The reader has seen enough (`| head`): nothing is wrong.
        return ExitCode::Done;
    }
    let _ = writeln!(std::io::stderr().lock(), "firn: {}", message(&error));
    code_of(&error)
}

/// An error with its causes, each said once: errors of libraries tend to repeat what they wrap.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut out = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        let news = text.rsplit(" => ").next().unwrap_or(&text).trim();
        if out.is_empty() {
            out.push_str(&text);
        } else if !news.is_empty() && !out.contains(news) {
            out.push_str(": ");
            out.push_str(&text);
        }
    }
    out
}

/// The code of the innermost error that has one.
pub(crate) fn code_of(error: &anyhow::Error) -> ExitCode {
    let known = error.chain().filter_map(|cause| {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return Some(failure.code());
        }
        if cause.is::<Problems>() {
            return Some(ExitCode::Configuration);
        }
        cause.downcast_ref::<firn_table::Error>().map(|error| code_of_kind(error.kind()))
    });
    known.last().unwrap_or(ExitCode::Internal)
}

/// What a caller of the program can do about an error of the libraries.
fn code_of_kind(kind: ErrorKind) -> ExitCode {
    match kind {
        ErrorKind::Configuration
        | ErrorKind::Unsupported
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists => ExitCode::Configuration,
        ErrorKind::Conflict | ErrorKind::Unavailable | ErrorKind::UnknownOutcome => ExitCode::Unavailable,
        ErrorKind::Data | ErrorKind::Ledger => ExitCode::BadData,
        // Overtaken to the end means that another deployment writes under the same name.
        ErrorKind::Held | ErrorKind::Overtaken => ExitCode::Held,
        ErrorKind::Internal => ExitCode::Internal,
    }
}

/// Whether something that was named does not exist.
pub(crate) fn is_not_found(error: &anyhow::Error) -> bool {
    error.downcast_ref::<firn_table::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn numbers_are_an_interface() {
        let numbers: Vec<u8> = ExitCode::value_variants().iter().map(|code| code.number()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 130]);
    }

    #[test]
    fn each_kind_of_error_has_its_code() {
        let cases = [
            (ErrorKind::Configuration, 3),
            (ErrorKind::Unsupported, 3),
            (ErrorKind::NotFound, 3),
            (ErrorKind::AlreadyExists, 3),
            (ErrorKind::Conflict, 6),
            (ErrorKind::Unavailable, 6),
            (ErrorKind::UnknownOutcome, 6),
            (ErrorKind::Data, 7),
            (ErrorKind::Ledger, 7),
            (ErrorKind::Held, 8),
            (ErrorKind::Overtaken, 8),
            (ErrorKind::Internal, 1),
        ];
        for (kind, number) in cases {
            let error = Err::<(), _>(firn_table::Error::new(kind, "x")).context("while working").unwrap_err();
            assert_eq!(code_of(&error).number(), number, "{kind:?}");
        }
    }

    #[test]
    fn causes_that_say_nothing_new_are_left_out() {
        let cause = anyhow::anyhow!("Unexpected => no such table");
        let error = cause.context("no such table").context("opening `a.b`");
        assert_eq!(message(&error), "opening `a.b`: no such table");
        let error = anyhow::anyhow!("connection refused").context("the broker does not answer");
        assert_eq!(message(&error), "the broker does not answer: connection refused");
    }

    #[test]
    fn errors_without_a_kind_are_internal() {
        assert_eq!(code_of(&anyhow::anyhow!("x")), ExitCode::Internal);
    }

    #[test]
    fn a_reader_that_closes_the_pipe_is_no_error() {
        let closed = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert_eq!(report(Err(closed.into())), ExitCode::Done);
    }
}
