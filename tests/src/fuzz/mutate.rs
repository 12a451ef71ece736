//! Messages from a corpus, changed a little or a lot, the same ones for the same seed.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Messages never grow beyond this.
const MAX_BYTES: usize = 4_096;

/// Bytes that mean something in JSON, or in Avro's lengths and integers.
const TELLING: &[u8] = b"{}[]\",:\\ \n0123456789-+.eEtfnu\x00\x01\x02\x7f\x80\x81\xc3\xed\xef\xff";

/// Makes messages.
#[derive(Debug)]
pub(crate) struct Mutator {
    random: ChaCha8Rng,
    corpus: Vec<Vec<u8>>,
}

impl Mutator {
    pub(crate) fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(seed), corpus }
    }

    /// The next message.
    pub(crate) fn message(&mut self) -> Vec<u8> {
        let mut message = self.pick();
        for _ in 0..self.random.random_range(0..6) {
            self.change(&mut message);
        }
        message.truncate(MAX_BYTES);
        message
    }

    fn pick(&mut self) -> Vec<u8> {
        let index = self.random.random_range(0..self.corpus.len());
        self.corpus[index].clone()
    }

    fn place(&mut self, message: &[u8]) -> usize {
        self.random.random_range(0..=message.len())
    }

    fn byte(&mut self) -> u8 {
        if self.random.random_range(0..4) == 0 {
            return self.random.random();
        }
        TELLING[self.random.random_range(0..TELLING.len())]
    }

    fn change(&mut self, message: &mut Vec<u8>) {
        let at = self.place(message);
        match self.random.random_range(0..9) {
            0 if at < message.len() => message[at] = self.byte(),
            1 => message.insert(at, self.byte()),
            2 if at < message.len() => drop(message.remove(at)),
            3 if at < message.len() => message[at] ^= 1 << self.random.random_range(0..8),
            4 => message.truncate(at),
            5 => {
                // A piece once more, at another place.
                let end = (at + self.random.random_range(0..24)).min(message.len());
                let piece = message[at..end].to_vec();
                let to = self.place(message);
                message.splice(to..to, piece);
            }
            6 => {
                let end = (at + self.random.random_range(0..24)).min(message.len());
                drop(message.drain(at..end));
            }
            7 => {
                // The beginning of one, the end of another.
                let other = self.pick();
                let from = self.place(&other);
                message.truncate(at);
                message.extend_from_slice(&other[from..]);
            }
            8 => {
                let text = INSERTS[self.random.random_range(0..INSERTS.len())];
                message.splice(at..at, text.bytes());
            }
            _ => {}
        }
    }
}

/// Text at the limits of something.
const INSERTS: &[&str] = &[
    "\\ud800",
    "\\uDC00\\ud800",
    "\\u0000",
    "1e999",
    "-0",
    "0.1e-400",
    "9223372036854775808",
    "16777217",
    "[[[[[[[[[[",
    "\"a\":null,",
    "\u{feff}",
    "é",
    "😀",
    "2026-02-29T24:00:60Z",
    "+05:30",
    "123456789012345678901234567890123456789",
];
