//! Avro's binary encoding, read piece by piece.

use super::super::RejectCode;
use super::super::fault::{Fault, Parsed};

/// Elements without bytes that a message may have beyond eight for each of its bytes.
const FREE_ELEMENTS: usize = 64;

/// A datum and the place in it.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    size: usize,
    depth_left: usize,
    /// Elements without bytes that may still come: bytes bound the number of all others.
    empty_left: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(datum: &'a [u8], max_depth: usize) -> Self {
        let empty_left = datum.len().saturating_mul(8).saturating_add(FREE_ELEMENTS);
        Self { rest: datum, size: datum.len(), depth_left: max_depth, empty_left }
    }

    #[cold]
    pub(super) fn malformed(&self, what: &str) -> Box<Fault> {
        let at = self.size - self.rest.len();
        Fault::new(RejectCode::MalformedAvro, format!("{what} at byte {at}"))
    }

    /// The next `count` bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Parsed<&'a [u8]> {
        match self.rest.split_at_checked(count) {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(bytes)
            }
            None => Err(self.malformed("the datum ends early")),
        }
    }

    fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        match self.rest.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(*bytes)
            }
            None => Err(self.malformed("the datum ends early")),
        }
    }

    /// A zigzag integer of 64 bits, in at most ten bytes.
    #[inline]
    pub(super) fn long(&mut self) -> Parsed<i64> {
        match *self.rest {
            [byte, ref rest @ ..] if byte < 0x80 => {
                self.rest = rest;
                Ok(zigzag(u64::from(byte)))
            }
            _ => self.long_of_many_bytes(),
        }
    }

    fn long_of_many_bytes(&mut self) -> Parsed<i64> {
        let mut value = 0u64;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            if index == 9 && *byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(zigzag(value));
            }
        }
        Err(match self.rest.len() {
            0..10 if self.rest.iter().all(|byte| *byte >= 0x80) => self.malformed("the datum ends early"),
            _ => self.malformed("an integer has more than 64 bits"),
        })
    }

    pub(super) fn int(&mut self) -> Parsed<i32> {
        let value = self.long()?;
        i32::try_from(value).map_err(|_| self.malformed("an integer has more than 32 bits"))
    }

    pub(super) fn boolean(&mut self) -> Parsed<bool> {
        match self.array::<1>()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(self.malformed("a boolean is neither 0 nor 1")),
        }
    }

    pub(super) fn float(&mut self) -> Parsed<f32> {
        self.array().map(f32::from_le_bytes)
    }

    pub(super) fn double(&mut self) -> Parsed<f64> {
        self.array().map(f64::from_le_bytes)
    }

    /// Bytes with their length before them.
    pub(super) fn counted_bytes(&mut self) -> Parsed<&'a [u8]> {
        let length = self.long()?;
        match usize::try_from(length) {
            Ok(length) => self.bytes(length),
            Err(_) => Err(self.malformed("a length is below zero")),
        }
    }

    pub(super) fn text(&mut self) -> Parsed<&'a str> {
        let bytes = self.counted_bytes()?;
        std::str::from_utf8(bytes).map_err(|error| {
            let at = self.size - self.rest.len() - bytes.len() + error.valid_up_to();
            Fault::new(RejectCode::InvalidUtf8, format!("text is not UTF-8 from byte {at} on"))
        })
    }

    /// The index of one of `count` branches or symbols.
    pub(super) fn index(&mut self, count: usize) -> Parsed<usize> {
        let index = self.long()?;
        match usize::try_from(index) {
            Ok(index) if index < count => Ok(index),
            _ => Err(self.malformed("a branch or symbol that the schema does not have")),
        }
    }

    /// How many elements the next block has; zero at the end. `may_be_empty` tells whether an element may have no bytes.
    pub(super) fn block(&mut self, may_be_empty: bool) -> Parsed<usize> {
        let mut count = self.long()?;
        if count < 0 {
            self.long()?;
            count = count.checked_neg().ok_or_else(|| self.malformed("a count has more than 63 bits"))?;
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if !may_be_empty {
            if count > self.rest.len() {
                return Err(self.malformed("a block has more elements than the datum has bytes"));
            }
            return Ok(count);
        }
        self.empty_left = self.empty_left.checked_sub(count).ok_or_else(|| {
            let reason = "the message has more elements without bytes than its size allows";
            Fault::new(RejectCode::TooManyValues, reason)
        })?;
        Ok(count)
    }

    /// One level down.
    pub(super) fn enter(&mut self) -> Parsed<()> {
        match self.depth_left.checked_sub(1) {
            Some(left) => {
                self.depth_left = left;
                Ok(())
            }
            None => Err(Fault::new(RejectCode::TooDeep, "records, arrays and maps are nested too deep")),
        }
    }

    /// One level up.
    pub(super) fn leave(&mut self) {
        self.depth_left += 1;
    }

    /// Nothing follows.
    pub(super) fn end(&self) -> Parsed<()> {
        match self.rest.len() {
            0 => Ok(()),
            more => Err(Fault::new(RejectCode::TrailingData, format!("{more} bytes follow the datum"))),
        }
    }
}

fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
