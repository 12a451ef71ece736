//! Finds the end of a string, many bytes at a time.

/// The place of the first quote, backslash or control character from `from` on; the length where there is none.
#[inline]
pub(super) fn find_special(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    for _ in 0..3 {
        match special_in_word(bytes, at) {
            Some(8) => at += 8,
            Some(found) => return at + found,
            None => return find_special_bytewise(bytes, at),
        }
    }
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<32>()) {
        if !is_plain(chunk) {
            break;
        }
        at += 32;
    }
    while let Some(found) = special_in_word(bytes, at) {
        if found < 8 {
            return at + found;
        }
        at += 8;
    }
    find_special_bytewise(bytes, at)
}

fn find_special_bytewise(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len())
}

/// Written so that the compiler makes vector instructions of it.
#[inline]
fn is_plain(chunk: &[u8; 32]) -> bool {
    let mut special = 0u8;
    for byte in chunk {
        special |= u8::from(*byte == b'"') | u8::from(*byte == b'\\') | u8::from(*byte < 0x20);
    }
    special == 0
}

/// The place of the first special byte among the next eight, eight where there is none; `None` near the end.
#[inline]
fn special_in_word(bytes: &[u8], at: usize) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let word = u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<8>()?);
    let quotes = word ^ (ONES * b'"' as u64);
    let backslashes = word ^ (ONES * b'\\' as u64);
    // A byte that borrows may mark the one above it falsely, never one below: the lowest mark is right.
    let marks = (quotes.wrapping_sub(ONES) & !quotes)
        | (backslashes.wrapping_sub(ONES) & !backslashes)
        | (word.wrapping_sub(ONES * 0x20) & !word);
    Some((marks & HIGHS).trailing_zeros() as usize / 8)
}
