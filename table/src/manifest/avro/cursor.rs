//! Avro's binary encoding of single values, read from the front of a slice.

use super::invalid;
use crate::Result;

/// What is left of a block, or of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(invalid(format!(
                "`{length}` bytes are announced where `{}` are left: the file is cut off or damaged",
                self.rest.len()
            )));
        };
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// A variable-length zig-zag integer of at most 64 bits.
    pub(super) fn long(&mut self) -> Result<i64> {
        let mut bits = 0_u64;
        for (index, &byte) in self.rest.iter().take(10).enumerate() {
            // The tenth byte holds the last bit of 64.
            if index == 9 && byte > 1 {
                break;
            }
            bits |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[index + 1..];
                return Ok((bits >> 1).cast_signed() ^ -(bits & 1).cast_signed());
            }
        }
        Err(invalid("an integer has no end within 64 bits: the file is cut off or damaged"))
    }

    pub(super) fn int(&mut self) -> Result<i32> {
        let value = self.long()?;
        i32::try_from(value).map_err(|_| invalid(format!("`{value}` stands where 32 bits are the most")))
    }

    pub(super) fn boolean(&mut self) -> Result<bool> {
        match self.take(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            other => Err(invalid(format!("`{other:?}` stands where a boolean must"))),
        }
    }

    /// Bytes or a string: a length and as many bytes.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.long()?;
        let length =
            usize::try_from(length).map_err(|_| invalid(format!("`{length}` stands where a length must")))?;
        self.take(length)
    }

    /// The number of items in the next block of an array or a map; zero at its end. Each item takes a byte at least.
    pub(super) fn items(&mut self) -> Result<usize> {
        let mut count = self.long()?;
        if count < 0 {
            // The size of the block in bytes follows, for readers that skip it.
            self.long()?;
            count = count.checked_neg().unwrap_or(i64::MAX);
        }
        let items = usize::try_from(count).unwrap_or(usize::MAX);
        if items > self.remaining() {
            return Err(invalid(format!(
                "`{count}` items are announced where `{}` bytes are left: the file is cut off or damaged",
                self.remaining()
            )));
        }
        Ok(items)
    }
}
