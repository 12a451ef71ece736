//! How many of the messages may be bad. Pure.

use std::collections::VecDeque;

use crate::config::DeadLetters;
use crate::{Error, ErrorKind};

/// Counts messages and letters over a window of the latest messages.
#[derive(Debug)]
pub(crate) struct Share {
    max_share: f64,
    window: u64,
    counts: VecDeque<(u64, u64)>,
    messages: u64,
    letters: u64,
}

impl Share {
    pub(crate) fn new(config: &DeadLetters) -> Self {
        let (max_share, window) = (config.max_share, config.window);
        Self { max_share, window, counts: VecDeque::new(), messages: 0, letters: 0 }
    }

    /// Adds what was decoded. An error as soon as more letters stand in the window than its share of a whole window
    /// allows: at the beginning as many are allowed as later on.
    pub(crate) fn add(&mut self, messages: u64, letters: u64) -> Result<(), Error> {
        self.counts.push_back((messages, letters));
        self.messages += messages;
        self.letters += letters;
        while let Some(&(messages, letters)) = self.counts.front()
            && self.messages - messages >= self.window
        {
            self.messages -= messages;
            self.letters -= letters;
            self.counts.pop_front();
        }
        let allowed = self.max_share * self.window.max(self.messages) as f64;
        if self.letters as f64 <= allowed {
            return Ok(());
        }
        let message = format!(
            "{} of the last {} messages cannot be decoded, which is more than `{}` of `{}`: the topic or the schema is \
             not what it was. All up to here is committed, rows and dead letters; look at them with `firn dlq list`, \
             mend the cause or raise `dead-letters.max-share`, and start again",
            self.letters, self.messages, self.max_share, self.window
        );
        Err(Error::new(ErrorKind::Data, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share() -> Share {
        Share::new(&DeadLetters { max_share: 0.01, window: 1_000, ..DeadLetters::default() })
    }

    #[test]
    fn the_share_of_a_whole_window_is_allowed_from_the_start() {
        let mut share = share();
        share.add(10, 10).unwrap();
        let error = share.add(1, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.to_string().contains("11 of the last 11 messages"), "{error}");
    }

    #[test]
    fn letters_that_left_the_window_do_not_count() {
        let mut share = share();
        for _ in 0..100 {
            share.add(500, 5).unwrap();
        }
        share.add(500, 6).unwrap_err();
    }

    #[test]
    fn one_fetch_larger_than_the_window_has_its_own_share() {
        share().add(10_000, 100).unwrap();
        share().add(10_000, 101).unwrap_err();
    }
}
