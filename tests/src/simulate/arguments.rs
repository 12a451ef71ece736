//! The few arguments of the program.

use std::ops::Range;
use std::time::Duration;

use firn_tests::sim::profile::Theme;

/// How it is called.
pub(crate) const USAGE: &str =
    "usage: simulate --seeds FROM..TO [--for SECONDS] [--profile NAME] [--jobs N] [--history]";

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// Half-open.
    pub(crate) seeds: Range<u64>,
    /// As many of them as fit.
    pub(crate) time: Option<Duration>,
    pub(crate) theme: Option<Theme>,
    pub(crate) jobs: usize,
    /// Whether whole histories are printed.
    pub(crate) history: bool,
}

impl Arguments {
    /// Reads the arguments after the program's name.
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut parsed = Self { seeds: 0..0, time: None, theme: None, jobs, history: false };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--seeds" => parsed.seeds = seeds(&value()?)?,
                "--for" => parsed.time = Some(Duration::from_secs(number(&value()?)?)),
                "--profile" => parsed.theme = Some(theme(&value()?)?),
                "--jobs" => parsed.jobs = usize::try_from(number(&value()?)?).unwrap_or(1).max(1),
                "--history" => parsed.history = true,
                other => return Err(format!("`{other}` is not known")),
            }
        }
        if parsed.seeds.is_empty() {
            return Err("no seed: give `--seeds FROM..TO`, TO excluded".to_owned());
        }
        Ok(parsed)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    match text.split_once("..") {
        Some((from, to)) => Ok(number(from)?..number(to)?),
        None => {
            let seed = number(text)?;
            Ok(seed..seed + 1)
        }
    }
}

fn theme(name: &str) -> Result<Theme, String> {
    let names = || Theme::ALL.map(Theme::name).join(", ");
    Theme::named(name).ok_or_else(|| format!("there is no profile `{name}`: there are {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn ranges_are_half_open_and_a_number_is_one_seed() {
        assert_eq!(parse("--seeds 3..9").unwrap().seeds, 3..9);
        assert_eq!(parse("--seeds 7").unwrap().seeds, 7..8);
        let all = parse("--seeds 0..1 --for 240 --profile calm --jobs 3 --history").unwrap();
        assert_eq!((all.time, all.theme), (Some(Duration::from_secs(240)), Some(Theme::Calm)));
        assert_eq!((all.jobs, all.history), (3, true));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, part) in [
            ("", "--seeds FROM..TO"),
            ("--seeds 5..5", "no seed"),
            ("--seeds a..b", "`a` is not a number"),
            ("--seeds 0..1 --profile nope", "compaction"),
            ("--seeds", "`--seeds` needs a value"),
            ("--speed 1", "`--speed` is not known"),
        ] {
            let problem = parse(line).unwrap_err();
            assert!(problem.contains(part), "{line}: {problem}");
        }
    }
}
