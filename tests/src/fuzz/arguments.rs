//! The few arguments of the program.

use std::time::Duration;

use crate::target::Kind;

/// How it is called.
pub(crate) const USAGE: &str = "usage: fuzz [--seconds N] [--seed N] [--format json|avro|raw]";

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// For all formats together.
    pub(crate) time: Duration,
    pub(crate) seed: u64,
    pub(crate) kinds: Vec<Kind>,
}

impl Arguments {
    /// Reads the arguments after the program's name.
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self { time: Duration::from_secs(60), seed: 1, kinds: Kind::ALL.to_vec() };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("`{word}` needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is not a number"));
            match word.as_str() {
                "--seconds" => parsed.time = Duration::from_secs(number()?),
                "--seed" => parsed.seed = number()?,
                "--format" => parsed.kinds = vec![Kind::named(&value)?],
                other => return Err(format!("`{other}` is not known")),
            }
        }
        Ok(parsed)
    }
}
